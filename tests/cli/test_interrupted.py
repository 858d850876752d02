"""Interrupted while git works: exit code 130, nothing half done, and the session goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace.conftest import MODEL, git, seen_by_person

from npufuse_tui.loop import Loop
from npufuse_tui.model import Stage


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_a_worktree_is_made(make_repo: Callable[..., Path], tmp_path: Path, how: signal.Signals) -> None:
    """A filter of the repo tells through a pipe that git is at work, and then waits for ever."""
    top = make_repo(files={"model.py": MODEL, "slow.bin": "x\n", ".gitattributes": "*.bin filter=slow\n"})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    never = tmp_path / "never"
    os.mkfifo(never)
    git(top, "config", "filter.slow.smudge", f"sh -c 'echo at work > {pipe}; exec cat {never}'")
    git(top, "config", "filter.slow.required", "true")
    before = seen_by_person(top)
    child = subprocess.Popen(
        [sys.executable, "-m", "npufuse_tui", "apply", str(top), "--approve-all-recommended"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with pipe.open() as told:
        assert told.read() == "at work\n"
    os.kill(child.pid, how) if how is not signal.SIGINT else os.killpg(child.pid, how)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert out == b"" and b"Traceback" not in err and b"interrupted" in err
    assert seen_by_person(top) == before
    git(top, "config", "filter.slow.smudge", "cat")
    with Loop.resume(top) as loop:
        assert "apply" in loop.interrupted or loop.session.stage is Stage.APPLY
        loop.apply()
        assert len(loop.session.tasks) == 2
        loop.clean_up()
    git(top, "config", "filter.slow.smudge", "cat")
    assert git(top, "worktree", "list").count("\n") == 0
