"""The Qwen3 of the installed transformers, trained on the emulator: what is right is committed, what is wrong is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from program import Program
from qwen3 import git, seen_by_person

from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Conclusion, Decision

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("training")]

COMMAND = "python train.py --steps 60"
FILE = "qwen3/modeling_qwen3.py"


def test_both_operators_from_the_scan_to_the_branch(in_qwen3: Program) -> None:
    repo = in_qwen3.folder
    before = seen_by_person(repo)

    scan = in_qwen3.run("scan", ".", "--check", "--format", "json", "--python", sys.executable)
    assert scan.code == 0, scan.err
    found = {one["rule"]: one for one in scan.document["candidates"]}
    norm, swiglu = found["rms_norm"], found["swiglu"]
    assert (norm["file"], norm["qualname"], norm["start_line"], norm["end_line"]) == (
        FILE,
        "Qwen3RMSNorm.forward",
        59,
        63,
    )
    assert (swiglu["file"], swiglu["qualname"]) == (FILE, "Qwen3MLP.forward")
    for one in (norm, swiglu):
        assert one["check"]["status"] == "passed" and one["check"]["backend"] == "emulated"
        assert one["check"]["cases"] > 1 and one["check"]["dtype_equal"]
    assert seen_by_person(repo) == before

    applied = in_qwen3.run("apply", ".", "--approve", f"{norm['id']},{swiglu['id']}", "--format", "json")
    assert applied.code == 0, applied.err
    session, branch = applied.document["session"], applied.document["branch"]
    assert {one["id"] for one in applied.document["edits"]} == {norm["id"], swiglu["id"]}
    assert seen_by_person(repo) == before

    options = ("--run", COMMAND, "--python", sys.executable, "--format", "json")
    verified = in_qwen3.run("verify", "--session", session, *options)
    assert verified.code == 0, verified.out + verified.err
    document = verified.document
    assert document["backend"] == "emulated" and document["baseline"]["steps"] >= 50
    tasks = {one["id"]: one for one in document["tasks"]}
    for one in (tasks[norm["id"]], tasks[swiglu["id"]]):
        assert one["conclusion"] == "adopt" and one["op"]["status"] == "passed"
        assert one["loss"]["steps"] >= 50 and one["loss"]["max_rel_diff"] <= 0.01
        assert one["speed"]["conclusion"].startswith("not measured")  # the emulator says nothing of an NPU's speed
        assert one["speed"]["ratio"] is None

    assert seen_by_person(repo) == before
    commits = git(repo, "log", "--format=%s", f"{before['head'].strip()}..{branch}").splitlines()  # type: ignore[attr-defined]
    assert len(commits) == 2 and any("rms_norm" in one for one in commits) and any("swiglu" in one for one in commits)
    text = git(repo, "show", f"{branch}:{FILE}")
    assert "torch_npu.npu_rms_norm(" in text and "torch_npu.npu_swiglu(" in text
    fallback = [line.strip() for line in (repo / FILE).read_text().splitlines()[58:63]]
    assert "\n".join(fallback) in "\n".join(line.strip() for line in text.splitlines())
    changed = git(repo, "diff", "--name-only", "HEAD", branch).split()
    assert changed == [FILE]

    report = in_qwen3.run("report", "--session", session)
    assert report.code == 0, report.err
    assert "rms_norm" in report.out or list((repo / ".git" / "npufuse" / session / "reports").glob("*"))

    again = in_qwen3.run("verify", "--session", session, "--format", "json")
    assert again.code == 0 and again.document["tasks"] == document["tasks"]


def test_swapped_halves_are_rejected_and_the_rest_is_kept(in_qwen3: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's own SwiGLU with gate and up exchanged: it compiles, the loss still falls, and it is wrong."""
    for name, value in in_qwen3.environ.items():
        monkeypatch.setenv(name, value)
    repo = in_qwen3.folder
    before = seen_by_person(repo)
    options = LoopOptions(python=sys.executable, backend="emulated")
    with Loop.start(repo, options) as loop:
        loop.scan()
        assert loop.session.scan is not None
        found = {one.rule: one.id for one in loop.session.scan.candidates}
        swiglu = next(one for one in loop.session.scan.candidates if one.rule == "swiglu")
        assert swiglu.replacement is not None
        wrong = swiglu.replacement.replace("gate_proj", "?").replace("up_proj", "gate_proj").replace("?", "up_proj")
        assert wrong != swiglu.replacement
        loop.edit_replacement(swiglu.id, wrong)
        loop.decide([found["rms_norm"], swiglu.id], Decision.APPROVED)
        loop.confirm()
        loop.apply()
        session = loop.session.id

    options_given = ("--run", COMMAND, "--python", sys.executable, "--format", "json")
    verified = in_qwen3.run("verify", "--session", session, *options_given)
    assert verified.code == 1, verified.out + verified.err
    tasks = {one["id"]: one for one in verified.document["tasks"]}
    assert tasks[found["rms_norm"]]["conclusion"] == Conclusion.ADOPT.value
    rejected = tasks[swiglu.id]
    assert rejected["state"] == "op_failed" and rejected["conclusion"] == Conclusion.REJECT.value
    assert rejected["op"]["status"] == "failed" and rejected["op"]["worst_cosine"] < 0.999
    assert rejected["loss"] is None and rejected["speed"] is None  # nothing further was run
    assert rejected["reason"]
    text = git(repo, "show", f"{verified.document['branch']}:{FILE}")
    assert "npu_rms_norm(" in text and "npu_swiglu(" not in text
    assert seen_by_person(repo) == before


def test_the_environment_of_the_model_is_left_alone(in_qwen3: Program) -> None:
    """Everything that npufuse keeps lies in its session folder under .git and in its cache."""
    before = {path for path in Path(in_qwen3.folder).rglob("*") if ".git" not in path.parts}
    assert in_qwen3.run("scan", ".", "--check", "--rule", "swiglu", "--python", sys.executable).code == 0
    assert {path for path in Path(in_qwen3.folder).rglob("*") if ".git" not in path.parts} == before
