"""The sequence of a session's tasks, with plain folders for worktrees and real subprocesses."""

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from npufuse_tui import events
from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import (
    Backend,
    Candidate,
    Check,
    Conclusion,
    Launch,
    Priority,
    ScanResult,
    Session,
    Stage,
    Task,
    TaskState,
    Verdict,
)
from npufuse_tui.verify import verifier
from npufuse_tui.verify.capture_records import Captured
from npufuse_tui.verify.control import Control
from npufuse_tui.verify.runner import DiskFull
from npufuse_tui.verify.verifier import VerifyOptions, verify

SCRIPT = """
factor = float(open("factor").read())
for i in range(60):
    print(f"step {i} loss {(3 - i / 50) * (factor if i >= 25 else 1):.6f}", flush=True)
"""


def candidate(name):
    said = Text("x", "x")
    return Candidate(
        name, "rms_norm", "llama", "torch_npu.npu_rms_norm", "a.py", "f", 1, 2, "g", Verdict.RECOMMENDED, Priority.HIGH,
        said, "", None, None, None,
    )  # fmt: skip


class Store:
    def __init__(self, folder, names, command):
        self.folder, self.root = folder, folder
        scan = ScanResult(str(folder), "c", False, 1, 1, 1, 0.1, 0, (), (), tuple(candidate(one) for one in names))
        self.session = Session(
            "s", "now", str(folder), None, "c" * 40, None, Stage.VERIFY, scan,
            launch=Launch(command, sys.executable, 50, 120.0), tasks=tuple(Task(one, "rms_norm") for one in names),
        )  # fmt: skip
        self.states = []
        self.guard = threading.RLock()

    def update(self, **fields):
        with self.guard:
            self.session = replace(self.session, **fields)
            return self.session

    def put_task(self, task):
        with self.guard:
            self.states.append((task.id, task.state))
            return self.update(tasks=tuple(task if one.id == task.id else one for one in self.session.tasks))

    def task(self, name):
        return next(one for one in self.session.tasks if one.id == name)


class Trees:
    def __init__(self, folder, factors):
        self.folder, self.factors, self.made = folder, factors, []

    def _make(self, name, factor):
        self.made.append(name)
        tree = self.folder / "trees" / name
        tree.mkdir(parents=True, exist_ok=True)
        (tree / "train.py").write_text(SCRIPT)
        (tree / "factor").write_text(str(factor))
        return tree

    def baseline(self):
        return self._make("baseline", self.factors.get("baseline", 1.0))

    def candidate(self, name):
        return self._make(name, self.factors[name])

    def root_in(self, tree):
        return tree

    def release(self, name):
        pass


def passed(candidate, captured):
    return Check("passed", Backend.EMULATED, 1, 1.0, 0.0, 1.0, True)


def failed(candidate, captured):
    return Check("failed", Backend.EMULATED, 1, 0.5, 1.0, 0.5, True, "cosine 0.5", reason_zh="余弦 0.5")


