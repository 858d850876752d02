"""What a scan answers: ids, order, groups, rows for every rule, files that are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanned import IMPORTS, MLP, NORM, look, write

from npufuse_tui.dataflow.repository import Repository
from npufuse_tui.errors import WrongInput
from npufuse_tui.events import CandidateFound, FileSkipped, ScanFinished, ScanProgress
from npufuse_tui.rules import load_rules
from npufuse_tui.scan import work
from npufuse_tui.scan.scanner import ScanOptions, scan


def test_ids_are_stable_when_lines_above_move(tmp_path: Path) -> None:
    write(tmp_path, a=IMPORTS + NORM + MLP)
    before = look(tmp_path)
    write(tmp_path, a=IMPORTS + "\n\nX = 1\n# more\n\n" + NORM + "\n# between\n" + MLP)
    after = look(tmp_path)
    assert [one.id for one in after.candidates] == [one.id for one in before.candidates]
    assert [one.start_line for one in after.candidates] > [one.start_line for one in before.candidates]


def test_ids_change_with_the_code_the_file_and_the_function(tmp_path: Path) -> None:
    def id_of(name: str, text: str) -> str:
        root = tmp_path / name
        write(root, a=IMPORTS + text)
        (one,) = look(root, rules=("rms_norm",)).candidates
        return one.id

    same = id_of("one", NORM)
    assert id_of("two", NORM) == same
    assert id_of("three", NORM.replace("variance", "v")) != same
    assert id_of("four", NORM.replace("def forward", "def call")) != same
    write(tmp_path / "five", b=IMPORTS + NORM)
    assert look(tmp_path / "five", rules=("rms_norm",)).candidates[0].id != same


def test_two_equal_blocks_of_one_function_have_two_ids(tmp_path: Path) -> None:
    body = "    a = F.silu(g) * u\n    print(a)\n    g, u = h, v\n    a = F.silu(g) * u\n    print(a)\n"
    write(tmp_path, a=IMPORTS + "def f(g, u, h, v):\n" + body)
    found = look(tmp_path, rules=("swiglu",)).candidates
    assert len(found) == 2 and len({one.id for one in found}) == 2


def test_equal_blocks_of_many_files_are_one_group(tmp_path: Path) -> None:
    write(tmp_path, a=IMPORTS + NORM, pkg__b=IMPORTS + "X = 1\n" + NORM, c=IMPORTS + MLP)
    found = look(tmp_path).candidates
    groups = {one.group for one in found if one.rule == "rms_norm"}
    assert len(groups) == 1 and len({one.group for one in found}) == 2


def test_every_rule_has_a_row_and_the_order_is_that_of_files_and_lines(tmp_path: Path) -> None:
    write(tmp_path, b=IMPORTS + MLP + NORM, a=IMPORTS + NORM, c="x = 1\n")
    result = look(tmp_path)
    expected = [rule.id for rule in load_rules() if rule.sibling is None or rule.training]
    assert [row.id for row in result.rules] == sorted(expected)
    assert {row.id: row.found for row in result.rules if row.found} == {"rms_norm": 2, "swiglu": 1}
    places = [(one.file, one.start_line) for one in result.candidates]
    assert places == sorted(places)
    for row in result.rules:
        assert row.found == row.recommended + row.caution + row.refused


def test_several_processes_answer_what_one_does(tmp_path: Path) -> None:
    write(tmp_path, **{f"pkg{number}__m": IMPORTS + (NORM if number % 2 else MLP) for number in range(60)})
    one = look(tmp_path)
    two = look(tmp_path, jobs=2)
    assert one.candidates == two.candidates and one.rules == two.rules and one.files == two.files == 60


def test_events_tell_what_the_result_tells(tmp_path: Path) -> None:
    write(tmp_path, a=IMPORTS + NORM, bad="def (:\nF.silu(x) * y  # act_fn(\n")
    heard: list[object] = []
    result = scan(tmp_path, ScanOptions(use_cache=False, jobs=1), heard.append)
    assert [one.candidate for one in heard if isinstance(one, CandidateFound)] == list(result.candidates)
    assert [one.skipped for one in heard if isinstance(one, FileSkipped)] == list(result.skipped)
    assert [one.result for one in heard if isinstance(one, ScanFinished)] == [result]
    assert any(isinstance(one, ScanProgress) for one in heard)


def test_a_generated_file_names_its_source(tmp_path: Path) -> None:
    header = "# This file was automatically generated from pkg/modular_a.py.\n"
    write(tmp_path, pkg__modeling_a=header + IMPORTS + NORM, pkg__modular_a="x = 1\n", c=IMPORTS + NORM)
    found = {one.file: one.generated_from for one in look(tmp_path).candidates}
    assert found == {"pkg/modeling_a.py": "pkg/modular_a.py", "c.py": None}


def test_targets_and_rules_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, a="")
    with pytest.raises(WrongInput, match="no rule nothing"):
        look(tmp_path, rules=("nothing",))
    with pytest.raises(WrongInput, match="sideways"):
        look(tmp_path, target="sideways")


def test_a_helper_of_another_file(tmp_path: Path) -> None:
    helper = IMPORTS + "\ndef rms_norm(x, eps):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)\n"
    user = (
        IMPORTS
        + "from .helper import rms_norm\n\ndef rms_scaled(x, weight, eps):\n    return rms_norm(x, eps) * weight\n"
    )
    write(tmp_path, pkg__helper=helper, pkg__user=user)
    found = [(one.file, one.qualname) for one in look(tmp_path, rules=("rms_norm",)).candidates]
    assert ("pkg/user.py", "rms_scaled") in found


HOSTILE: dict[str, tuple[bytes, str | None]] = {
    "syntax": (b"def (:\nact_fn(x) * y\n", "does not parse: line 1"),
    "null": (b"act_fn(x) * y\n\0\n", "does not parse"),
    "utf16": ((IMPORTS + MLP).encode("utf-16"), None),
    "badcookie": (b"# coding: nothing-known\nact_fn(x) * y\n", "does not parse"),
    "notutf8": (b"# caf\xe9\nact_fn(x) * y\n", "does not parse"),
    "deep": (b"act_fn = " + b"(" * 500 + b"1" + b")" * 500 + b"\ny = act_fn * 2\n", "does not parse"),
    "manyterms": (
        IMPORTS.encode() + b"def f(a, silu):\n    return " + b" * ".join([b"a"] * 3000) + b"\n",
        "nested too deeply",
    ),
    "formfeed": ((IMPORTS + "\f" + MLP).encode(), None),
    "cr": ((IMPORTS + MLP).replace("\n", "\r").encode(), None),
    "empty": (b"", None),
    "bom": (b"\xef\xbb\xbf" + (IMPORTS + MLP).encode(), None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_ends_the_scan_and_none_is_skipped_in_silence(tmp_path: Path, name: str) -> None:
    data, reason = HOSTILE[name]
    write(tmp_path, good=IMPORTS + NORM)
    (tmp_path / f"{name}.py").write_bytes(data)
    result = look(tmp_path)
    assert "good.py" in {one.file for one in result.candidates}
    assert result.files == 2
    skipped = {one.file: one.reason.en for one in result.skipped}
    if reason is None:
        assert skipped == {}
    else:
        assert reason in skipped[f"{name}.py"]


def test_nesting_that_a_person_would_write_is_followed(tmp_path: Path) -> None:
    lines = ["def f(gate, up, c):"]
    for depth in range(1, 15):
        lines.append("    " * depth + "if c:")
    lines.append("    " * 15 + "return F.silu(gate) * up")
    write(tmp_path, a=IMPORTS + "\n".join(lines) + "\n")
    assert [one.rule for one in look(tmp_path).candidates] == ["swiglu"]


def test_a_huge_file_is_skipped_with_its_size(tmp_path: Path) -> None:
    write(tmp_path, good=IMPORTS + NORM)
    with (tmp_path / "huge.py").open("wb") as file:
        file.write(b"act_fn(x) * y\n")
        file.truncate(50_000_000)
    result = look(tmp_path)
    assert [one.file for one in result.skipped] == ["huge.py"]
    assert "larger than" in result.skipped[0].reason.en
    assert len(result.candidates) == 1


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    import os

    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.py")
    try:
        with open(path, "wb") as file:
            file.write((IMPORTS + NORM).encode())
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    result = scan(tmp_path, ScanOptions(jobs=1))
    assert len(result.candidates) == 1
    assert os.fsencode(result.candidates[0].file) == b"caf\xe9.py"


def test_a_fault_of_npufuse_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, bad=IMPORTS + NORM, good=IMPORTS + NORM)
    honest = work.scan_file

    def faulty(repository: Repository, file: str, *more: object) -> object:
        if file == "bad.py":
            raise KeyError("something of ours")
        return honest(repository, file, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "scan_file", faulty)
    with pytest.raises(KeyError):
        look(tmp_path)
    monkeypatch.delenv("NPUFUSE_STRICT")
    result = look(tmp_path)
    assert [one.file for one in result.candidates] == ["good.py"]
    assert [one.file for one in result.skipped] == ["bad.py"]
    assert "KeyError" in result.skipped[0].reason.en


def test_a_worker_that_is_killed_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import signal

    write(tmp_path, **{f"m{number}": IMPORTS + NORM for number in range(50)})
    honest = work.scan_file
    parent = os.getpid()

    def deadly(repository: Repository, file: str, *more: object) -> object:
        if file == "m7.py" and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return honest(repository, file, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "scan_file", deadly)
    result = look(tmp_path, jobs=2)
    assert [one.file for one in result.skipped] == ["m7.py"]
    assert len(result.candidates) == 49 and result.files == 50


def test_a_second_scan_of_the_process_reads_helpers_anew(tmp_path: Path) -> None:
    helper = IMPORTS + "\ndef rms_norm(x, eps):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)\n"
    user = (
        IMPORTS
        + "from .helper import rms_norm\n\ndef rms_scaled(x, weight, eps):\n    return rms_norm(x, eps) * weight\n"
    )
    write(tmp_path, pkg__helper=helper, pkg__user=user)
    assert "pkg/user.py" in {one.file for one in look(tmp_path, rules=("rms_norm",)).candidates}
    write(tmp_path, pkg__helper=helper.replace("pow(2)", "pow(3)"))
    assert look(tmp_path, rules=("rms_norm",)).candidates == ()
