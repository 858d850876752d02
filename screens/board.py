"""The board: the baseline and each replacement, what runs now, its log and its curves."""

from __future__ import annotations

import time

from npufuse_tui.screens import details, series, task_page
from npufuse_tui.screens.base import Field, LoopScreen, Said
from npufuse_tui.screens.board_intents import BoardIntents
from npufuse_tui.screens.curves import CurvesView
from npufuse_tui.screens.detail_pane import Tab, TabbedPane
from npufuse_tui.screens.log_view import LogView
from npufuse_tui.screens.rows import Rows
from npufuse_tui.screens.situation import Situation
from npufuse_tui.screens.task_rows import TaskRows, clock
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from npufuse_tui.i18n import tr
from npufuse_tui.model import Stage, Task, TaskState

_DONE = (TaskState.CONCLUDED, TaskState.OP_FAILED, TaskState.LOSS_FAILED, TaskState.BLOCKED)


class BoardScreen(BoardIntents, LoopScreen):
    """Where a person watches the proof."""

    NAME = "board"
    CSS_PATH = "board.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._second = 0.0
        self._drawn = 0.0
        self.pinned = False

    def body(self) -> ComposeResult:
        tabs = (
            Tab("tab_log", lambda: tr("Log")),
            Tab("tab_curves", lambda: tr("Curves")),
            Tab("tab_result", lambda: tr("Result"), self._result),
        )
        with Vertical(id="list"):
            yield Said(self._status, id="status")
            yield TaskRows(id="table")
        with Vertical(id="details"):
            yield TabbedPane(tabs, LogView(id="tab_log"), CurvesView(id="tab_curves"), id="pane")
            yield Field(id="find")

    @property
    def rows(self) -> TaskRows:
        return self.query_one(TaskRows)

    @property
    def pane(self) -> TabbedPane:
        return self.query_one(TabbedPane)

    @property
    def log_view(self) -> LogView:
        return self.query_one(LogView)

    def hint(self) -> str:
        session = self.host.session
        if "verify" in self.host.busy:
            said = self.host.live.messages
            return said[-1] if said else tr("Runs are going on; 1 shows the log, 2 the curves.")
        if session is not None and session.stage is Stage.REPORT:
            return tr("All is concluded; g goes to the report.")
        return tr("c runs what is still waiting.")

    def situation(self) -> Situation:
        view = self.log_view.log_file
        return Situation(
            session=self.host.session,
            task=self.rows.chosen,
            busy=self.host.busy,
            log=view is not None and len(view) > 0,
        )

    def on_mount(self) -> None:
        self.query_one("#find").display = False
        self.rows.focus()

    # state to screen

    def render_state(self) -> None:
        session = self.host.session
        if session is None:
            return
        self.rows.load(session, self.host.live)
        self.query_one("#status", Said).retell()
        self._follow_run()
        self._open_log()
        now = time.monotonic()
        if self.pane.current == "tab_curves" and now - self._drawn > 0.5:
            self._drawn = now
            self._curves()
        elif self.pane.current == "tab_result":
            self.pane.refill(keep=True)

    def tick(self) -> None:
        if not self.is_current:
            return
        if self.pane.current == "tab_log":
            self.log_view.poll()
        now = time.monotonic()
        if "verify" in self.host.busy and now - self._second > 1:
            self._second = now
            self.rows.refresh()
            self.query_one("#status", Said).retell()

    def _follow_run(self) -> None:
        """The cursor goes with the run, until the person moves it."""
        current = self.host.live.current
        if self.pinned or current is None or "verify" not in self.host.busy:
            return
        ids = [task.id for task in self.rows.tasks]
        index = ids.index(current[0]) + 1 if current[0] in ids else 0
        if index != self.rows.cursor:
            with self.prevent(Rows.Moved):
                self.rows.place_cursor(index)

    def log_of(self, task: Task | None) -> str | None:
        """The newest log of a task, or of the baseline."""
        live = self.host.live.runs_of(task.id if task else None)
        if live:
            return live[-1].log
        session = self.host.session
        records = task.runs if task else (session.baseline.runs if session and session.baseline else ())
        return records[-1].log if records else None

    def _open_log(self) -> None:
        path = self.log_of(self.rows.chosen)
        self.log_view.open(self.host.place_of(path) if path else None)

    def _curves(self) -> None:
        session, task, live = self.host.session, self.rows.chosen, self.host.live
        base = series.baseline_steps(live, session.baseline if session else None)
        steps = series.task_steps(live, task) if task else ()
        self.query_one(CurvesView).tell(base, steps, task.id if task else None)

    def _status(self) -> Content:
        session = self.host.session
        if session is None:
            return Content("")
        tasks = session.tasks
        done = sum(task.state in _DONE for task in tasks)
        room = 24
        filled = room * done // len(tasks) if tasks else 0
        parts: list[tuple[str, str]] = [(" ", "")]
        parts += [("#" * filled, "$primary on $primary"), ("." * (room - filled), "$panel on $panel")]
        parts.append((" " + tr("{done} of {total} concluded", done=done, total=len(tasks)), "bold"))
        running = [run for run in self.host.live.runs.values() if run.ended is None]
        if running and "verify" in self.host.busy:
            run = running[-1]
            parts.append((f"   {run.label}  {clock(run.seconds(time.monotonic()))}", "$info"))
            if run.metrics:
                last = run.metrics[-1]
                loss = f"{last.loss:.4f}" if last.loss is not None else "-"
                parts.append(("   " + tr("step {step}  loss {loss}", step=last.step, loss=loss), "$quiet"))
        return Content.assemble(*parts)

    def _result(self) -> details.Body:
        session, task = self.host.session, self.rows.chosen
        if session is None:
            return []
        return task_page.task(task, self.rows.candidate(task.id)) if task else task_page.baseline(session.baseline)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.pinned = True
        self._drawn = 0.0
        self.render_state()
        self.pane.refill()
        self.refresh_frame()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one("#find").display = False
        self.log_view.focus()
        if event.value:
            self.search(event.value)

    def do_back(self) -> None:
        field = self.query_one("#find", Field)
        if field.has_focus:
            field.display = False
            self.log_view.focus()
        elif self.has_class("-full"):
            self.remove_class("-full")
            self.rows.focus()
        elif not self.rows.has_focus:
            self.rows.focus()
        else:
            super().do_back()
