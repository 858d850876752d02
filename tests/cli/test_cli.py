"""What scripts rely on: exit codes, one document on standard output, one sentence on standard error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace.conftest import git, seen_by_person

from npufuse_tui import __version__
from npufuse_tui.loop import Loop
from npufuse_tui.workspace import sessions

from .conftest import MODEL, Ran

Run = Callable[..., Ran]


def one_sentence(ran: Ran) -> None:
    """An error is one line on standard error, nothing on standard output, and no traceback."""
    assert ran.out == ""
    assert ran.err.count("\n") == 1 and ran.err.startswith("npufuse"), ran.err
    assert "Traceback" not in ran.err and "\x1b" not in ran.err


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["scan"], 2),
        (["scan", "nowhere"], 2),
        (["scan", "notes.txt"], 2),
        (["scan", ".", "--format", "xml"], 2),
        (["scan", ".", "--no-such-option"], 2),
        (["scan", ".", "--jobs", "many"], 2),
        (["scan", ".", "--jobs", "0"], 2),
        (["scan", ".", "--rule", "no_such_rule"], 2),
        (["scan", ".", "--output", "nowhere/x.json"], 2),
        (["scan", ".", "--target", "x"], 2),
        (["scan", ".", "extra"], 2),
        (["nowhere"], 2),
        (["scann"], 2),
        (["."], 2),  # the app needs a terminal
        ([".", "other"], 2),
        (["check"], 2),
        (["check", ".", "--session", "x"], 2),
        (["check", ".", "--candidate", "nope"], 2),
        (["check", ".", "--backend", "gpu"], 2),
        (["check", "full", "--python", "/nowhere/python"], 2),
        (["apply", "."], 2),
        (["apply", ".", "--approve", "nope"], 2),
        (["verify", "--session", "nope"], 2),
        (["verify"], 2),
        (["report"], 2),
        (["sessions", "show", "nope"], 2),
        (["sessions", "remove", "nope"], 2),
        (["api", "show", "npu_no_such_operator"], 2),
        (["explain", "nowhere"], 2),
        (["explain", "full", "--shape", "a,b"], 2),
        (["profile", "nowhere"], 2),
        (["emulate", "--", "no-such-command-here"], 2),
        (["demo"], 2),
        (["demo", "full", "--yes"], 2),
        (["apply", "full", "--approve-all-recommended"], 4),  # no repository
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_bad_input(run_here: Run, tmp_path: Path, words: list[str], code: int, lang: str) -> None:
    (tmp_path / "notes.txt").write_text("no code\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "model.py").write_text(MODEL)
    ran = run_here(*words, "--lang", lang) if words[0] != "emulate" else run_here("--lang", lang, *words)
    assert ran.code == code, ran
    one_sentence(ran)
    assert bool(re.search("[\u4e00-\u9fff]", ran.err)) == (lang == "zh"), ran.err


def test_a_language_that_is_none(npufuse: Run) -> None:
    ran = npufuse("scan", ".", "--lang", "fr")
    assert ran.code == 2
    one_sentence(ran)


def test_a_traceback_only_when_asked_for(npufuse: Run) -> None:
    assert "Traceback" in npufuse("scan", "nowhere", "--debug").err
    assert "Traceback" in npufuse("--debug", "scan", "nowhere").err


def test_scan_prints_one_document_and_changes_nothing(npufuse: Run, repo: Path) -> None:
    before = seen_by_person(repo)
    ran = npufuse("scan", repo, "--format", "json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert found["schema"] == 1 and found["npufuse"] == __version__ and found["root"] == str(repo)
    assert {one["rule"] for one in found["candidates"]} == {"rms_norm", "swiglu"}
    assert all(one["check"] is None and one["diff"].startswith("--- a/") for one in found["candidates"])
    assert seen_by_person(repo) == before
    assert not (repo / ".git" / "npufuse").exists()
    assert json.loads(npufuse("scan", repo / "models/model.py", "--format", "json").out)["root"] == str(repo / "models")


@pytest.mark.parametrize("format", ["table", "json", "md", "sarif"])
def test_formats_go_to_a_file_as_well(npufuse: Run, repo: Path, tmp_path: Path, format: str) -> None:
    ran = npufuse("scan", repo, "--format", format)
    assert ran.code == 0 and ran.out and "\x1b" not in ran.out and ran.out.endswith("\n")
    into = npufuse("scan", repo, "--format", format, "--output", tmp_path / "out")
    assert into.code == 0 and into.out == ""
    drop = re.compile(
        r'"seconds": [0-9.e-]+|in [0-9.]+ m?s|[0-9.]+ m?s|[0-9]+ from the cache|"cached": \d+|"parsed": \d+|\d+ parsed'
    )
    assert drop.sub("", (tmp_path / "out").read_text()) == drop.sub("", ran.out)


@pytest.mark.parametrize(("fail_on", "code"), [("recommended", 1), ("any", 1), ("never", 0)])
def test_fail_on(npufuse: Run, repo: Path, tmp_path: Path, fail_on: str, code: int) -> None:
    assert npufuse("scan", repo, "--fail-on", fail_on).code == code
    (tmp_path / "empty").mkdir()
    assert npufuse("scan", tmp_path / "empty", "--fail-on", fail_on).code == 0


def test_names_cannot_steer_the_terminal(npufuse: Run, make_repo: Callable[..., Path]) -> None:
    top = make_repo(files={"a\x1b]0;owned\x07\n[red]b.py": MODEL})
    for format in ("table", "md"):
        ran = npufuse("scan", top, "--format", format)
        assert ran.code == 0 and "\x1b" not in ran.out + ran.err and "\x07" not in ran.out + ran.err


def test_a_name_that_is_no_utf8_and_a_plain_locale(npufuse: Run, make_repo: Callable[..., Path]) -> None:
    top = make_repo(files={os.fsdecode(b"caf\xe9.py"): MODEL, "中文.py": MODEL})
    for format, locale in (
        ("table", "C.UTF-8"),
        ("table", "C"),
        ("json", "C.UTF-8"),
        ("json", "C"),
        ("md", "C"),
        ("sarif", "C"),
    ):
        ran = npufuse("scan", top, "--format", format, LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        assert ran.code == 0, (format, locale, ran.err)
        assert ran.out


def test_apply_from_a_path_then_again_by_its_session(npufuse: Run, repo: Path) -> None:
    before = seen_by_person(repo)
    ids = [one["id"] for one in json.loads(npufuse("scan", repo, "--format", "json").out)["candidates"]]
    ran = npufuse("apply", repo, "--approve", ids[0], "--format", "json")
    assert ran.code == 0, ran.err
    done = json.loads(ran.out)
    assert [one["id"] for one in done["edits"]] == ids[:1] and done["branch"] == f"npufuse/{done['session']}"
    assert done["base"] == git(repo, "rev-parse", "HEAD")
    assert seen_by_person(repo) == before
    assert sessions.show(repo, done["session"]).session.approvals[0].candidate == ids[0]
    again = npufuse("apply", "--session", done["session"], folder=repo)
    assert again.code == 0 and done["session"] in again.out
    refused = npufuse("apply", "--session", done["session"], "--approve", ids[1], folder=repo)
    assert refused.code == 4
    one_sentence(refused)


def test_apply_refuses_to_keep_something_safe(npufuse: Run, repo: Path) -> None:
    git(repo, "branch", "mine")
    ran = npufuse("apply", repo, "--approve-all-recommended", "--branch", "mine")
    assert ran.code == 4
    one_sentence(ran)
    (repo / "models/model.py").write_text(MODEL + "# mine\n")
    ran = npufuse("apply", repo, "--approve-all-recommended")
    assert ran.code == 4 and "uncommitted" in ran.err
    assert git(repo, "branch", "--list", "npufuse/*") == ""


def test_a_session_that_another_process_has(npufuse: Run, repo: Path) -> None:
    with Loop.start(repo) as loop:
        ran = npufuse("check", "--session", loop.session.id, folder=repo)
        assert ran.code == 4
        one_sentence(ran)
        shown = npufuse("sessions", "show", loop.session.id, "--format", "json", folder=repo)
        assert json.loads(shown.out)["open"] is True


def test_sessions(npufuse: Run, repo: Path) -> None:
    assert npufuse("sessions", folder=repo).out == ""
    made = json.loads(npufuse("apply", repo, "--approve-all-recommended", "--format", "json").out)
    listed = json.loads(npufuse("sessions", "list", "--format", "json", folder=repo / "models").out)
    assert [one["id"] for one in listed["sessions"]] == [made["session"]]
    assert listed["sessions"][0]["stage"] == "verify" and len(listed["sessions"][0]["approved"]) == 2
    assert made["session"] in npufuse("sessions", folder=repo).out
    assert made["session"] in npufuse("sessions", "show", made["session"][:8], folder=repo).out
    assert npufuse("report", "--session", made["session"], folder=repo).code == 0
    assert npufuse("sessions", "remove", made["session"], folder=repo).code == 0
    assert json.loads(npufuse("sessions", "list", "--format", "json", folder=repo).out)["sessions"] == []
    assert git(repo, "worktree", "list").count("\n") == 0


def test_reports_where_the_person_wants_them(npufuse: Run, repo: Path, tmp_path: Path) -> None:
    made = json.loads(npufuse("apply", repo, "--approve-all-recommended", "--format", "json").out)
    for format, ending in (("md", ".md"), ("html", ".html")):
        ran = npufuse(
            "report", "--session", made["session"], "--format", format, "--output", tmp_path / "out", folder=repo
        )
        assert ran.code == 0, ran.err
        paths = [Path(one) for one in ran.out.splitlines()]
        assert paths and all(one.suffix == ending and one.is_file() for one in paths)


def test_check_without_torch_in_the_target(npufuse: Run, repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    ran = npufuse("check", repo, "--python", bare / "bin" / "python")
    assert ran.code == 3 and "torch" in ran.err
    one_sentence(ran)


def test_check_demands_an_npu(npufuse: Run, repo: Path) -> None:
    ran = npufuse("check", repo, "--backend", "npu")
    assert ran.code == 3
    one_sentence(ran)


def test_check_proves_on_the_emulator(npufuse: Run, repo: Path) -> None:
    ids = [one["id"] for one in json.loads(npufuse("scan", repo, "--format", "json").out)["candidates"]]
    ran = npufuse("check", repo, "--candidate", ids[1], "--format", "json")
    assert ran.code == 0, ran.err
    (one,) = json.loads(ran.out)["candidates"]
    assert one["id"] == ids[1] and one["check"]["status"] == "passed" and one["check"]["backend"] == "emulated"
    assert one["check"]["per_case"]


def test_emulate_gives_the_commands_exit_code_and_words(npufuse: Run) -> None:
    code = "import sys, torch_npu; print(sys.argv[1:]); sys.exit(7)"
    ran = npufuse("emulate", "--lenient", "--", sys.executable, "-c", code, "--lang", "zh", "--debug")
    assert ran.code == 7 and ran.out == "['--lang', 'zh', '--debug']\n"
    assert npufuse("emulate", sys.executable, "-c", "print(1)").out == "1\n"


def test_no_git(npufuse: Run, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    ran = npufuse("scan", repo, "--format", "json", PATH=str(tmp_path / "bin"))
    assert ran.code == 0 and json.loads(ran.out)["commit"] is None
    ran = npufuse("apply", repo, "--approve-all-recommended", PATH=str(tmp_path / "bin"))
    assert ran.code in (3, 4) and "git" in ran.err
    one_sentence(ran)


def test_a_reader_that_goes_away_is_no_error(repo: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "npufuse_tui", "api", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 141


def test_the_version_and_the_help_load_nothing_heavy() -> None:
    heavy = ("torch", "textual", "git", "pandas", "libcst", "pydantic", "jinja2", "scipy")
    for words, more in ((["--version"], ("typer", "rich")), (["--help"], ())):
        code = (
            "import sys\nfrom npufuse_tui.cli import main\n"
            f"try:\n    main({words!r})\nexcept SystemExit as end:\n    assert not end.code\n"
            f"print([one for one in {heavy + more!r} if one in sys.modules], file=sys.stderr)"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert ran.stderr.strip() == "[]", words
        assert __version__ in ran.stdout or "Usage" in ran.stdout


def test_no_command_loads_torch(repo: Path) -> None:
    code = (
        "import sys\nfrom npufuse_tui.cli import run\n"
        f"assert run(['scan', {str(repo)!r}, '--check']) == 0\n"
        f"assert run(['apply', {str(repo)!r}, '--approve-all-recommended']) == 0\n"
        "assert 'torch' not in sys.modules and 'textual' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_every_command_has_help(npufuse: Run) -> None:
    commands = [
        "demo",
        "scan",
        "check",
        "apply",
        "verify",
        "report",
        "sessions",
        "api",
        "explain",
        "profile",
        "doctor",
        "emulate",
    ]
    top = npufuse("--help").out
    chinese = npufuse("--lang", "zh", "--help").out
    for command in commands:
        assert command in top and command in chinese
    assert len(re.findall("[\u4e00-\u9fff]+", chinese)) > len(commands) and not re.search("[\u4e00-\u9fff]", top)
    for command in ("scan", "sessions", "emulate"):
        ran = npufuse("--lang", "zh", command, "--help")
        assert ran.code == 0 and "Usage" in ran.out and re.search("[\u4e00-\u9fff]", ran.out), command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(npufuse: Run, shell: str) -> None:
    words = {"COMP_WORDS": "npufuse sc", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "npufuse sc"}
    ran = npufuse(_NPUFUSE_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_FISH_ACTION="get-args", **words)
    assert ran.code == 0 and "scan" in ran.out, ran
