"""A virtual list: only the lines on the screen are drawn, so ten thousand rows cost what forty do."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Rows(ScrollView, can_focus=True):
    """Base of all lists: one line a row, a cursor, an optional line of titles that stays in place.

    A subclass says how many rows there are (`count`) and what a row looks like (`row`).
    """

    DEFAULT_CSS = """
    Rows { scrollbar-size: 1 1; overflow-x: hidden; overflow-y: auto; background: $background; }
    Rows > .rows--cursor { background: $cursor-row; text-style: bold; }
    Rows > .rows--cursor-away { background: $marked-row; }
    Rows > .rows--marked { background: $marked-row; }
    Rows > .rows--title { background: $title-row; color: $quiet; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--cursor",
        "rows--cursor-away",
        "rows--marked",
        "rows--title",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "edge(-1)", show=False),
        Binding("end", "edge(1)", show=False),
    ]

    cursor: reactive[int] = reactive(0, repaint=False, init=False)

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, rows: Rows, index: int) -> None:
            super().__init__()
            self.rows, self.index = rows, index

        @property
        def control(self) -> Rows:
            return self.rows

    class Chosen(Message):
        """A row was double-clicked."""

        def __init__(self, rows: Rows, index: int) -> None:
            super().__init__()
            self.rows, self.index = rows, index

        @property
        def control(self) -> Rows:
            return self.rows

    def count(self) -> int:
        return 0

    def row(self, index: int, width: int) -> Content:
        raise NotImplementedError

    def titles(self, width: int) -> Content | None:
        return None

    def is_marked(self, index: int) -> bool:
        return False

    def retell(self) -> None:
        """Draw again, in the language that is current."""
        self.rows_changed()

    def rows_changed(self) -> None:
        """Tell that rows were added, removed or changed."""
        self.virtual_size = Size(0, self.count() + self._offset)
        if self.cursor >= self.count():
            self.cursor = max(0, self.count() - 1)
        self.refresh()

    @property
    def _offset(self) -> int:
        return 1 if self.titles(80) is not None else 0

    def on_mount(self) -> None:
        self.rows_changed()

    def on_resize(self) -> None:
        self.rows_changed()
        self._show_cursor()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        offset = self._offset
        if y == 0 and offset:
            content = self.titles(width) or Content("")
            return self._strip(content, width, "rows--title")
        index = y - offset + self.scroll_offset.y
        if not 0 <= index < self.count():
            return Strip.blank(width, self.rich_style)
        if index == self.cursor:
            return self._strip(self.row(index, width), width, "rows--cursor" if self.has_focus else "rows--cursor-away")
        return self._strip(self.row(index, width), width, "rows--marked" if self.is_marked(index) else None)

    def _strip(self, content: Content, width: int, component: str | None) -> Strip:
        style = self.get_visual_style(component) if component else self.visual_style
        segments = [Segment(text, one.rich_style) for text, one in content.render(style, end="")]
        return Strip(segments).adjust_cell_length(width, style.rich_style)

    def watch_cursor(self, old: int, new: int) -> None:
        if not self.is_attached:
            return
        top, offset = self.scroll_offset.y, self._offset
        width = self.size.width
        self._show_cursor()
        if self.scroll_offset.y == top:
            self.refresh(Region(0, old - top + offset, width, 1), Region(0, new - top + offset, width, 1))
        else:
            self.refresh()
        self.post_message(self.Moved(self, new))

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.refresh()

    def _show_cursor(self) -> None:
        height = self.size.height - self._offset
        if height <= 0:
            return
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)

    def place_cursor(self, index: int) -> None:
        """Put the cursor on a row, within what there is."""
        self.cursor = max(0, min(index, self.count() - 1))

    def action_move(self, by: int) -> None:
        self.place_cursor(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.place_cursor(self.cursor + by * max(1, self.size.height - self._offset - 1))

    def action_edge(self, to: int) -> None:
        self.place_cursor(0 if to < 0 else self.count() - 1)

    def on_click(self, event: events.Click) -> None:
        index = event.y - self._offset + self.scroll_offset.y
        if event.y < self._offset:
            self.title_clicked(event.x)
        elif 0 <= index < self.count():
            self.place_cursor(index)
            if event.chain == 2:
                self.post_message(self.Chosen(self, index))

    def title_clicked(self, x: int) -> None:
        """The line of titles was clicked at cell `x`."""
