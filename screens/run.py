"""Run set-up: the launch command and how long to run. It is asked for, never guessed."""

from __future__ import annotations

import shlex
from functools import partial

from npufuse_tui.screens.base import Field, LoopScreen, Said
from npufuse_tui.screens.clean import clean
from npufuse_tui.screens.situation import Situation
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input

from npufuse_tui.i18n import mark, tr
from npufuse_tui.model import Launch, Stage

_FIELDS = (
    ("command", mark("Launch command"), mark("as you type it in the repo's folder, e.g. python train.py --steps 60")),
    ("python", mark("Python"), mark("the interpreter of the model; empty: the one that the command uses")),
    ("steps", mark("Steps"), mark("at least 50 are compared")),
    ("limit", mark("Time limit"), mark("seconds for one run; empty: none")),
    ("environment", mark("Environment"), mark("NAME=value, separated by spaces")),
)


def _label(label: str, about: str) -> Content:
    return Content.assemble((tr(label), "bold"), "  ", (tr(about), "$quiet"))


class RunScreen(LoopScreen):
    """Asks for the launch command; remembered ones are proposed."""

    NAME = "run"
    CSS_PATH = "run.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._filled: str | None = None
        self._wrong = ""

    def body(self) -> ComposeResult:
        with VerticalScroll(id="form"):
            yield Said(self._before, id="before")
            for id, label, about in _FIELDS:
                yield Said(partial(_label, label, about), classes="label")
                yield Field(id=id)
            yield Said(self._after, id="after")

    def on_mount(self) -> None:
        self.query_one("#form").can_focus = False
        self.query_one("#command").focus()

    def hint(self) -> str:
        return tr("Up and Down go from field to field; F5 starts, Esc goes back.")

    def situation(self) -> Situation:
        command = self.query_one("#command", Field).value.strip()
        extra = frozenset({"command"}) if command else frozenset()
        return Situation(session=self.host.session, busy=self.host.busy, extra=extra)

    def _before(self) -> Content:
        return Content.styled(
            tr(
                "Baseline and replacements run with this command, each in a worktree of its own. Without "
                "it nothing can be verified."
            ),
            "$quiet",
        )

    def _after(self) -> Content:
        if self._wrong:
            return Content.styled(clean(self._wrong), "$bad")
        return Content.styled(
            tr(
                "The baseline runs twice, to know the noise from run to run; then each replacement runs "
                "alone against it."
            ),
            "$quiet",
        )

    def render_state(self) -> None:
        session, loop = self.host.session, self.host.loop
        if session is None or loop is None or self._filled == session.id:
            return
        self._filled = session.id
        options = self.host.options
        launch = session.launch or loop.remembered_launch
        if options.command and not session.launch:
            launch = Launch(options.command, python=options.python)
        if launch is None:
            return
        values = {
            "command": launch.command,
            "python": launch.python or "",
            "steps": str(launch.steps),
            "limit": f"{launch.time_limit:g}" if launch.time_limit else "",
            "environment": " ".join(f"{name}={shlex.quote(value)}" for name, value in launch.environment),
        }
        for id, value in values.items():
            self.query_one(f"#{id}", Field).value = value

    def _launch(self) -> Launch | None:
        """What was typed, or None with the reason in `_wrong`."""
        value = {id: self.query_one(f"#{id}", Field).value.strip() for id, _, _ in _FIELDS}
        self._wrong = ""
        try:
            steps = int(value["steps"] or "50")
        except ValueError:
            self._wrong = tr("Steps must be a whole number, not {value}.", value=value["steps"])
            return None
        if steps < 50:
            self._wrong = tr("At least 50 steps are needed for the loss check, not {value}.", value=steps)
            return None
        try:
            limit = float(value["limit"]) if value["limit"] else None
        except ValueError:
            self._wrong = tr("The time limit must be a number of seconds, not {value}.", value=value["limit"])
            return None
        try:
            pairs = [word.partition("=") for word in shlex.split(value["environment"])]
        except ValueError:
            pairs = [("", "", "")]
        if any(not name or not equals for name, equals, _ in pairs):
            self._wrong = tr(
                "The environment must be NAME=value, separated by spaces, not {value}.", value=value["environment"]
            )
            return None
        return Launch(
            value["command"], value["python"] or None, steps, limit, tuple((name, one) for name, _, one in pairs)
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        self.refresh_frame()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.focus_next()

    def on_key(self, event: object) -> None:
        key = getattr(event, "key", "")
        if key in ("up", "down") and isinstance(self.focused, Field):
            event.stop()  # type: ignore[attr-defined]
            self.focus_previous() if key == "up" else self.focus_next()

    def do_start(self) -> None:
        launch, loop, session = self._launch(), self.host.loop, self.host.session
        self.query_one("#after", Said).retell()
        if launch is None:
            self.say(self._wrong, "bad")
            return
        if loop is None or session is None:
            return
        if session.stage in (Stage.SCAN, Stage.CANDIDATES, Stage.CHECKPOINT):
            self.say(tr("The approvals are not confirmed yet: Esc goes back to the checkpoint."), "warn")
            return
        if self.host.attempt(lambda: loop.set_launch(launch)):
            self.host.go_to("board")
            self.host.verify()
