"""The terminal app: which screen follows which, and the one place where engine and screens meet."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from npufuse_tui.events import Listener
from npufuse_tui.i18n import tr
from npufuse_tui.language import current_language, set_language
from npufuse_tui.model import Session, Stage
from npufuse_tui.screens import marks, theme
from npufuse_tui.screens.base import LoopScreen
from npufuse_tui.screens.board import BoardScreen
from npufuse_tui.screens.candidates import CandidatesScreen
from npufuse_tui.screens.checkpoint import CheckpointScreen
from npufuse_tui.screens.clean import plain
from npufuse_tui.screens.dialogs import Ask, Dialog, error_box
from npufuse_tui.screens.doors import Doors, Recent
from npufuse_tui.screens.home import HomeScreen
from npufuse_tui.screens.jobs import JobEnded, Jobs
from npufuse_tui.screens.live import Live
from npufuse_tui.screens.report import ReportScreen
from npufuse_tui.screens.run import RunScreen
from npufuse_tui.screens.scan import ScanScreen

if TYPE_CHECKING:
    from npufuse_tui.loop import Loop, LoopOptions

WORK = frozenset({"open", "scan", "check", "verify", "report", "clean"})
"""Jobs that leaving would cut short; others only look something up."""
PUMP = 1 / 20  # seconds between two looks at what the engine told


class PlainScrollBar(ScrollBarRender):
    """Scroll bars of blanks with a background: block glyphs are of ambiguous width."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


@dataclass(frozen=True, slots=True)
class Start:
    """What the command line asked for. `resume` is a session id, or "" for the newest one."""

    path: str | None = None
    resume: str | None = None
    command: str | None = None
    python: str | None = None
    ascii: bool = False
    theme: str = theme.DARK.name
    demo: bool = False


