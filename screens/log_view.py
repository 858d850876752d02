"""A window on a log file: follows its end, or stays where the person reads."""

from __future__ import annotations

from typing import ClassVar

from npufuse_tui.screens.clean import width
from npufuse_tui.screens.log_file import LogFile
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from npufuse_tui.i18n import tr


class LogView(ScrollView, can_focus=True):
    """Draws only the lines that are on the screen; `poll` is called a few times a second, at any speed of the log."""

    DEFAULT_CSS = """
    LogView { scrollbar-size: 0 1; background: $background; }
    LogView > .log--found { background: $cursor-row; }
    LogView > .log--number { color: $quiet; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"log--found", "log--number"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move(-20)", show=False),
        Binding("pagedown", "move(20)", show=False),
        Binding("home", "edge(-1)", show=False),
        Binding("end", "edge(1)", show=False),
        Binding("left", "sideways(-8)", show=False),
        Binding("right", "sideways(8)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.log_file: LogFile | None = None
        self.follow = True
        self.word = ""
        self.found: int | None = None
        self._widest = 0

    def retell(self) -> None:
        self.refresh()

    def open(self, path: str | None) -> None:
        """Show another file; the same one again changes nothing."""
        if path == (self.log_file.path if self.log_file else None):
            return
        if self.log_file:
            self.log_file.close()
        self.log_file = LogFile(path) if path else None
        self.follow, self.found, self._widest = True, None, 0
        self.scroll_to(0, 0, animate=False, immediate=True)
        self.poll()
        self.refresh()

    def poll(self) -> None:
        """Look at what the file has now."""
        if self.log_file is None or not self.log_file.poll():
            return
        self._measure()
        if self.follow:
            self.scroll_to(y=max(0, len(self.log_file) - self.size.height), animate=False, immediate=True)
        self.refresh()

    def _measure(self) -> None:
        if self.log_file is not None:
            self.virtual_size = Size(max(self._widest, self.scrollable_content_region.width), len(self.log_file))

    def on_resize(self) -> None:
        self._measure()
        if self.follow and self.log_file:
            self.scroll_to(y=max(0, len(self.log_file) - self.size.height), animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        room = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        if self.log_file is None or index >= len(self.log_file):
            empty = self.log_file is None or not len(self.log_file)
            text = " " + tr("No log yet.") if y == 0 and empty else ""
            style = self.get_visual_style("log--number")
            return Strip([Segment(text, style.rich_style)]).adjust_cell_length(room, style.rich_style)
        digits = len(str(len(self.log_file)))
        text = self.log_file.line(index)
        self._widest = max(self._widest, min(width(text), 4096) + digits + 2)
        base = self.get_visual_style("log--found") if index == self.found else self.visual_style
        content = Content.assemble((f"{index + 1:>{digits}} ", "$quiet"), self._coloured(text))
        segments = [Segment(part, style.rich_style) for part, style in content.render(base, end="")]
        x = self.scroll_offset.x
        return Strip(segments).crop(x, x + room).adjust_cell_length(room, base.rich_style)

    def _coloured(self, text: str) -> Content:
        style = ""
        if "Error" in text or "ERROR" in text or "Traceback" in text:
            style = "$bad"
        elif "WARN" in text or "Warning" in text:
            style = "$warn"
        content = Content.styled(text, style) if style else Content(text)
        if self.word:
            low, at = text.lower(), text.lower().find(self.word.lower())
            while at != -1 and len(low) == len(text):
                content = content.stylize("reverse", at, at + len(self.word))
                at = low.find(self.word.lower(), at + len(self.word))
        return content

    def set_follow(self, on: bool) -> None:
        """Stay at the end of the log, or stop where it is."""
        self.follow = on
        if on and self.log_file:
            self.scroll_to(y=max(0, len(self.log_file) - self.size.height), animate=False, immediate=True)
        self.refresh()

    def go_to(self, line: int) -> None:
        """Show a line and point at it; following stops."""
        self.follow, self.found = False, line
        self.scroll_to(y=max(0, line - self.size.height // 2), animate=False, immediate=True)
        self.refresh()

    def search(self, word: str, step: int = 1) -> bool:
        """Go to the next (or, with step -1, previous) line that holds `word`."""
        if self.log_file is None:
            return False
        self.word = word
        here = self.found if self.found is not None else (-1 if step > 0 else len(self.log_file))
        line = self.log_file.find(word, here, step)
        if line is not None:
            self.go_to(line)
        self.refresh()
        return line is not None

    def visible_text(self) -> str:
        """The lines that are on the screen."""
        if self.log_file is None:
            return ""
        top = self.scroll_offset.y
        stop = min(len(self.log_file), top + self.size.height)
        return "\n".join(self.log_file.line(index) for index in range(top, stop))

    def action_move(self, by: int) -> None:
        self.follow = False
        self.scroll_relative(y=by, animate=False)
        if by > 0 and self.log_file and self.scroll_offset.y + self.size.height + by >= len(self.log_file):
            self.follow = True

    def action_edge(self, to: int) -> None:
        self.set_follow(to > 0)
        if to < 0:
            self.scroll_to(y=0, animate=False, immediate=True)

    def action_sideways(self, by: int) -> None:
        self.scroll_relative(x=by, animate=False)

    def on_mouse_scroll_up(self) -> None:
        self.follow = False