def captured(launch, tree, candidates, folder, environ):
    return {one.id: Captured(one.id, "called", Text("called", "called"), 1) for one in candidates}


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A verification over plain folders; the interpreter is not asked for torch, operators count as called."""

    def prepare(self):
        import os

        self.python, self.environ = Path(sys.executable), dict(os.environ)
        self.store.update(backend=self.backend)

    monkeypatch.setattr(verifier._Verification, "_prepare", prepare)
    monkeypatch.setattr(verifier._Verification, "_called", lambda self, record: {"npu_rms_norm"})

    def go(
        factors,
        *,
        store=None,
        options=None,
        control=None,
        check=passed,
        capture=captured,
        listen=None,
        command=None,
        **more,
    ):
        names = [one for one in factors if one != "baseline"]
        store = store or Store(tmp_path, names, command or f"{sys.executable} train.py")
        told = []
        verify(
            store, options or VerifyOptions(), listen or told.append, control,
            worktrees=Trees(tmp_path, factors), capture=capture, operator_check=check, **more,
        )  # fmt: skip
        store.told = told
        return store

    return go


def test_passing_candidate_is_adopted_and_committed(house):
    commits = []
    store = house({"one": 1.0}, commit=commits.append)
    task = store.task("one")
    assert (task.state, task.conclusion) == (TaskState.CONCLUDED, Conclusion.ADOPT)
    assert task.loss.passed and task.loss.steps == 50 and task.speed.conclusion == "not measured"
    assert "emulated" in task.speed.reason.en and commits == ["one"]
    assert [state for _, state in store.states] == [
        TaskState.OP_CHECK, TaskState.PENDING, TaskState.LOSS_CHECK, TaskState.SPEED_CHECK, TaskState.CONCLUDED,
    ]  # fmt: skip
    assert store.session.baseline.status == "passed" and len(store.session.baseline.runs) == 2
    for record in (*store.session.baseline.runs, *task.runs):
        assert (store.folder / record.log).is_file() and (store.folder / record.metrics).is_file()
    kinds = [type(one).__name__ for one in store.told]
    assert kinds.count("StepRead") == 150 and kinds.count("RunStarted") == kinds.count("RunFinished") == 4
    assert (
        sum("steps are read as plain prints" in one.text.en for one in store.told if isinstance(one, events.Message))
        == 1
    )


def test_loss_beyond_the_limit_is_rejected_without_a_speed_check(house):
    store = house({"one": 1.03, "two": 1.0})
    one = store.task("one")
    assert (one.state, one.conclusion, one.speed) == (TaskState.LOSS_FAILED, Conclusion.REJECT, None)
    assert one.loss.first_fail_step == 25
    assert store.task("two").conclusion is Conclusion.ADOPT


def test_operator_failure_runs_nothing_further(house):
    store = house({"one": 1.0}, check=failed)
    task = store.task("one")
    assert (task.state, task.conclusion, task.runs) == (TaskState.OP_FAILED, Conclusion.REJECT, ())
    assert "cosine 0.5" in task.reason.en and "余弦 0.5" in task.reason.zh
    assert store.session.baseline is None


def test_never_called_is_blocked_and_says_so(house):
    def never(launch, tree, candidates, folder, environ):
        return {one.id: Captured(one.id, "never called", Text("not on the path", "不在路径上")) for one in candidates}

    task = house({"one": 1.0}, capture=never).task("one")
    assert task.conclusion is Conclusion.BLOCKED and "not on the path" in task.reason.en


def test_fused_branch_that_was_not_taken_proves_nothing(house, monkeypatch):
    monkeypatch.setattr(verifier._Verification, "_called", lambda self, record: set())
    task = house({"one": 1.0}).task("one")
    assert task.conclusion is Conclusion.BLOCKED and "never called torch_npu.npu_rms_norm" in task.reason.en


def test_baseline_that_fails_blocks_all_with_its_last_line(house):
    store = house({"one": 1.0, "two": 1.0}, command="echo no such data; exit 3")
    assert store.session.baseline.status == "failed"
    for name in ("one", "two"):
        task = store.task(name)
        assert task.conclusion is Conclusion.BLOCKED
        assert "exit code 3" in task.reason.en and "no such data" in task.reason.en


def test_no_steps_says_how_to_go_on(house):
    task = house({"one": 1.0}, command="echo hello").task("one")
    assert task.conclusion is Conclusion.BLOCKED and "--pattern" in task.reason.en


def test_candidate_that_dies_failed_to_run_not_precision(house):
    task = house({"one": 1.0}, command="[ ${PWD##*/} != one ] || { echo crashed; exit 9; }; python3 train.py").task(
        "one"
    )
    assert (task.state, task.conclusion, task.loss) == (TaskState.CONCLUDED, Conclusion.REJECT, None)
    assert "failed to run" in task.reason.en and "crashed" in task.reason.en


def test_slower_is_rejected_on_a_device(house, monkeypatch):
    script = (
        "import os; slow = 2 if 'baseline' in os.getcwd() else 3\n"
        "for i in range(60): print('step', i, 'loss 2.0 time', f'0.0{slow}{i % 7}')"
    )
    on_a_device(monkeypatch)
    task = house({"one": 1.0}, command=f'{sys.executable} -c "{script}"').task("one")
    assert task.speed.conclusion == "slower" and task.conclusion is Conclusion.REJECT


def on_a_device(monkeypatch):
    """As if an NPU had answered: `_prepare` decides the backend, and this one decides for it."""
    prepare = verifier._Verification._prepare

    def prepared(self):
        self.backend = Backend.NPU
        prepare(self)

    monkeypatch.setattr(verifier._Verification, "_prepare", prepared)


def test_interleaved_runs_take_turns(house, monkeypatch):
    on_a_device(monkeypatch)
    store = house({"one": 1.0}, options=VerifyOptions(interleave=2))
    labels = [one.label for one in store.told if isinstance(one, events.RunStarted)]
    assert labels[-4:] == ["speed-baseline-1", "speed-candidate-1", "speed-baseline-2", "speed-candidate-2"]
    task = store.task("one")
    assert [one.label for one in task.runs] == ["candidate", *labels[-4:]]
    assert task.speed.conclusion in ("faster", "slower", "no difference shown", "not measured")


def test_finished_runs_are_not_run_again(house):
    store = house({"one": 1.0})
    runs = store.session.baseline.runs
    store.put_task(Task("one", "rms_norm", TaskState.INTERRUPTED, op=store.task("one").op))
    calls = []
    house({"one": 1.0}, store=store, check=lambda *given: calls.append(1))
    assert store.session.baseline.runs == runs and calls == []
    assert store.task("one").conclusion is Conclusion.ADOPT


def test_one_baseline_run_that_was_finished_is_kept(house):
    store = house({"one": 1.0})
    first = store.session.baseline.runs[0]
    store.update(baseline=replace(store.session.baseline, status="pending", runs=(first,)))
    store.put_task(Task("one", "rms_norm", op=store.task("one").op))
    house({"one": 1.0}, store=store)
    assert store.session.baseline.runs[0] == first and len(store.session.baseline.runs) == 2


def test_another_command_needs_another_baseline(house):
    store = house({"one": 1.0})
    first = store.session.baseline.runs[0]
    store.update(launch=replace(store.session.launch, command=f"{sys.executable} -u train.py"))
    store.put_task(Task("one", "rms_norm", op=store.task("one").op))
    house({"one": 1.0}, store=store)
    assert store.session.baseline.runs[0].log != first.log


def test_cancel_interrupts_and_can_be_resumed(house):
    control = Control()

    def listen(event):
        if isinstance(event, events.StepRead) and event.task == "one" and event.metric.step == 3:
            control.cancel()

    store = house({"one": 1.0, "two": 1.0}, control=control, listen=listen)
    assert store.task("one").state is TaskState.INTERRUPTED and store.task("one").conclusion is None
    assert store.task("two").conclusion is None
    house({"one": 1.0, "two": 1.0}, store=store)
    assert {one.conclusion for one in store.session.tasks} == {Conclusion.ADOPT}


def test_cancel_in_the_baseline(house):
    control = Control()

    def listen(event):
        if isinstance(event, events.StepRead):
            control.cancel()

    store = house({"one": 1.0}, control=control, listen=listen)
    assert store.session.baseline.status == "pending" and store.task("one").conclusion is None


def test_skip_leaves_the_others(house):
    control = Control()
    control.skip("one")
    store = house({"one": 1.0, "two": 1.0}, control=control)
    assert store.task("one").reason.en == "skipped" and store.task("one").conclusion is None
    assert store.task("two").conclusion is Conclusion.ADOPT


def test_retry_while_it_runs(house):
    control, asked = Control(), []

    def listen(event):
        if isinstance(event, events.TaskChanged) and event.task.conclusion and not asked:
            asked.append(1)
            control.retry("one")

    store = house({"one": 1.0}, control=control, listen=listen)
    assert sum(state is TaskState.CONCLUDED for _, state in store.states) == 2


def test_full_disk_keeps_what_was_found(house, monkeypatch):
    store = house({"one": 1.0})
    store.put_task(Task("one", "rms_norm", op=store.task("one").op))

    def full(*given, **more):
        raise DiskFull(Text("the disk is full", "磁盘已满"))

    monkeypatch.setattr(verifier, "run", full)
    with pytest.raises(DiskFull):
        house({"one": 1.0}, store=store)
    assert store.task("one").state is TaskState.INTERRUPTED and store.task("one").op.status == "passed"
    assert store.session.baseline.status == "passed"


def test_several_at_once_on_their_devices(house, tmp_path):
    script = "import os; open(os.environ['SEEN'], 'a').write(os.environ.get('ASCEND_RT_VISIBLE_DEVICES', '-') + os.sep)"
    command = f'SEEN={tmp_path}/seen {sys.executable} -c "{script}"; {sys.executable} train.py'
    factors = dict.fromkeys(("one", "two", "three"), 1.0)
    store = house(factors, command=command, options=VerifyOptions(jobs=2, devices=("4", "5")))
    assert {one.conclusion for one in store.session.tasks} == {Conclusion.ADOPT}
    assert set((tmp_path / "seen").read_text().split("/")) - {""} <= {"4", "5"}
    with pytest.raises(WrongInput):
        house(factors, options=VerifyOptions(jobs=3, devices=("4", "5")))


def test_metric_and_saved_file_instead_of_a_loss(house):
    command = "echo accuracy: $(cat factor); echo answer > out.txt"
    options = VerifyOptions(metric="accuracy", compare=("out.txt",))
    store = house({"one": 1.0, "two": 1.5}, command=command, options=options)
    assert store.task("one").conclusion is Conclusion.ADOPT and "out.txt" in store.task("one").reason.en
    assert store.task("two").state is TaskState.LOSS_FAILED
    store = house(
        {"three": 1.0},
        command="cp factor out.txt; echo ${PWD##*/} > out.txt",
        options=VerifyOptions(compare=("out.txt",)),
    )
    assert store.task("three").state is TaskState.LOSS_FAILED and "line 1" in store.task("three").reason.en


def test_without_a_launch_command(house, tmp_path):
    store = Store(tmp_path, ["one"], "x")
    store.session = replace(store.session, launch=None)
    with pytest.raises(WrongInput, match="--run"):
        house({"one": 1.0}, store=store)
