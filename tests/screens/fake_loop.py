"""A Loop that plays a recorded session: same methods, same events, no engine. Gates let tests stop it at any point."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import sample
from npufuse_tui.screens.doors import Recent

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.events import (
    BaselineChanged,
    CandidateChecked,
    CandidateFound,
    Committed,
    Listener,
    Message,
    RunFinished,
    RunStarted,
    ScanFinished,
    ScanProgress,
    StepRead,
    TaskChanged,
    ignore,
)
from npufuse_tui.language import Text, same
from npufuse_tui.model import (
    Approval,
    Backend,
    Baseline,
    Candidate,
    Conclusion,
    Decision,
    Gate,
    Launch,
    LossResult,
    Metric,
    RunRecord,
    ScanResult,
    Session,
    SpeedResult,
    Stage,
    Task,
    TaskState,
    Verdict,
)
from npufuse_tui.report.session_report import ReportPaths
from npufuse_tui.workspace.apply_plan import ApplyPlan, PlannedEdit, PlanRefusal

STEPS = 60


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder


class FakeLoop:
    """Plays the loop over `sample`. `hold` is waited for before each run; tests clear it to look at the middle."""

    def __init__(self, folder: Path, scan: ScanResult | None = None, root: str = "/work/tiny-llm") -> None:
        self.store = Store(folder)
        self.result = scan or sample.scan_result(root)
        self.hold = threading.Event()
        self.hold.set()
        self.cancelled = threading.Event()
        self.refusals: tuple[PlanRefusal, ...] = ()
        self.fail: dict[str, Exception] = {}
        self.calls: list[str] = []
        self.closed = False
        self.shown: Path | None = None
        self.interrupted: tuple[str, ...] = ()
        self.remembered_launch: Launch | None = None
        self.history: list[tuple[Approval, ...]] = []
        self.session = Session(
            "20261201-0400-ab",
            "2026-12-01T04:00:00Z",
            self.result.root,
            self.result.root,
            self.result.commit,
            None,
            Stage.SCAN,
        )

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fail:
            raise self.fail.pop(name)

    def _set(self, **fields: object) -> Session:
        self.session = replace(self.session, **fields)  # type: ignore[arg-type]
        return self.session

    def scan(self, listen: Listener = ignore) -> Session:
        self._called("scan")
        total = self.result.files
        for done in range(0, total + 1, 7):
            listen(ScanProgress(done, total, done // 10))
        for one in self.result.candidates[:50]:
            listen(CandidateFound(one))
        self.hold.wait(20)
        session = self._set(scan=self.result, stage=Stage.CANDIDATES)
        listen(ScanFinished(self.result))
        return session

    def _candidate(self, id: str) -> Candidate:
        assert self.session.scan is not None
        for one in self.session.scan.candidates:
            if one.id == id:
                return one
        raise WrongInput(same(f"There is no candidate {id}."))

    def _put(self, changed: Candidate) -> None:
        scan = self.session.scan
        assert scan is not None
        self._set(
            scan=replace(scan, candidates=tuple(changed if one.id == changed.id else one for one in scan.candidates))
        )

    def check(self, candidate_ids: Sequence[str] | None = None, listen: Listener = ignore) -> Session:
        self._called("check")
        for done, id in enumerate(candidate_ids or (), 1):
            self.hold.wait(20)
            changed = replace(self._candidate(id), check=sample.passed())
            listen(CandidateChecked(changed, done, len(candidate_ids or ())))
            self._put(changed)
        return self.session

    def decide(self, candidate_ids: Sequence[str], decision: Decision | None, note: str = "") -> Session:
        self._called("decide")
        if self.session.stage not in (Stage.CANDIDATES, Stage.CHECKPOINT):
            raise KeptSafe(Text("The checkpoint is confirmed.", "检查点已确认。"))
        kept = [had for had in self.session.approvals if had.candidate not in candidate_ids]
        for id in candidate_ids:
            one = self._candidate(id)
            if decision is Decision.APPROVED and one.verdict is Verdict.REFUSED:
                raise KeptSafe(Text("It is refused.", "它已被拒绝。"))
            if decision is not None:
                digest = one.edit.digest if one.edit else ""
                kept.append(Approval(id, decision, "Ada <ada@example.com>", "2026-12-01T04:05:00Z", digest, note))
        self.history.append(self.session.approvals)
        return self._set(approvals=tuple(kept))

    def undo(self) -> Session:
        self._called("undo")
        if not self.history:
            raise WrongInput(Text("There is nothing to take back.", "没有可撤销的决定。"))
        return self._set(approvals=self.history.pop())

    def edit_replacement(self, candidate_id: str, text: str) -> Candidate:
        self._called("edit_replacement")
        try:
            compile(text.strip(), "replacement", "exec", flags=0x2000)
        except SyntaxError as error:
            if "outside function" not in str(error):
                raise WrongInput(Text(f"The text does not compile: {error}", f"无法编译: {error}")) from error
        changed = replace(self._candidate(candidate_id), replacement=text, check=None)
        self._put(changed)
        return changed

    def choose_gate(self, candidate_id: str, gate: Gate) -> Candidate:
        self._called("choose_gate")
        changed = replace(self._candidate(candidate_id), gate=gate)
        self._put(changed)
        return changed

    def note(self, candidate_id: str, text: str) -> Session:
        self._called("note")
        return self._set(notes={**self.session.notes, candidate_id: text})

    def plan(self) -> ApplyPlan:
        self._called("plan")
        edits = []
        for had in self.session.approvals:
            one = self._candidate(had.candidate)
            if had.decision is Decision.APPROVED and one.edit:
                edits.append(PlannedEdit(one.id, one.rule, one.edit, (one.file,), one.gate, one.diff or ""))
        return ApplyPlan(
            self.session.root,
            self.session.base,
            f"npufuse/{self.session.id}",
            tuple(edits),
            self.refusals,
            links=("data",),
            link_rule="npufuse/links.txt",
        )

    def confirm(self) -> Session:
        self._called("confirm")
        return self._set(stage=Stage.APPLY)

    def set_launch(self, launch: Launch) -> Session:
        self._called("set_launch")
        return self._set(launch=launch)

    def apply(self, listen: Listener = ignore) -> Session:
        self._called("apply")
        listen(Message(Text("Making the worktrees", "正在建立工作树")))
        tasks = tuple(
            Task(had.candidate, self._candidate(had.candidate).rule)
            for had in self.session.approvals
            if had.decision is Decision.APPROVED
        )
        return self._set(
            stage=Stage.VERIFY,
            branch=f"npufuse/{self.session.id}",
            tasks=tasks,
            backend=Backend.EMULATED,
            baseline=Baseline("pending"),
        )

    def _run(self, task: str | None, label: str, listen: Listener, losses: Callable[[int], float]) -> RunRecord:
        log = self.store.folder / "logs" / f"{task or 'base'}-{label}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        listen(RunStarted(task, label, "python train.py --steps 60", str(log)))
        with log.open("w", encoding="utf-8") as file:
            for step in range(STEPS):
                loss = losses(step)
                file.write(f"step {step} loss {loss:.6f} time 0.0{20 + step % 5}\n")
                listen(
                    StepRead(
                        task, label, Metric(step, loss, 0.020 + step % 5 / 1000, "warmup" if step < 5 else "steady")
                    )
                )
                if step == STEPS // 2:
                    file.flush()
                    self.hold.wait(20)
                if self.cancelled.is_set():
                    break
        ended = "cancelled" if self.cancelled.is_set() else "finished"
        listen(RunFinished(task, label, ended))
        return RunRecord(
            label,
            "python train.py --steps 60",
            "4be1f7c2a90d",
            "2026-12-01T04:10:00Z",
            4.2,
            0,
            ended,
            str(log),
            None,
            STEPS,
            "plain",
        )

    def _task(self, task: Task, listen: Listener) -> None:
        self._set(tasks=tuple(task if one.id == task.id else one for one in self.session.tasks))
        listen(TaskChanged(task))

    def verify(self, options: object = None, listen: Listener = ignore) -> Session:
        self._called("verify")
        self.cancelled.clear()

        def base(step: int) -> float:
            return 2.0 + 3.0 * math.exp(-step / 20)

        baseline = self.session.baseline
        if baseline is None or baseline.status != "passed":
            self._set(baseline=Baseline("running"))
            listen(BaselineChanged(Baseline("running")))
            runs = tuple(self._run(None, f"baseline-{number}", listen, base) for number in (1, 2))
            if self.cancelled.is_set():
                return self._set(baseline=Baseline("pending", runs=runs))
            self._set(baseline=Baseline("passed", STEPS, 0.0004, runs))
        for index, task in enumerate(self.session.tasks):
            if task.conclusion is not None:
                continue
            started = replace(task, state=TaskState.OP_CHECK, started="2026-12-01T04:12:00Z")
            self._task(started, listen)
            checked = replace(started, state=TaskState.LOSS_CHECK, op=sample.passed())
            self._task(checked, listen)
            off = 0.002 if index == 0 else 0.03
            run = self._run(task.id, "candidate", listen, lambda step, off=off: base(step) * (1 + off * step / STEPS))
            if self.cancelled.is_set():
                self._task(replace(checked, state=TaskState.INTERRUPTED, runs=(run,)), listen)
                return self.session
            if index == 0:
                loss = LossResult(
                    STEPS, 0.00197, None, 0.01, 0.0004, True, Text("every step is within 1%", "每一步都在 1% 以内")
                )
                speed = SpeedResult("not measured", Text("the operators were emulated", "算子为模拟执行"))
                done = replace(
                    checked,
                    state=TaskState.CONCLUDED,
                    loss=loss,
                    speed=speed,
                    runs=(run,),
                    conclusion=Conclusion.ADOPT,
                    reason=Text("Precision holds; speed was not measured.", "精度合格; 未测速度。"),
                    commit="77aa01b2c3d4",
                    finished="2026-12-01T04:13:00Z",
                )
                listen(Committed(task.id, "77aa01b2c3d4", str(self.session.branch)))
            else:
                loss = LossResult(
                    STEPS, 0.0295, 21, 0.01, 0.0004, False, Text("step 21 is 1.05% off", "第 21 步相差 1.05%")
                )
                done = replace(
                    checked,
                    state=TaskState.LOSS_FAILED,
                    loss=loss,
                    runs=(run,),
                    conclusion=Conclusion.REJECT,
                    reason=Text("The loss leaves the 1% band at step 21.", "第 21 步的 loss 超出 1% 范围。"),
                    finished="2026-12-01T04:13:00Z",
                )
            self._task(done, listen)
        return self._set(stage=Stage.REPORT)

    def cancel(self, task_id: str | None = None) -> None:
        self.calls.append("cancel")
        self.cancelled.set()
        self.hold.set()

    def skip(self, task_id: str) -> None:
        self._called("skip")

    def retry(self, task_id: str, steps: int | None = None) -> Session:
        self._called("retry")
        return self._set(
            stage=Stage.VERIFY,
            tasks=tuple(Task(one.id, one.rule) if one.id == task_id else one for one in self.session.tasks),
        )

    def write_reports(self, listen: Listener = ignore, folder: Path | None = None) -> ReportPaths:
        self._called("write_reports")
        place = self.store.folder / "reports"
        place.mkdir(parents=True, exist_ok=True)
        names = ("index.html", "progress.md", "conclusion.md", "pull-request.md", "verification.json")
        for name in names:
            (place / name).write_text("report")
        shown = self.shown or place
        pages = tuple((task.id, shown / f"{task.id}.html") for task in self.session.tasks)
        return ReportPaths(shown, *(shown / name for name in names), validation=pages)

    def pull_request_text(self) -> str:
        return "## Fused operators\n"

    def clean_up(self) -> None:
        self._called("clean_up")

    def close(self) -> None:
        self.closed = True


class FakeDoors:
    """Opens the recorded session."""

    def __init__(self, folder: Path, make: Callable[[], FakeLoop] | None = None) -> None:
        self.folder = folder
        self.make = make or (lambda: FakeLoop(folder))
        self.loops: list[FakeLoop] = []
        self.error: Exception | None = None

    def _open(self) -> FakeLoop:
        if self.error is not None:
            raise self.error
        self.loops.append(self.make())
        return self.loops[-1]

    def start(self, path: str) -> FakeLoop:
        return self._open()

    def resume(self, path: str, session: str | None) -> FakeLoop:
        return self._open()

    def recent(self) -> list[Recent]:
        return [Recent("20261130-0911-7c", "/work/llama-train", "2026-11-30T09:11:00Z", "verify", True)]

    def demo(self) -> tuple[str, str]:
        return "/tmp/demo", "python train.py --steps 60"
