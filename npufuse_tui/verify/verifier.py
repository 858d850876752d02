"""The verification of a session's tasks, one step after the other, each saved before and after.

    operator check (capture, then both versions on what was captured) → baseline, twice → loss check → speed check

Every candidate stands alone against the unmodified base. A failure ends the candidate there. What was running when a
process died is run again; what was finished is not.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from npufuse_tui.errors import NpufuseError, WrongInput
from npufuse_tui.events import (
    BaselineChanged,
    Listener,
    Message,
    RunFinished,
    RunStarted,
    StepRead,
    TaskChanged,
    ignore,
)
from npufuse_tui.language import Text
from npufuse_tui.model import (
    Backend,
    Baseline,
    Candidate,
    Check,
    Conclusion,
    Launch,
    Metric,
    RunRecord,
    Session,
    SpeedResult,
    Task,
    TaskState,
)
from npufuse_tui.verify import processes
from npufuse_tui.verify.control import Control
from npufuse_tui.verify.loss_check import LIMIT, EarlyStop, differences, judge
from npufuse_tui.verify.metrics import read_metrics
from npufuse_tui.verify.reading import Parser
from npufuse_tui.verify.runner import Run, RunRequest, run
from npufuse_tui.verify.speed_check import EMULATED, MIN_GAIN, measure

if TYPE_CHECKING:
    from npufuse_tui.verify.capture_records import Captured

_RUNNING = (TaskState.OP_CHECK, TaskState.LOSS_CHECK, TaskState.SPEED_CHECK)


class Store(Protocol):
    """What is needed of a session's store; every change is on disk when the call returns."""

    @property
    def folder(self) -> Path: ...

    @property
    def root(self) -> Path: ...

    @property
    def session(self) -> Session: ...

    def update(self, **fields: object) -> Session: ...

    def put_task(self, task: Task) -> Session: ...


class Trees(Protocol):
    """Where the runs take place."""

    def baseline(self) -> Path: ...

    def candidate(self, candidate_id: str, /) -> Path: ...

    def root_in(self, worktree: Path, /) -> Path: ...

    def release(self, name: str, /) -> None: ...