class NpufuseApp(App[None], inherit_bindings=False):
    """Owns the loop and its threads; screens render `session` and `live` and call the methods below."""

    TITLE = "npufuse"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrowest"),
        (60, "-narrow"),
        (110, "-wide"),
        (160, "-widest"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-lowest"), (15, "-low"), (30, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", show=False)]
    SCREENS: ClassVar[dict[str, Callable[[], Screen[Any]]]] = {
        "home": HomeScreen,
        "scan": ScanScreen,
        "candidates": CandidatesScreen,
        "checkpoint": CheckpointScreen,
        "run": RunScreen,
        "board": BoardScreen,
        "report": ReportScreen,
    }

    def __init__(self, doors: Doors, start: Start | None = None) -> None:
        super().__init__()
        self.doors, self.options = doors, start or Start()
        self.loop: Loop | None = None
        self.live = Live()
        self.jobs = Jobs()
        self.failure: str | None = None
        marks.use_ascii(self.options.ascii)
        ScrollBar.renderer = PlainScrollBar
        for one in theme.THEMES:
            self.register_theme(one)
        self.theme = self.options.theme
        if os.environ.get("SSH_CONNECTION"):
            self.animation_level = "none"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(theme.MEANINGS)

    @property
    def session(self) -> Session | None:
        return self.loop.session if self.loop else None

    @property
    def busy(self) -> frozenset[str]:
        return self.jobs.busy

    @property
    def working(self) -> bool:
        """Whether something goes on that leaving would cut short."""
        return bool(self.busy & WORK)

    # beginning and end

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.leave)
        self.push_screen("home")
        self.set_interval(PUMP, self._pump)
        self.call_later(self._begin)

    def _begin(self) -> None:
        if self.options.demo:
            self.open_demo()
        elif self.options.resume is not None:
            self.open_session(self.options.path or ".", self.options.resume or None)
        elif self.options.path is not None:
            self.open_path(self.options.path)

    def leave(self) -> None:
        """End the runs, give the terminal back. The session is on disk already."""
        if self.loop is not None and self.busy:
            with contextlib.suppress(Exception):
                self.loop.cancel(None)
        self.exit()

    def close_loop(self) -> None:
        """Give the lock back."""
        if self.loop is not None:
            self.loop.close()
            self.loop = None

    def ask_to_quit(self) -> None:
        """Leave; when something runs, ask first and say what happens to it."""
        if not self.working:
            self.leave()
            return
        body = [
            plain(tr("Work is going on; leaving ends it.")),
            plain(tr("All decisions and everything measured is saved; npufuse --resume goes on from here."), "$quiet"),
        ]
        self.ask(tr("Leave npufuse?"), body, tr("Leave"), self.leave)

    def action_interrupt(self) -> None:
        if isinstance(self.screen, LoopScreen):
            self.screen.say(tr("q leaves npufuse; nothing is lost."))

    # engine

    def start_job(
        self,
        job: str,
        work: Callable[[Listener], object],
        then: Callable[[Any], None] | None = None,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Do engine work in a thread of the group `job`; `then` gets its result here, `otherwise` is for an error."""
        run = self.jobs.prepare(job, work, then, otherwise)
        self.run_worker(run, name=job, group=job, thread=True, exit_on_error=False)
        self.refresh_screens()

    def _pump(self) -> None:
        if not self.is_running:  # widgets are being taken down
            return
        events_now = self.jobs.drain()
        for event in events_now:
            if isinstance(event, JobEnded):
                self._job_ended(event)
            else:
                self.live.take(event)
        if events_now:
            self.refresh_screens()
        for screen in self.screen_stack:
            if isinstance(screen, LoopScreen) and screen.ready:
                screen.tick()

    def _job_ended(self, event: JobEnded) -> None:
        self.jobs.ended(event.job)
        if event.error is not None or event.trace:
            if event.otherwise is not None:
                event.otherwise()
            last = event.trace.strip().rpartition("\n")[2]
            mistake = tr("npufuse made a mistake in {job}: {error}", job=event.job, error=last)
            sentence = str(event.error) if event.error else mistake
            self.push_screen(error_box(sentence, event.trace))
        elif event.then is not None:
            event.then(event.result)

    def refresh_screens(self) -> None:
        """Let what is on the screen show the state as it is now."""
        for screen in self.screen_stack:
            if isinstance(screen, LoopScreen) and screen.ready:
                screen.render_state()
                screen.refresh_frame()

    def attempt(self, intent: Callable[[], Any]) -> bool:
        """Do something short with the loop; an error becomes a box with its sentence. True when it was done."""
        from npufuse_tui.errors import NpufuseError

        try:
            intent()
        except NpufuseError as error:
            self.push_screen(error_box(str(error)))
            return False
        except OSError as error:
            self.push_screen(error_box(tr("The system said no: {reason}", reason=str(error))))
            return False
        self.refresh_screens()
        return True

    # ways in

    def open_path(self, path: str) -> None:
        """A new session on a path, then its scan."""
        self._open(lambda: self.doors.start(path), self._scan)

    def open_session(self, path: str, session: str | None) -> None:
        """Go on with a session where it stopped."""
        self._open(lambda: self.doors.resume(path, session), self._go_on)

    def open_demo(self) -> None:
        """Make the demo repo and open it."""

        def make() -> Loop:
            path, command = self.doors.demo()
            self.options = replace(self.options, command=command)
            return self.doors.start(path)

        self._open(make, self._scan)

    def _open(self, make: Callable[[], Loop], then: Callable[[], None]) -> None:
        if self.working:
            self._say(tr("Work is going on; cancel it or wait until it has ended."), "warn")
            return

        def opened(loop: Loop) -> None:
            self.loop, self.live = loop, Live()
            then()

        self.close_loop()
        self.start_job("open", lambda _: make(), opened)

    def _go_on(self) -> None:
        assert self.session is not None
        if self.session.stage is Stage.SCAN:
            self._scan()
            return
        screens = {Stage.CANDIDATES: "candidates", Stage.CHECKPOINT: "checkpoint", Stage.APPLY: "run"}
        screens |= {Stage.VERIFY: "board", Stage.REPORT: "report"}
        self.go_to(screens[self.session.stage])

    def _scan(self) -> None:
        self.go_to("scan")
        self.scan()

    def scan(self) -> None:
        """Scan, then show what was found."""
        loop = self.loop
        if loop is None:
            return
        self.live.begin_scan()

        def scanned(_: object) -> None:
            found = self.session.scan.candidates if self.session and self.session.scan else ()
            if found and isinstance(self.screen, ScanScreen):
                self.go_to("candidates")

        self.start_job("scan", loop.scan, scanned)

    def verify(self) -> None:
        """Edit the branch as far as that is not done yet, then run the checks."""
        loop = self.loop
        if loop is None or "verify" in self.busy:
            return

        def work(listen: Listener) -> object:
            if loop.session.stage is Stage.APPLY:
                loop.apply(listen)
            return loop.verify(None, listen)

        self.start_job("verify", work, self._verified, self.bell)

    def _verified(self, _: object) -> None:
        self.bell()
        self._say(tr("The verification has ended."), "ok")

    def place_of(self, path: str) -> str:
        """A path of the session's folder as one that can be opened."""
        if self.loop is None or Path(path).is_absolute():
            return path
        return str(Path(self.loop.store.folder) / path)

    # going about

    def go_to(self, name: str) -> None:
        """Show the screen of a stage; screens keep their state while others are shown."""
        while isinstance(self.screen, Dialog):
            self.pop_screen()
        current = self.screen
        if isinstance(current, LoopScreen) and name == current.NAME:
            current.render_state()
            return
        self.switch_screen(name)

    def go_back(self, name: str) -> None:
        """To the stage before."""
        before = {"scan": "home", "candidates": "home", "checkpoint": "candidates", "run": "checkpoint"}
        before |= {"board": "run", "report": "board"}
        if name in before:
            self.go_to(before[name])
        else:
            self._say(tr("This is the first screen; q leaves npufuse."), "info")

    def _say(self, message: str, kind: str) -> None:
        if isinstance(self.screen, LoopScreen):
            self.screen.say(message, kind)

    def ask(self, title: str, body: list[Any], confirm: str, then: Callable[[], None], word: str = "") -> None:
        """Ask before something that cannot be taken back; `then` is done when the person confirms."""
        self.push_screen(Ask(title, body, confirm, word), lambda yes: then() if yes else None)

    def open_help(self, name: str) -> None:
        from npufuse_tui.screens.help import Help

        screen = self.screen
        if isinstance(screen, LoopScreen):
            self.push_screen(Help(name, screen.situation()))

    def open_palette(self, screen: LoopScreen) -> None:
        from npufuse_tui.screens.palette import Palette

        def chosen(id: object) -> None:
            if isinstance(id, str):
                self.call_next(screen.action_run, id)

        self.push_screen(Palette(screen.NAME, screen.situation()), chosen)

    def switch_language(self) -> None:
        """Chinese instead of English or the other way round, everywhere at once."""
        set_language("en" if current_language() == "zh" else "zh")
        for screen in self.screen_stack:
            if isinstance(screen, LoopScreen) and screen.ready:
                screen.retell()
        self.refresh_screens()

    def switch_theme(self) -> None:
        self.theme = theme.next_theme(self.theme)
        self._say(self.theme, "info")

    def copy(self, text: str, what: str) -> None:
        """Copy to the clipboard of the terminal (OSC 52)."""
        self.copy_to_clipboard(text)
        self._say(tr("Copied: {what}.", what=what), "ok")

    def on_key(self, event: events.Key) -> None:
        """A key that nothing has taken says why it does nothing."""
        if isinstance(self.screen, LoopScreen) and event.key not in self.screen.active_bindings:
            self.screen.unbound(event.key, event.character)

    def read_lines(self, file: str) -> list[str]:
        """The lines of a file of the repo, for more context in a diff; none when it cannot be read."""
        if self.session is None:
            return []
        try:
            return (Path(self.session.root) / file).read_text("utf-8", "replace").splitlines()
        except OSError:
            return []


class RealDoors:
    """Sessions of this machine."""

    def __init__(self, start: Start) -> None:
        self._start = start

    def _options(self) -> LoopOptions:
        from npufuse_tui.loop import LoopOptions

        return LoopOptions(python=self._start.python)

    def start(self, path: str) -> Loop:
        from npufuse_tui.loop import Loop

        return Loop.start(Path(path).expanduser(), self._options())

    def resume(self, path: str, session: str | None) -> Loop:
        from npufuse_tui.loop import Loop

        return Loop.resume(Path(path).expanduser(), session, self._options())

    def recent(self) -> list[Recent]:
        from npufuse_tui.workspace import sessions

        found = [one for one in sessions.recent() if not one.held]
        return [
            Recent(
                one.session.id, one.session.root, one.session.created, one.session.stage.value, bool(one.interrupted)
            )
            for one in found
        ]

    def demo(self) -> tuple[str, str]:
        from npufuse_tui.demo import create, launch_command

        place = create(Path(tempfile.mkdtemp(prefix="npufuse-demo-")) / "demo")
        return str(place), launch_command()


def run(start: Start) -> int:
    """Run the app until the person leaves; the exit code."""
    app = NpufuseApp(RealDoors(start), start)
    try:
        app.run()
    finally:
        session = app.session
        app.close_loop()
    if session is not None:
        print(tr("Session {id} of {root}: npufuse --resume {id} goes on with it.", id=session.id, root=session.root))
    return app.return_code or 0
