"""Killed at any moment, a session goes on with nothing lost and nothing half done.

A forked child runs the loop and kills itself (SIGKILL) at one chosen write: before a line of the journal is written,
after it, or between a temporary file and its rename. Then the session is resumed here and finished. Whatever the
moment, the branch ends with the same content as without a kill, and the checkout is as it was.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from npufuse_tui import durable
from npufuse_tui.errors import WrongInput
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Stage
from npufuse_tui.workspace import journal, sessions, worktrees

from .conftest import git, seen_by_person
from .test_apply import adopt_all


def start_and_finish(top: Path) -> None:
    with Loop.start(top, LoopOptions(use_cache=False)) as loop:
        finish(loop)


def finish(loop: Loop) -> None:
    """From wherever the session is to the end."""
    if loop.session.stage is Stage.SCAN:
        loop.scan()
    if loop.session.stage is Stage.CANDIDATES:
        loop.approve_recommended()
        loop.confirm()
    loop.apply()
    adopt_all(loop)
    loop.clean_up()


class Killer:
    """Counts the moments of a run and ends the process at the one that was asked for."""

    def __init__(self, at: int | None) -> None:
        self.at, self.count = at, 0

    def moment(self) -> None:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def with_moments(killer: Killer) -> None:
    """Put a moment before and after each journal line, each replacement of a file, and each call of git that writes."""
    real_append, real_link = journal.append_durably, durable._link_over
    real_run = worktrees.git.run

    def append(path: Path, line: bytes) -> None:
        killer.moment()
        real_append(path, line)
        killer.moment()

    def link_over(path: Path, other: Path) -> None:  # stands between the temporary file and its rename
        killer.moment()
        real_link(path, other)

    def run(folder: Path, *arguments: str, **more: object) -> bytes:
        if arguments[0] in ("worktree", "commit", "add") and "list" not in arguments:
            killer.moment()
            found = real_run(folder, *arguments, **more)  # type: ignore[arg-type]
            killer.moment()
            return found
        return real_run(folder, *arguments, **more)  # type: ignore[arg-type]

    journal.append_durably, durable._link_over, worktrees.git.run = append, link_over, run  # type: ignore[assignment]


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """What a run loads late is loaded here once, so that each forked child has it."""
    from npufuse_tui.report import progress
    from npufuse_tui.rewrite import apply, compose, diff, fallback
    from npufuse_tui.rules import load_rules
    from npufuse_tui.scan import file, scanner, work

    assert load_rules() and all((progress, apply, compose, diff, fallback, file, scanner, work))


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked child; the signal that ended it, 0 when it ended by itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def killed_at(top: Path, at: int) -> int:
    def work() -> None:
        with_moments(Killer(at))
        start_and_finish(top)

    return in_child(work)


def tree_of_branch(top: Path) -> str:
    refs = git(top, "for-each-ref", "--format=%(refname)", "refs/heads/npufuse").splitlines()
    return git(top, "rev-parse", f"{refs[0]}^{{tree}}")


def count_moments(top: Path, counted: Path) -> int:
    def work() -> None:
        killer = Killer(None)
        with_moments(killer)
        start_and_finish(top)
        counted.write_text(str(killer.count))

    assert in_child(work) == 0
    return int(counted.read_text())


@pytest.mark.slow
def test_killed_at_every_moment(make_repo: Callable[..., Path], tmp_path: Path) -> None:
    whole = make_repo("whole")
    moments = count_moments(whole, tmp_path / "counted")
    expected = tree_of_branch(whole)
    assert moments > 60
    for at in range(1, moments + 1):
        top = make_repo(f"killed-{at}")
        before = seen_by_person(top)
        assert killed_at(top, at) == signal.SIGKILL, at
        check_after_kill(top, before, expected, at)


@pytest.mark.parametrize("part", [0.15, 0.4, 0.6, 0.8, 0.95])
def test_killed_at_some_moments(make_repo: Callable[..., Path], tmp_path: Path, part: float) -> None:
    whole = make_repo("whole")
    at = int(count_moments(whole, tmp_path / "counted") * part)
    expected = tree_of_branch(whole)
    top = make_repo("killed")
    before = seen_by_person(top)
    assert killed_at(top, at) == signal.SIGKILL
    check_after_kill(top, before, expected, at)


def check_after_kill(top: Path, before: dict[str, object], expected: str, at: int) -> None:
    """Nothing of the person's changed; the session ends as an unbroken one; removing it leaves only its branch."""
    assert seen_by_person(top) == before, at
    try:
        loop = Loop.resume(top)
    except WrongInput:  # killed before there was a session
        assert not list((top / ".git" / "npufuse").glob("*/state.json")), at
        start_and_finish(top)
    else:
        with loop:
            decided = loop.session.approvals
            finish(loop)
            assert loop.session.approvals[: len(decided)] == decided, at
            assert len([one for one in loop.session.tasks if one.commit]) == 2, at
            assert not list(loop.store.folder.glob(".writing-*")), at
    assert tree_of_branch(top) == expected, at
    branch = git(top, "for-each-ref", "--format=%(refname:short)", "refs/heads/npufuse")
    assert git(top, "rev-list", "--count", f"main..{branch}") == "2", at
    assert git(top, "fsck", "--strict") == "", at
    assert seen_by_person(top) == before, at
    with suppress(WrongInput):
        sessions.remove(top, sessions.find(top, None).name)
    assert git(top, "for-each-ref", "refs/npufuse") == "", at
    assert git(top, "worktree", "list").count("\n") == 0, at


def test_power_lost_between_state_and_journal(make_repo: Callable[..., Path]) -> None:
    """A journal cut anywhere in its last line does not keep a session from being resumed."""
    top = make_repo()
    with Loop.start(top, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        loop.approve_recommended()
        folder = loop.store.folder
    path = folder / "journal.jsonl"
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for size in range(start, len(whole), 7):
        path.write_bytes(whole[:size])
        with Loop.resume(top) as again:
            assert len(again.session.approvals) == 2
