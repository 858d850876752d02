"""The loop as the screens and the command line use it, with a verification that a test decides."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from workspace.conftest import git
from workspace.conftest import home as home
from workspace.conftest import make_repo as make_repo
from workspace.conftest import repo as repo

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.events import Committed, Event, TaskChanged
from npufuse_tui.language import same
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Conclusion, Decision, Launch, LossResult, Stage, Task, TaskState


@dataclass
class Decided:
    """What the stand-in for the verification does with each task."""

    outcome: dict[str, Conclusion] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    during: Callable[[Any], None] | None = None


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Decided:
    plan = Decided()

    class Control:
        def __init__(self) -> None:
            self.cancelled: list[str | None] = []
            self.skipped: list[str] = []

        def cancel(self, task_id: str | None = None) -> None:
            self.cancelled.append(task_id)

        def skip(self, task_id: str) -> None:
            self.skipped.append(task_id)

    @dataclass(frozen=True)
    class VerifyOptions:
        backend: str = "auto"
        python: str | None = None
        torch_npu: str | None = None
        candidates: tuple[str, ...] = ()
        extra_rules: tuple[Path, ...] = ()

    def verify(store: Any, options: Any, listen: Callable[[Event], None], control: Any, **hooks: Any) -> None:
        for task in store.session.tasks:
            if task.conclusion is not None:
                continue
            plan.asked.append(task.id)
            if plan.during is not None:
                plan.during(control)
            conclusion = plan.outcome.get(task.rule, Conclusion.ADOPT)
            loss = LossResult(50, 0.001, None, 0.01, 0.0, True, same("fine"))
            done = replace(task, state=TaskState.CONCLUDED, conclusion=conclusion, loss=loss)
            store.put_task(done)
            listen(TaskChanged(done))

    verifier, control = ModuleType("verifier"), ModuleType("control")
    verifier.VerifyOptions, verifier.verify = VerifyOptions, verify  # type: ignore[attr-defined]
    control.Control = Control  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "npufuse_tui.verify.verifier", verifier)
    monkeypatch.setitem(sys.modules, "npufuse_tui.verify.control", control)
    return plan


@pytest.fixture
def loop(repo: Path) -> Iterator[Loop]:
    with Loop.start(repo, LoopOptions(use_cache=False)) as found:
        found.scan()
        found.approve_recommended()
        found.confirm()
        yield found


def test_without_a_launch_command_it_is_blocked_and_says_so(loop: Loop, decided: Decided) -> None:
    heard: list[Event] = []
    session = loop.verify(None, heard.append)
    assert session.stage is Stage.VERIFY and decided.asked == []
    assert [(one.state, one.conclusion) for one in session.tasks] == [(TaskState.BLOCKED, Conclusion.BLOCKED)] * 2
    assert "--run" in session.tasks[0].reason.en
    assert len([one for one in heard if isinstance(one, TaskChanged)]) == 2
    loop.set_launch(Launch("python train.py"))
    session = loop.verify()
    assert session.stage is Stage.REPORT and len(decided.asked) == 2
    assert all(one.commit for one in session.tasks)


def test_passing_ones_are_committed_and_the_others_are_not(loop: Loop, decided: Decided, repo: Path) -> None:
    decided.outcome["swiglu"] = Conclusion.REJECT
    heard: list[Event] = []
    loop.set_launch(Launch("python train.py"))
    session = loop.verify(None, heard.append)
    assert [bool(one.commit) for one in session.tasks] == [one.rule == "rms_norm" for one in session.tasks]
    (commit,) = [one for one in heard if isinstance(one, Committed)]
    message = git(repo, "show", "-s", "--format=%B", commit.commit)
    assert "loss check passed: 50 steps, largest relative difference 0.1%" in message
    # what passed is told with its commit, and the branch is free to be checked out
    assert [one.task.commit for one in heard if isinstance(one, TaskChanged)][-1] == commit.commit
    git(repo, "checkout", "-q", commit.branch)


def test_a_verification_that_breaks_off_keeps_what_passed(loop: Loop, decided: Decided) -> None:
    def during(control: object) -> None:
        if len(decided.asked) == 2:
            raise KeyboardInterrupt

    decided.during = during
    loop.set_launch(Launch("python train.py"))
    with pytest.raises(KeyboardInterrupt):
        loop.verify()
    first, second = loop.session.tasks
    assert first.commit and second.conclusion is None and loop.session.stage is Stage.VERIFY
    decided.during = None
    assert loop.verify().tasks[1].commit
    assert decided.asked == [first.id, second.id, second.id]


def test_cancel_and_skip_reach_the_verification_from_another_thread(loop: Loop, decided: Decided) -> None:
    seen: list[Any] = []

    def during(control: Any) -> None:
        other = threading.Thread(target=lambda: (loop.cancel("x"), loop.skip("y"), loop.cancel()))
        other.start()
        other.join()
        seen.append((list(control.cancelled), list(control.skipped)))

    decided.during = during
    loop.set_launch(Launch("python train.py"))
    loop.verify()
    assert seen[0] == (["x", None], ["y"])


def test_runs_that_outlived_their_npufuse_are_ended_on_resume(repo: Path) -> None:
    loop = Loop.start(repo)
    begun = loop.store.journal.step("verify")
    begun.__enter__()  # and never left: the process died
    loop.close()
    environ = {**os.environ, "NPUFUSE_RUN": f"{loop.store.folder}/baseline-1"}
    ours = subprocess.Popen(
        ["sh", "-c", "echo up; exec sleep 600"], env=environ, stdout=subprocess.PIPE, start_new_session=True
    )
    other = subprocess.Popen(
        ["sleep", "600"], env={**environ, "NPUFUSE_RUN": "another/baseline-1"}, start_new_session=True
    )
    try:
        assert ours.stdout is not None and ours.stdout.readline() == b"up\n"
        with Loop.resume(repo) as again:
            assert again.interrupted == ("verify",)
        assert ours.wait(timeout=10) == -signal.SIGTERM
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        ours.kill()
        ours.communicate()


def test_retry(loop: Loop, decided: Decided) -> None:
    decided.outcome["swiglu"] = Conclusion.REJECT
    loop.set_launch(Launch("python train.py"))
    loop.verify()
    good, bad = loop.session.tasks
    with pytest.raises(KeptSafe, match="committed"):
        loop.retry(good.id)
    with pytest.raises(WrongInput):
        loop.retry("nope")
    session = loop.retry(bad.id, steps=120)
    assert session.launch.steps == 120 and session.stage is Stage.VERIFY
    assert session.tasks[1] == Task(bad.id, bad.rule)
    decided.outcome.clear()
    assert loop.verify().stage is Stage.REPORT
    assert loop.session.tasks[1].commit


def test_the_checkpoint_can_be_reopened_until_something_is_applied(loop: Loop) -> None:
    assert loop.reopen().stage is Stage.CANDIDATES
    loop.to_checkpoint()
    one = loop.session.approvals[0].candidate
    loop.decide([one], Decision.REJECTED)
    loop.confirm()
    loop.apply()
    assert [task.id for task in loop.session.tasks] == [
        two.candidate for two in loop.session.approvals if two.decision is Decision.APPROVED
    ]
    with pytest.raises(KeptSafe):
        loop.reopen()
    assert loop.confirm().stage is Stage.VERIFY


def test_nothing_is_applied_or_verified_unconfirmed(repo: Path, decided: Decided) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        loop.approve_recommended()
        for act in (loop.apply, loop.verify):
            with pytest.raises(KeptSafe, match="confirm"):
                act()
    assert git(repo, "branch", "--list", "npufuse/*") == ""


def test_reports_and_the_text_of_a_pull_request(loop: Loop, decided: Decided, tmp_path: Path) -> None:
    loop.set_launch(Launch("python train.py"))
    loop.verify()
    paths = loop.write_reports()
    assert all(one.is_file() and one.is_relative_to(loop.store.folder) for one in paths.all)
    assert len(paths.validation) == 2
    elsewhere = loop.write_reports(folder=tmp_path / "out")
    assert elsewhere.index.is_relative_to(tmp_path / "out")
    assert "npu_rms_norm" in loop.pull_request_text()


def test_a_branch_that_was_deleted_is_made_again_with_its_commits(loop: Loop, decided: Decided, repo: Path) -> None:
    decided.outcome["swiglu"] = Conclusion.REJECT
    loop.set_launch(Launch("python train.py"))
    loop.verify()
    branch, bad = str(loop.session.branch), loop.session.tasks[1]
    git(repo, "branch", "-D", branch)
    loop.retry(bad.id)
    decided.outcome.clear()
    loop.apply()
    loop.verify()
    assert git(repo, "rev-list", "--count", f"main..{branch}") == "2"
