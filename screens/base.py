"""What all screens share: where one is, one line of notice, the keys, and a card when the terminal is too small."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from npufuse_tui.screens import actions, marks
from npufuse_tui.screens.clean import clean, crop_start, width
from npufuse_tui.screens.situation import Situation
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Static

from npufuse_tui.i18n import tr
from npufuse_tui.language import current_language
from npufuse_tui.model import Backend

if TYPE_CHECKING:
    from npufuse_tui.app import NpufuseApp

SMALLEST = (60, 15)


class Said(Static):
    """A line or block whose words are made when they are shown, so that the language can be switched."""

    def __init__(self, say: Callable[[], str | Content], *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__("", markup=False, id=id, classes=classes)
        self._say = say

    def on_mount(self) -> None:
        self.retell()

    def retell(self) -> None:
        # A line of fixed height needs no new layout; a layout draws the whole screen.
        height = self.styles.height
        self.update(self._say(), layout=height is None or height.is_auto)


def stage_name(screen: str) -> str:
    """The name of a screen in the current language."""
    return {
        "home": tr("Home"),
        "scan": tr("Scan"),
        "candidates": tr("Candidates"),
        "checkpoint": tr("Checkpoint"),
        "run": tr("Run set-up"),
        "board": tr("Board"),
        "report": tr("Report"),
    }[screen]


class Masthead(Widget):
    """One line: the way through the loop with the place where one is, then repo, branch, commit and backend."""

    DEFAULT_CSS = "Masthead { height: 1; dock: top; background: $panel; }"

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._screen_name = screen_name

    def retell(self) -> None:
        self.refresh()

    def render(self) -> Content:
        room = self.size.width
        context = self._place()
        at = actions.SCREENS.index(self._screen_name)
        gap = f" {marks.separator()} "
        names = [stage_name(name) for name in actions.SCREENS]
        if width(gap.join(names)) + width(context) + 14 <= room:
            parts: list[tuple[str, str]] = []
            for index, name in enumerate(names):
                parts += [(gap, "$quiet")] if index else []
                parts.append((name, "bold $accent" if index == at else "$quiet" if index > at else "$text"))
            trail = Content.assemble(*parts)
        else:
            trail = Content.assemble((f"{at + 1}/{len(names)} ", "$quiet"), (names[at], "bold $accent"))
        left = Content.assemble((" npufuse ", "bold"), " ", trail)
        context = crop_start(context, room - left.cell_length - 3)
        return Content.assemble(left, " " * max(1, room - left.cell_length - width(context) - 1), (context, "$quiet"))

    def _place(self) -> str:
        session = cast("NpufuseApp", self.app).session
        if session is None:
            return ""
        root = session.root.rstrip("/").rsplit("/", 1)[-1]
        scan = session.scan
        commit = session.base or (scan.commit if scan else None)
        where = session.branch or ""
        if commit:
            where = f"{where}@{commit[:8]}" if where else commit[:8]
        if scan and scan.dirty:
            where += "*"
        backend = {Backend.NPU: tr("NPU"), Backend.EMULATED: tr("emulated")}.get(session.backend, "")  # type: ignore[arg-type]
        return clean("  ".join(part for part in (root, where, backend) if part))


class Notice(Widget):
    """One line above the keys: what happened, why a key did nothing, or what to do next on this screen."""

    DEFAULT_CSS = "Notice { height: 1; background: $surface; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.kind, self.message = "", ""

    def say(self, message: str, kind: str = "info") -> None:
        self.kind, self.message = kind, clean(message)
        self.refresh()

    def retell(self) -> None:
        self.refresh()

    def render(self) -> Content:
        if not self.message:
            if not cast("LoopScreen", self.screen).ready:
                return Content("")
            return Content.styled(cast("LoopScreen", self.screen).hint(), "$quiet")
        state = marks.NOTICE[self.kind]
        return Content.assemble((state.glyph, state.colour), " ", (self.message, "$text"))


class Keys(Widget):
    """The keys of the screen, the most needed first, in one or two lines; each can be clicked."""

    auto_links = False
    DEFAULT_CSS = "Keys { height: auto; max-height: 2; background: $panel; }"

    def retell(self) -> None:
        self.refresh(layout=True)

    def render(self) -> Content:
        room, rows = self.size.width or 80, 1 if self.app.size.height < 20 else 2
        screen = cast("LoopScreen", self.screen)
        if not screen.ready:
            return Content("")
        situation = screen.situation()
        lines: list[Content] = []
        line = Content("")
        for one in actions.footer_actions(screen.NAME):
            off = one.why_not(situation) is not None
            click = Style.from_meta({"@click": f"screen.run('{one.id}')"})
            item = Content.assemble(
                (" " + actions.key_name(one.keys[0]), "$quiet" if off else "bold $accent"),
                (" " + tr(one.label) + " ", "$quiet" if off else "$text"),
            ).stylize(click)
            if line.cell_length + item.cell_length > room:
                lines.append(line)
                line = Content("")
                if len(lines) == rows:
                    break
            line += item
        else:
            lines.append(line)
        return Content("\n").join(lines)


class TooSmall(Said):
    """Shown instead of everything when the terminal is too small to work in."""

    DEFAULT_CSS = (
        "TooSmall { display: none; width: 100%; height: 100%; content-align: center middle; text-align: center; }"
    )

    def __init__(self) -> None:
        super().__init__(self._words)

    def _words(self) -> str:
        size = self.app.size
        need = f"{SMALLEST[0]}x{SMALLEST[1]}"
        return tr("Too small: {now}. npufuse needs {need}.", now=f"{size.width}x{size.height}", need=need)


class LoopScreen(Screen[None]):
    """A stage of the loop. It renders the session and sends intents to the app; what it shows is all that it knows."""

    NAME: ClassVar[str] = ""

    DEFAULT_CSS = """
    LoopScreen { background: $background; color: $text; layers: base over; }
    LoopScreen > #bottom { dock: bottom; height: auto; }
    LoopScreen.-narrowest > *, LoopScreen.-lowest > * { display: none; }
    LoopScreen.-narrowest > TooSmall, LoopScreen.-lowest > TooSmall { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._told = current_language()
        self.ready = False

    def on_mount(self) -> None:
        # Children stand when this is called, and not before: is_mounted is true earlier.
        self.ready = True
        self.call_next(self._come_up)

    def _come_up(self) -> None:
        self.render_state()
        self.refresh_frame()
        self.query_one(Keys).refresh(layout=True)

    def __init_subclass__(cls, **options: Any) -> None:
        if "NAME" in cls.__dict__:
            cls.BINDINGS = [
                Binding(",".join(one.keys), f"run('{one.id}')", one.label, show=False)
                for one in actions.actions_of(cls.NAME)
            ]
        super().__init_subclass__(**options)

    @property
    def host(self) -> NpufuseApp:
        return cast("NpufuseApp", self.app)

    def compose(self) -> ComposeResult:
        yield Masthead(self.NAME)
        yield from self.body()
        yield Bottom(id="bottom")
        yield TooSmall()

    def body(self) -> ComposeResult:
        yield from ()

    def hint(self) -> str:
        """What to do on this screen, in one line."""
        return ""

    def situation(self) -> Situation:
        """What actions are judged by."""
        return Situation(session=self.host.session, busy=self.host.busy)

    def render_state(self) -> None:
        """Show what the session holds now; called when the screen comes up and whenever something has changed."""

    def say(self, message: str, kind: str = "info") -> None:
        """Put one line above the keys."""
        self.query_one(Notice).say(message, kind)

    def refresh_frame(self) -> None:
        """Draw the line on top, the hint and the keys again."""
        self.query_one(Masthead).refresh()
        self.query_one(Notice).refresh()
        self.query_one(Keys).refresh()

    def tick(self) -> None:
        """Called a few times a second while the screen is there."""

    def retell(self) -> None:
        """Say everything again, in the language that is current."""
        self._told = current_language()
        for widget in self.walk_children():
            if callable(again := getattr(widget, "retell", None)):
                again()

    def on_screen_resume(self) -> None:
        if not self.ready:
            return
        if self._told != current_language():
            self.retell()
        self.render_state()
        self.refresh_frame()

    def on_resize(self, event: events.Resize) -> None:
        if not self.ready:
            return
        self.query_one(TooSmall).retell()
        self.query_one(Keys).retell()

    async def action_run(self, id: str) -> None:
        """Do an action, or say in one line why it cannot be done."""
        one = actions.action(self.NAME, id)
        why = one.why_not(self.situation())
        if why:
            self.say(why, "warn")
            return
        self.say("")
        done = getattr(self, f"do_{id}")()
        if inspect.isawaitable(done):
            await done
        if self.is_current:
            self.query_one(Keys).refresh()

    def unbound(self, key: str, character: str | None) -> None:
        """A key that does nothing says so."""
        name = clean(character) if character and character.isprintable() else actions.key_name(key)
        self.say(tr("{key} does nothing here; ? shows the keys of this screen.", key=name), "warn")

    # what works everywhere

    def do_help(self) -> None:
        self.host.open_help(self.NAME)

    def do_palette(self) -> None:
        self.host.open_palette(self)

    def do_back(self) -> None:
        self.host.go_back(self.NAME)

    def do_language(self) -> None:
        self.host.switch_language()

    def do_theme(self) -> None:
        self.host.switch_theme()

    def do_quit(self) -> None:
        self.host.ask_to_quit()

    def action_leave_field(self) -> None:
        """Give the keys back from an input field to the screen."""
        self.set_focus(None)


class Bottom(Widget):
    """The notice and the keys, kept together at the bottom."""

    DEFAULT_CSS = "Bottom { layout: vertical; }"

    def compose(self) -> ComposeResult:
        yield Notice()
        yield Keys()


class Field(Input):
    """An input line without a frame; its cursor does not blink."""

    DEFAULT_CSS = """
    Field { border: none; height: 1; padding: 0 1; background: $panel; }
    Field:focus { border: none; background: $cursor-row; }
    """

    def __init__(self, value: str = "", *, id: str | None = None, placeholder: str = "") -> None:
        super().__init__(value, id=id, placeholder=placeholder, compact=True, select_on_focus=False)
        self.cursor_blink = False
