"""The rows of the board: the baseline, then one task each, with its states as steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timezone

from npufuse_tui.screens import marks
from npufuse_tui.screens.clean import clean, fit, fit_start
from npufuse_tui.screens.live import Live
from npufuse_tui.screens.rows import Rows
from textual.content import Content

from npufuse_tui.i18n import tr
from npufuse_tui.model import Baseline, Candidate, Conclusion, Session, Task, TaskState

_ORDER = (TaskState.OP_CHECK, TaskState.LOSS_CHECK, TaskState.SPEED_CHECK)


def clock(seconds: float | None) -> str:
    """Seconds as minutes and seconds, or hours."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"


def _seconds_between(first: str | None, last: str | None) -> float | None:
    if first is None:
        return None
    try:
        start = datetime.fromisoformat(first.replace("Z", "+00:00"))
        end = datetime.fromisoformat(last.replace("Z", "+00:00")) if last else datetime.now(timezone.utc)
        return max(0.0, (end - start).total_seconds())
    except (ValueError, TypeError):
        return None


def steps(task: Task) -> list[tuple[str, marks.Mark]]:
    """The three checks of a task, each with its state."""
    waiting, running, passed, failed = (
        marks.STATE[TaskState.PENDING],
        marks.STATE[TaskState.OP_CHECK],
        marks.CHECK["passed"],
        marks.CHECK["failed"],
    )
    op = running if task.state is TaskState.OP_CHECK else waiting
    if task.op is not None:
        op = {"passed": passed, "failed": failed}.get(task.op.status, marks.CHECK["skipped"])
    if task.state is TaskState.OP_FAILED:
        op = failed
    loss = running if task.state is TaskState.LOSS_CHECK else waiting
    if task.loss is not None:
        loss = passed if task.loss.passed else failed if task.loss.passed is False else marks.CHECK["skipped"]
    if task.state is TaskState.LOSS_FAILED:
        loss = failed
    speed = running if task.state is TaskState.SPEED_CHECK else waiting
    if task.speed is not None:
        speed = {"faster": passed, "slower": failed}.get(task.speed.conclusion, marks.CHECK["skipped"])
    return [(tr("operator"), op), (tr("loss"), loss), (tr("speed"), speed)]


def state_mark(task: Task) -> marks.Mark:
    """The one mark that says how a task stands."""
    if task.state is TaskState.CONCLUDED and task.conclusion is not None:
        return marks.CONCLUSION[task.conclusion]
    return marks.STATE[task.state]


def expected(session: Session, task: Task) -> float | None:
    """Seconds that a run is expected to take: what the baseline's took."""
    runs = [run.seconds for run in (session.baseline.runs if session.baseline else ()) if run.ended == "finished"]
    return max(runs) if runs else None


class TaskRows(Rows):
    """Draws the session's tasks. Row 0 is the baseline."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.session: Session | None = None
        self.live = Live()
        self._candidates: dict[str, Candidate] = {}

    def load(self, session: Session, live: Live) -> None:
        if self.session is None or self.session.scan is not session.scan:
            self._candidates = {one.id: one for one in session.scan.candidates} if session.scan else {}
        self.session, self.live = session, live
        self.rows_changed()

    @property
    def tasks(self) -> Sequence[Task]:
        return self.session.tasks if self.session else ()

    @property
    def chosen(self) -> Task | None:
        """The task under the cursor; None on the baseline's row."""
        return self.tasks[self.cursor - 1] if 1 <= self.cursor <= len(self.tasks) else None

    def candidate(self, id: str) -> Candidate | None:
        return self._candidates.get(id)

    def count(self) -> int:
        return 1 + len(self.tasks) if self.session else 0

    def titles(self, width: int) -> Content:
        place = self._place(width)
        text = "   " + fit(tr("Task"), place) + fit(tr("State"), 24) + fit(tr("Checks"), 34 if width >= 100 else 8)
        return Content(text + fit(tr("Time"), 14) + (tr("Result") if width >= 130 else ""))

    def _place(self, width: int) -> int:
        used = 3 + 24 + (34 if width >= 100 else 8) + 14 + (30 if width >= 130 else 0)
        return max(16, width - used)

    def row(self, index: int, width: int) -> Content:
        lead = marks.cursor() if index == self.cursor else " "
        parts: list[tuple[str, str]] = [(f" {lead} ", "$accent")]
        assert self.session is not None
        if index == 0:
            return Content.assemble(*parts, *self._baseline(self.session.baseline, width))
        task = self.tasks[index - 1]
        one = self.candidate(task.id)
        place = f"{task.rule}  {one.file}:{one.start_line}" if one else f"{task.rule}  {task.id}"
        state = state_mark(task)
        parts += [
            (fit_start(clean(place), self._place(width) - 1) + " ", "bold"),
            (fit(state.said(), 24), state.colour),
        ]
        for name, check in steps(task):
            parts.append((f"{check.glyph} " if width < 100 else fit(f"{check.glyph} {name}", 11), check.colour))
        parts += [("  " if width < 100 else " ", ""), (fit(self._time(task), 14), "$quiet")]
        if width >= 130:
            parts.append((fit(result_words(task), 30), "$quiet"))
        return Content.assemble(*parts)

    def _time(self, task: Task) -> str:
        assert self.session is not None
        spent = _seconds_between(task.started, task.finished)
        if task.started is None:
            return "-"
        due = expected(self.session, task)
        running = [run for run in self.live.runs_of(task.id) if run.ended is None]
        if running and due:
            return f"{clock(running[-1].seconds(time.monotonic()))} / {clock(due)}"
        return clock(spent)

    def _baseline(self, baseline: Baseline | None, width: int) -> list[tuple[str, str]]:
        state = marks.BASELINE.get(baseline.status if baseline else "pending", marks.BASELINE["pending"])
        spent = sum(run.seconds for run in baseline.runs) if baseline else 0.0
        running = [run for run in self.live.runs_of(None) if run.ended is None]
        if running:
            spent += running[-1].seconds(time.monotonic())
        noise = baseline.noise_max_rel_diff if baseline else None
        said = tr("noise {noise}%", noise=f"{100 * noise:.3f}") if noise is not None else ""
        place = self._place(width)
        return [
            (fit(tr("baseline, unmodified code"), place), ""),
            (fit(state.said(), 24), state.colour),
            (fit(said, 34 if width >= 100 else 8), "$quiet"),
            (fit(clock(spent) if spent else "-", 14), "$quiet"),
        ]


def result_words(task: Task) -> str:
    """The measured numbers of a task in few words."""
    words = []
    if task.loss is not None and task.loss.max_rel_diff is not None:
        words.append(tr("loss {value}%", value=f"{100 * task.loss.max_rel_diff:.3f}"))
    if task.speed is not None:
        if task.speed.ratio is not None:
            words.append(tr("speed x{value}", value=f"{task.speed.ratio:.3f}"))
        elif task.conclusion is Conclusion.ADOPT:
            words.append(tr("speed not measured"))
    return "  ".join(words)
