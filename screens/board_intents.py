"""What a person can do on the board, as intents to the loop and to the log window."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from npufuse_tui.screens.base import LoopScreen
from npufuse_tui.screens.clean import plain
from npufuse_tui.screens.dialogs import Prompt

from npufuse_tui.i18n import tr

if TYPE_CHECKING:
    from npufuse_tui.screens.board import BoardScreen


class BoardIntents(LoopScreen):
    """The `do_…` methods of the board's actions."""

    @property
    def me(self) -> BoardScreen:
        return cast("BoardScreen", self)

    def do_to_report(self) -> None:
        self.host.go_to("report")

    def do_resume_runs(self) -> None:
        session = self.host.session
        if session is not None and session.launch is None:
            self.say(tr("The launch command is missing: Esc goes to the run set-up."), "warn")
            return
        self.me.pinned = False
        self.host.verify()

    def do_cancel(self) -> None:
        loop = self.host.loop
        if loop is None:
            return
        task = self.me.rows.chosen
        body = [
            plain(tr("The run and all its processes are ended; what was measured so far stays.")),
            plain(tr("c goes on later."), "$quiet"),
        ]
        self.host.ask(
            tr("Cancel the run?"),
            list(body),
            tr("Cancel the run"),
            lambda: loop.cancel(task.id if task and task.id == self._running_task() else None),
        )

    def _running_task(self) -> str | None:
        current = self.host.live.current
        return current[0] if current else None

    def do_skip(self) -> None:
        loop, task = self.host.loop, self.me.rows.chosen
        if loop is not None and task is not None and self.host.attempt(lambda: loop.skip(task.id)):
            self.say(tr("Skipped; r takes it up again."), "ok")

    def do_retry(self) -> None:
        self._retry(None)

    def do_rerun(self) -> None:
        session = self.host.session
        now = str(session.launch.steps) if session and session.launch else "50"

        def typed(text: object) -> None:
            if not isinstance(text, str):
                return
            if text.strip().isdigit() and int(text) >= 50:
                self._retry(int(text))
            else:
                self.say(tr("Steps must be a whole number of at least 50, not {value}.", value=text), "warn")

        self.app.push_screen(Prompt(tr("Number of steps"), now), typed)

    def _retry(self, steps: int | None) -> None:
        loop, task = self.host.loop, self.me.rows.chosen
        if loop is not None and task is not None and self.host.attempt(lambda: loop.retry(task.id, steps)):
            self.host.verify()

    def do_tab_log(self) -> None:
        self.me.pane.open_tab("tab_log")
        self.me.render_state()

    def do_tab_curves(self) -> None:
        self.me._drawn = 0.0
        self.me.pane.open_tab("tab_curves")
        self.me.render_state()

    def do_tab_result(self) -> None:
        self.me.pane.open_tab("tab_result")

    # the log

    def do_follow(self) -> None:
        view = self.me.log_view
        view.set_follow(not view.follow)
        self.say(tr("Following the end of the log.") if view.follow else tr("Stopped here; f follows again."))

    def do_search(self) -> None:
        self.do_tab_log()
        field = self.query_one("#find")
        field.display = True
        field.focus()

    def search(self, word: str, step: int = 1) -> None:
        """Go to the next line with `word` in a thread: logs may be large."""
        view = self.me.log_view
        log = view.log_file
        if log is None:
            return
        view.word = word
        here = view.found if view.found is not None else (-1 if step > 0 else len(log))

        def found(line: object) -> None:
            if isinstance(line, int):
                view.go_to(line)
                self.say(tr("Line {line}; n next, p previous.", line=line + 1))
            else:
                self.say(tr("Not found: {word}", word=word), "warn")

        if "search" not in self.host.busy:
            self.host.start_job("search", lambda _: log.find(word, here, step), found)

    def do_next_match(self) -> None:
        self._again(1)

    def do_previous_match(self) -> None:
        self._again(-1)

    def _again(self, step: int) -> None:
        if self.me.log_view.word:
            self.search(self.me.log_view.word, step)
        else:
            self.say(tr("Nothing was searched for yet; / searches."), "warn")

    def do_first_error(self) -> None:
        view = self.me.log_view
        log = view.log_file
        self.do_tab_log()

        def found(line: object) -> None:
            if isinstance(line, int):
                view.go_to(line)
                self.say(tr("The first error is on line {line}.", line=line + 1))
            else:
                self.say(tr("No error was found in this log."), "ok")

        if log is not None and "search" not in self.host.busy:
            self.host.start_job("search", lambda _: log.first_error(), found)

    def do_copy_log(self) -> None:
        self.host.copy(self.me.log_view.visible_text(), tr("the lines on the screen"))

    def do_larger(self) -> None:
        self.toggle_class("-full")
        (self.me.pane.open_widget if self.has_class("-full") else self.me.rows).focus()