Capture = Callable[[Launch, Path, Sequence[Candidate], Path, Mapping[str, str]], "dict[str, Captured]"]
OperatorCheck = Callable[[Candidate, "Captured | None"], Check]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How a verification is done.

    Attributes:
        backend: "auto" (an NPU where one answers, else emulated), "npu", "emulated".
        python: the interpreter of the user's model; None finds the one of the launch command.
        torch_npu: the version to emulate; None for the installed one, else the newest known.
        candidates: the tasks that are run; empty for all without a conclusion.
        steps, time_limit: instead of the launch's own.
        idle_limit: seconds without any output after which a run is ended.
        loss_limit: relative difference of one step's loss that is allowed.
        warmup: steps dropped from the times; None finds them.
        min_gain: by which the whole interval must be faster.
        interleave: pairs of further runs (baseline, candidate) for the speed check; 0 takes the loss check's times.
        jobs, devices: so many candidates at once, each on one of these devices (ASCEND_RT_VISIBLE_DEVICES).
        pattern: a regular expression with named groups that reads the steps; None finds the format.
        metric: the name of a number that is compared instead of the loss.
        compare: files that the command saves, compared too; paths from where the command runs.
        keep_inputs: the operator check takes the recorded tensors, not random ones of their kind.
        extra_rules: files or folders of rules that the person asked for.
    """

    backend: str = "auto"
    python: str | None = None
    torch_npu: str | None = None
    candidates: tuple[str, ...] = ()
    steps: int | None = None
    time_limit: float | None = None
    idle_limit: float | None = 1800.0
    loss_limit: float = LIMIT
    warmup: int | None = None
    min_gain: float = MIN_GAIN
    interleave: int = 0
    jobs: int = 1
    devices: tuple[str, ...] = ()
    pattern: str | None = None
    metric: str | None = None
    compare: tuple[str, ...] = ()
    keep_inputs: bool = False
    extra_rules: tuple[Path, ...] = ()


def verify(
    store: Store,
    options: VerifyOptions | None = None,
    listen: Listener = ignore,
    control: Control | None = None,
    *,
    worktrees: Trees | None = None,
    capture: Capture | None = None,
    operator_check: OperatorCheck | None = None,
    commit: Callable[[str], None] | None = None,
) -> Session:
    """Run every wanted task that has no conclusion to its conclusion; the session as it then is.

    `commit` is told the id of each task as soon as it is to be adopted. The other hooks stand in for the real
    worktrees, capture and operator check. Raises WrongInput without a launch command or for options that do not fit,
    MachineLacks for an interpreter without torch, an NPU that was demanded and does not answer, or a full disk; the
    tasks in flight are then interrupted, and all that was found before is saved.
    """
    return _Verification(
        store, options or VerifyOptions(), listen, control or Control(), worktrees, capture, operator_check, commit
    ).go()


class _Stopped(Exception):
    """The task (or all) was cancelled or skipped."""


class _Verification:
    def __init__(
        self,
        store: Store,
        options: VerifyOptions,
        listen: Listener,
        control: Control,
        worktrees: Trees | None,
        capture: Capture | None,
        operator_check: OperatorCheck | None,
        commit: Callable[[str], None] | None,
    ) -> None:
        from npufuse_tui.verify.parsers.custom import from_expression, from_metric

        launch = store.session.launch
        if launch is None or not launch.command.strip():
            raise WrongInput(
                Text(
                    "there is no launch command: give the command that trains or runs the model, with --run",
                    "没有启动命令：请用 --run 给出训练或运行模型的命令",
                )
            )
        if options.jobs < 1 or (options.devices and options.jobs > len(options.devices)):
            raise WrongInput(
                Text(
                    "--jobs {jobs} does not fit --devices {devices}: give at least one device for each job",
                    "--jobs {jobs} 与 --devices {devices} 不匹配：每个任务至少需要一个设备",
                ).format(jobs=options.jobs, devices=",".join(options.devices) or "-")
            )
        self.parser: Parser | None = None
        if options.pattern is not None:
            self.parser = from_expression(options.pattern)
        elif options.metric is not None:
            self.parser = from_metric(options.metric)
        self.steps = options.steps or launch.steps
        self.until = None if options.metric or options.compare else self.steps
        if options.metric:
            self.steps = 1
        self.store, self.options, self.listen, self.control = store, options, listen, control
        self.launch = replace(launch, time_limit=options.time_limit or launch.time_limit)
        self._trees, self._capture, self._operator_check, self.commit = worktrees, capture, operator_check, commit
        self._guard = threading.Lock()
        self._baseline_tree = threading.Lock()
        self._told_format = False
        self.backend = Backend.EMULATED
        self.environ: dict[str, str] = {}
        self.python = Path()

    # the sequence

    def go(self) -> Session:
        wanted = self._wanted()
        if not wanted:
            return self.store.session
        self._prepare()
        processes.end(f"{self.store.folder}/")  # of a verification whose process was killed
        try:
            self._check_operators([one.id for one in wanted])
            self._run_all([one.id for one in wanted])
            while again := self.control.take_retries():
                for identity, steps in again.items():
                    self.steps = steps or self.steps
                    self._put(Task(identity, self._task(identity).rule))
                self._check_operators(list(again))
                self._run_all(list(again))
        except _Stopped:
            self._interrupt(Text("cancelled", "已取消"))
        except NpufuseError as error:
            self._interrupt(error.text)
            raise
        except BaseException:
            self._interrupt(Text("npufuse ended while this was running", "npufuse 在其运行时结束"))
            raise
        return self.store.session

    def _wanted(self) -> list[Task]:
        chosen = set(self.options.candidates)
        return [one for one in self.store.session.tasks if one.conclusion is None and (not chosen or one.id in chosen)]

    def _prepare(self) -> None:
        """The interpreter, the backend and the environment of all runs."""
        from npufuse_tui.proof.check import backend_of
        from npufuse_tui.proof.interpreter import find_python, probe

        asked = self.options.python or self.launch.python
        self.python = find_python(asked, self.launch, self.store.root)
        interpreter = probe(self.python)
        interpreter.demand_torch()
        self.backend = backend_of(self.options.backend, interpreter)
        environ = {**os.environ, **dict(self.launch.environment)}
        environ.setdefault("PYTHONHASHSEED", "0")
        if asked is not None:
            environ["PATH"] = os.pathsep.join(filter(None, [str(self.python.parent), environ.get("PATH", "")]))
        if self.backend is Backend.EMULATED:
            from npufuse_tui.emulator.environment import emulated

            environ = emulated(environ, version=self.options.torch_npu, strict=True)
        else:
            environ.update(dict(interpreter.environment))
        if self.options.jobs > 1:  # the same for the baseline, so that sums are taken in the same order
            environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // self.options.jobs)))
        self.environ = environ
        self.store.update(backend=self.backend)

    def _check_operators(self, wanted: Sequence[str]) -> None:
        """Capture once for all that need it, then the operator check of each."""
        open_ones = [
            one for one in wanted if self._task(one).op is None and not self._passed_over(one) and self._has(one)
        ]
        if not open_ones:
            return
        for identity in open_ones:
            task = self._task(identity)
            self._put(replace(task, state=TaskState.OP_CHECK, reason=None, started=task.started or _now()))
        captured = self._captured([self._candidate(one) for one in open_ones])
        for identity in open_ones:
            if self._passed_over(identity):
                continue
            self.listen(Message(Text("operator check of {id}", "正在校验算子：{id}").format(id=identity)))
            check = self._checked(self._candidate(identity), captured.get(identity))
            if self.control.stopped(identity):
                self._passed_over(identity)
                continue
            self._judge_operator(identity, check, captured.get(identity))

    def _has(self, identity: str) -> bool:
        scan = self.store.session.scan
        return scan is not None and any(one.id == identity for one in scan.candidates)

    def _judge_operator(self, identity: str, check: Check, captured: Captured | None) -> None:
        task = replace(self._task(identity), op=check)
        if check.status == "failed":
            reason = Text("the operator check failed: {why}", "算子校验未通过：{why}").format(
                why=check.reason_text or "?"
            )
            self._conclude(task, TaskState.OP_FAILED, Conclusion.REJECT, reason)
        elif captured is not None and captured.status in ("never called", "not reached"):
            self._conclude(task, TaskState.BLOCKED, Conclusion.BLOCKED, captured.reason)
        else:
            self._put(replace(task, state=TaskState.PENDING))

    def _captured(self, candidates: Sequence[Candidate]) -> dict[str, Captured]:
        self.trees.release("baseline")
        tree = self.trees.root_in(self.trees.baseline())
        folder = self.store.folder / "capture"
        mark = f"{self.store.folder}/capture"
        log = folder / "output.log"
        self.listen(RunStarted(None, "capture", self.launch.command, str(log)))
        hook = self._capture or self._real_capture
        try:
            found = hook(self.launch, tree, candidates, folder, {**self.environ, processes.MARK: mark})
        finally:
            processes.end(mark)
        ended = "cancelled" if self.control.stopped() else "finished"
        self.listen(RunFinished(None, "capture", ended))
        if self.control.stopped():
            raise _Stopped
        return found

    def _real_capture(
        self, launch: Launch, tree: Path, candidates: Sequence[Candidate], folder: Path, environ: Mapping[str, str]
    ) -> dict[str, Captured]:
        from npufuse_tui.verify.capture import CaptureOptions, capture

        options = CaptureOptions(
            time_limit=launch.time_limit or 600.0,
            keep_inputs=self.options.keep_inputs,
            extra_rules=self.options.extra_rules,
            cancelled=self.control.stopped,
        )
        return capture(launch, tree, candidates, folder, environ, options)

    def _checked(self, candidate: Candidate, captured: Captured | None) -> Check:
        if self._operator_check is not None:
            return self._operator_check(candidate, captured)
        from npufuse_tui.proof.check import ProofOptions
        from npufuse_tui.verify.operator_check import operator_check

        options = ProofOptions(
            python=self.python,
            backend=self.backend.value,
            torch_npu=self.options.torch_npu,
            extra_rules=self.options.extra_rules,
            cancelled=lambda: self.control.stopped(candidate.id),
        )
        return operator_check(candidate, captured, options)

    def _run_all(self, wanted: Sequence[str]) -> None:
        """The baseline where any task needs it, then loss and speed of each, several at once if asked."""
        left = [one for one in wanted if self._task(one).conclusion is None and not self._passed_over(one)]
        if not left:
            return
        baseline = self._baseline()
        if baseline.status != "passed":
            for identity in left:
                self._conclude(
                    self._task(identity),
                    TaskState.BLOCKED,
                    Conclusion.BLOCKED,
                    Text("the unmodified code could not be run: {why}", "未修改的代码无法运行：{why}").format(
                        why=baseline.reason or "?"
                    ),
                )
            return
        slots = list(range(self.options.jobs))
        guard = threading.Lock()

        def one(identity: str) -> None:
            with guard:
                slot = slots.pop()
            try:
                self._one(identity, slot)
            except _Stopped:
                self._passed_over(identity)
            except BaseException:
                self.control.cancel()
                raise
            finally:
                with guard:
                    slots.append(slot)

        if self.options.jobs == 1:
            for identity in left:
                one(identity)
            return
        with ThreadPoolExecutor(self.options.jobs, "npufuse-verify") as pool:
            for future in [pool.submit(one, identity) for identity in left]:
                future.result()

    # the baseline

    def _baseline(self) -> Baseline:
        """Two runs of the unmodified code; those that were finished by an earlier verification are taken."""
        had = self.store.session.baseline
        runs = [one for one in (had.runs if had else ()) if self._fits(one)][:2]
        if len(runs) == 2 and had is not None and had.status == "passed":
            return had
        self._put_baseline(Baseline("running", runs=tuple(runs)))
        while len(runs) < 2:
            label = f"baseline-{len(runs) + 1}"
            done = self._run(None, label, 0)
            if done.record.ended == "cancelled":
                self._put_baseline(Baseline("pending", runs=tuple(runs), reason=Text("cancelled", "已取消")))
                raise _Stopped
            runs.append(done.record)
            why = self._unfit(done)
            if why is not None:
                return self._put_baseline(Baseline("failed", done.record.steps, None, tuple(runs), why))
            self._put_baseline(Baseline("running", done.record.steps, None, tuple(runs)))
        noise = max((value for _, value in differences(self._metrics(runs[0]), self._metrics(runs[1]))), default=None)
        return self._put_baseline(Baseline("passed", runs[0].steps, noise, tuple(runs)))

    def _fits(self, record: RunRecord) -> bool:
        """Whether a run of an earlier verification serves for this one."""
        return (
            record.ended == "finished"
            and record.command == self.launch.command
            and (self.until is None or record.steps >= min(self.until, 1))
            and record.metrics is not None
            and (self.store.folder / record.metrics).is_file()
            and (self.until is None or len(self._metrics(record)) >= self.until or record.exit_code is not None)
            and all(self._saved(record, name).is_file() for name in self.options.compare)
        )

    def _unfit(self, done: Run) -> Text | None:
        """Why nothing can be compared with a run; None when it can."""
        if done.record.ended != "finished":
            return _failure(done.record)
        if not done.metrics and not self.options.compare:
            return Text(
                "no steps were found in its log {log}: print a line with step and loss, or give --pattern, --metric "
                "or --compare",
                "日志 {log} 中没有训练步：请打印包含 step 和 loss 的行，或给出 --pattern、--metric 或 --compare",
            ).format(log=done.record.log)
        return None

    # one task

    def _one(self, identity: str, slot: int) -> None:
        if self._passed_over(identity):
            return
        baseline = self.store.session.baseline
        assert baseline is not None
        base = [self._metrics(one) for one in baseline.runs[:2]]
        task = replace(
            self._task(identity),
            state=TaskState.LOSS_CHECK,
            reason=None,
            started=self._task(identity).started or _now(),
        )
        self._put(task)
        stop = EarlyStop(base[0], self.options.loss_limit)
        done = self._run(identity, "candidate", slot, stop)
        if done.record.ended == "cancelled":
            raise _Stopped
        task = replace(task, runs=(*task.runs, done.record))
        if done.record.ended == "timed out":
            self._conclude(task, TaskState.BLOCKED, Conclusion.BLOCKED, _failure(done.record))
            return
        if done.record.ended == "failed":
            self._conclude(task, TaskState.CONCLUDED, Conclusion.REJECT, _failure(done.record))
            return
        unused = self._unused(identity, done.record)
        if unused is not None:
            self._conclude(task, TaskState.BLOCKED, Conclusion.BLOCKED, unused)
            return
        differs = self._compare_files(baseline.runs[0], done.record)
        if differs is not None and not differs[0]:
            self._conclude(task, TaskState.LOSS_FAILED, Conclusion.REJECT, differs[1])
            return
        said = differs[1] if differs is not None else None
        if base[0] or differs is None:
            stopped = done.record.reason if done.record.ended == "stopped early" else None
            loss = judge(
                base[0],
                base[1] if len(base) > 1 else None,
                done.metrics,
                steps=self.steps,
                limit=self.options.loss_limit,
                stopped=stopped,
            )
            task = replace(task, loss=loss)
            if loss.passed is not True:
                if loss.passed is None:
                    self._conclude(task, TaskState.BLOCKED, Conclusion.BLOCKED, loss.reason)
                else:
                    self._conclude(task, TaskState.LOSS_FAILED, Conclusion.REJECT, loss.reason)
                return
            said = loss.reason if said is None else Text("{0}; {1}", "{0}；{1}").format(loss.reason, said)
        assert said is not None
        task = replace(task, state=TaskState.SPEED_CHECK)
        self._put(task)
        task, speed = self._speed(task, baseline, done, slot)
        task = replace(task, speed=speed)
        reason = Text("{precision}; speed: {speed}", "{precision}；性能：{speed}").format(
            precision=said, speed=speed.reason
        )
        slower = speed.conclusion == "slower"
        self._conclude(task, TaskState.CONCLUDED, Conclusion.REJECT if slower else Conclusion.ADOPT, reason)
        if self.commit is not None and not slower:
            with self._guard:
                self.commit(identity)

    def _unused(self, identity: str, record: RunRecord) -> Text | None:
        """Why the run says nothing about the candidate: its fused operator was not called; None when it was.

        Only the emulator tells which operators ran.
        """
        if self.backend is not Backend.EMULATED or not self._has(identity):
            return None
        api = self._candidate(identity).api
        if api.rpartition(".")[2] in self._called(record):
            return None
        baseline = self.store.session.baseline
        before = self._called(baseline.runs[0]) if baseline is not None else set()
        if self._called(record) - before:
            return None
        return Text(
            "nothing was measured: the run never called {api}, so the fused branch was not taken",
            "未能测量：该次运行从未调用 {api}，即没有进入融合分支",
        ).format(api=api)

    def _called(self, record: RunRecord) -> set[str]:
        """The operators that the emulator saw in a run."""
        found = set()
        try:
            lines = _emulator_log(self.store.folder / record.log).read_text("utf-8", "replace").splitlines()
        except OSError:
            return set()
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and row.get("event") == "first call":
                found.add(str(row.get("operator")).rpartition(".")[2])
        return found

    def _speed(self, task: Task, baseline: Baseline, done: Run, slot: int) -> tuple[Task, SpeedResult]:
        if self.backend is Backend.EMULATED:
            return task, SpeedResult("not measured", EMULATED)
        base, fused = list(baseline.runs[:2]), [done.record]
        if self.options.interleave:
            base, fused = [], []
            for number in range(1, self.options.interleave + 1):
                for label, side, whose in (("baseline", base, None), ("candidate", fused, task.id)):
                    one = self._run(task.id, f"speed-{label}-{number}", slot, tree=whose or "baseline")
                    if one.record.ended == "cancelled":
                        raise _Stopped
                    task = replace(task, runs=(*task.runs, one.record))
                    self._put(task)
                    if one.record.ended != "finished":
                        return task, SpeedResult(
                            "not measured",
                            Text("not measured: {why}", "未测量：{why}").format(why=_failure(one.record)),
                        )
                    side.append(one.record)
        return task, measure(
            [self._metrics(one) for one in base],
            [self._metrics(one) for one in fused],
            warmup=self.options.warmup,
            min_gain=self.options.min_gain,
            sources=[one.step_time_source for one in (*base, *fused)],
        )

    def _compare_files(self, base: RunRecord, other: RunRecord) -> tuple[bool, Text] | None:
        from npufuse_tui.verify.compare_files import compare

        found = [
            compare(self._saved(base, name), self._saved(other, name), self.python, self.environ, name)
            for name in self.options.compare
        ]
        if not found:
            return None
        failed = [one.reason for one in found if not one.passed]
        said = (failed or [one.reason for one in found])[0]
        return not failed, said

    # one run

    def _run(
        self,
        task: str | None,
        label: str,
        slot: int,
        stop: Callable[[Metric], Text | None] = lambda metric: None,
        tree: str | None = None,
    ) -> Run:
        """One run of the launch command in a fresh worktree, told step by step."""
        where = tree or task or "baseline"
        if where == "baseline":
            with self._baseline_tree:
                return self._run_in(task, label, slot, stop, where)
        return self._run_in(task, label, slot, stop, where)

    def _run_in(
        self, task: str | None, label: str, slot: int, stop: Callable[[Metric], Text | None], where: str
    ) -> Run:
        self.trees.release(where)  # what an earlier run has written there shall not be found by this one
        tree = self.trees.baseline() if where == "baseline" else self.trees.candidate(where)
        name = self._free_name(f"{task}-{label}" if task else label)
        log, metrics = self.store.folder / "logs" / f"{name}.log", self.store.folder / "metrics" / f"{name}.jsonl"
        environ = dict(self.environ)
        if self.backend is Backend.EMULATED:
            environ["NPUFUSE_EMULATED_LOG"] = str(_emulator_log(log))
        if self.options.devices:
            environ["ASCEND_RT_VISIBLE_DEVICES"] = self.options.devices[slot]
        if self.options.jobs > 1:
            environ.setdefault("MASTER_PORT", str(29500 + slot))
            environ.setdefault("PET_MASTER_PORT", environ["MASTER_PORT"])
        request = RunRequest(
            command=self.launch.command,
            cwd=self.trees.root_in(tree),
            environ=environ,
            log=log,
            metrics=metrics,
            label=label,
            commit=self.store.session.base or "",
            mark=f"{self.store.folder}/{name}",
            steps=self.until,
            time_limit=self.launch.time_limit,
            idle_limit=self.options.idle_limit,
            parser=self.parser,
            warmup=self.options.warmup,
        )

        def step(metric: Metric) -> Text | None:
            self.listen(StepRead(task, label, metric))
            return stop(metric)

        self.listen(RunStarted(task, label, self.launch.command, str(log)))
        ended = "failed"
        try:
            done = run(
                request,
                cancelled=lambda: self.control.stopped(task),
                on_step=step,
                on_format=self._tell_format,
            )
            ended = done.record.ended
            self._keep_files(request.cwd, name)
        finally:
            self.listen(RunFinished(task, label, ended))
        record = replace(
            done.record,
            log=log.relative_to(self.store.folder).as_posix(),
            metrics=metrics.relative_to(self.store.folder).as_posix(),
        )
        return replace(done, record=record)

    def _tell_format(self, parser: Parser, sample: str) -> None:
        if not self._told_format:
            self._told_format = True
            self.listen(
                Message(
                    Text(
                        "steps are read as {format}, from lines such as: {sample}",
                        "按 {format} 读取步，例如：{sample}",
                    ).format(format=parser.title, sample=sample[:160])
                )
            )

    def _keep_files(self, cwd: Path, name: str) -> None:
        """Keep what the command saved for the comparison, before its worktree goes."""
        import shutil

        for index, file in enumerate(self.options.compare):
            path = cwd / file
            if path.is_file():
                kept = self.store.folder / "outputs" / f"{name}-{index}{path.suffix}"
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept)

    def _saved(self, record: RunRecord, file: str) -> Path:
        index = self.options.compare.index(file)
        return self.store.folder / "outputs" / f"{Path(record.log).stem}-{index}{Path(file).suffix}"

    def _free_name(self, name: str) -> str:
        with self._guard:
            number, found = 1, name
            while (self.store.folder / "logs" / f"{found}.log").exists():
                number += 1
                found = f"{name}.{number}"
            path = self.store.folder / "logs" / f"{found}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            return found

    # state

    @property
    def trees(self) -> Trees:
        if self._trees is None:
            from npufuse_tui.workspace.store import SessionStore
            from npufuse_tui.workspace.worktrees import Worktrees

            assert isinstance(self.store, SessionStore)
            self._trees = Worktrees(self.store)
        return self._trees

    def _metrics(self, record: RunRecord) -> list[Metric]:
        return read_metrics(self.store.folder / record.metrics) if record.metrics is not None else []

    def _task(self, identity: str) -> Task:
        return next(one for one in self.store.session.tasks if one.id == identity)

    def _candidate(self, identity: str) -> Candidate:
        scan = self.store.session.scan
        assert scan is not None
        return next(one for one in scan.candidates if one.id == identity)

    def _put(self, task: Task) -> None:
        self.store.put_task(task)
        self.listen(TaskChanged(task))

    def _put_baseline(self, baseline: Baseline) -> Baseline:
        self.store.update(baseline=baseline)
        self.listen(BaselineChanged(baseline))
        return baseline

    def _conclude(self, task: Task, state: TaskState, conclusion: Conclusion, reason: Text) -> None:
        self._put(replace(task, state=state, conclusion=conclusion, reason=reason, finished=_now()))

    def _passed_over(self, identity: str) -> bool:
        """Whether the task was cancelled or skipped; it is then marked so."""
        if not self.control.stopped(identity):
            return False
        task = self._task(identity)
        if task.conclusion is None:
            reason = Text("skipped", "已跳过") if self.control.skipped(identity) else Text("cancelled", "已取消")
            if task.state is not TaskState.INTERRUPTED or task.reason != reason:
                self._put(replace(task, state=TaskState.INTERRUPTED, reason=reason))
        return True

    def _interrupt(self, reason: Text) -> None:
        """Whatever is in a running state runs no more."""
        for task in self.store.session.tasks:
            if task.state in _RUNNING:
                self._put(replace(task, state=TaskState.INTERRUPTED, reason=reason))
        baseline = self.store.session.baseline
        if baseline is not None and baseline.status == "running":
            self._put_baseline(replace(baseline, status="pending", reason=reason))


def _emulator_log(log: Path) -> Path:
    """Where the emulator writes what it emulated in the run with this log."""
    return log.with_suffix(".operators.jsonl")


def _failure(record: RunRecord) -> Text:
    """A run that died, in a sentence, with the last line of its log."""
    last = record.last_lines.strip().splitlines()
    return Text("failed to run: {why}; its log ends: {last}", "运行失败：{why}；日志末尾：{last}").format(
        why=record.reason or record.ended, last=last[-1][:300] if last else "-"
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
