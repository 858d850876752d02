"""The demo without its screens; and a verification that is killed in the middle of a run and then taken up again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from program import Program
from qwen3 import git, seen_by_person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("training")]


def test_demo_yes(tmp_path: Path) -> None:
    program = Program(tmp_path, tmp_path / "home")
    done = program.run("demo", "demo", "--yes")
    assert done.code == 0, done.out + done.err
    lines = done.out.splitlines()
    rules = {line.split()[1] for line in lines if re.match(r"[0-9a-f]{8}  \w+  adopt  [0-9a-f]{12}$", line)}
    assert rules >= {"rms_norm", "swiglu"}
    assert "not measured: emulated" in done.out
    index = Path(lines[-1])
    assert index.is_file() and index.is_relative_to(tmp_path / "demo" / ".git")
    (branch,) = git(tmp_path / "demo", "for-each-ref", "--format=%(refname:short)", "refs/heads/npufuse").split()
    assert int(git(tmp_path / "demo", "rev-list", "--count", f"main..{branch}")) == len(rules)
    assert git(tmp_path / "demo", "status", "--porcelain") == ""
    assert git(tmp_path / "demo", "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("run", ["baseline-1", "candidate"])
def test_killed_in_a_run_and_taken_up(in_demo: Program, run: str) -> None:
    repo = in_demo.folder
    before = seen_by_person(repo)
    applied = in_demo.run("apply", ".", "--approve-all-recommended", "--format", "json")
    assert applied.code == 0, applied.err
    session = applied.document["session"]
    keep = [one["id"] for one in applied.document["edits"] if one["rule"] in ("rms_norm", "swiglu")]
    assert len(keep) == 2
    words = ("verify", "--session", session, "--candidate", ",".join(keep), "--python", sys.executable)
    words += ("--run", "python train.py --steps 60", "--format", "json")

    log = repo / ".git" / "npufuse" / session / "logs" / f"{run if run != 'candidate' else keep[0] + '-candidate'}.log"
    child = in_demo.start(*words)
    while not (log.exists() and b"step 5 " in log.read_bytes()):
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.02)
            pytest.fail(f"it ended before the run: {child.communicate()}")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()

    verified = in_demo.run(*words)
    assert verified.code == 0, verified.out + verified.err
    tasks = {one["id"]: one for one in verified.document["tasks"]}
    for one in keep:
        assert tasks[one]["conclusion"] == "adopt" and tasks[one]["loss"]["max_rel_diff"] <= 0.01
    branch = verified.document["branch"]
    assert int(git(repo, "rev-list", "--count", f"main..{branch}")) == 2
    assert seen_by_person(repo) == before
    alive = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(repo) not in alive
