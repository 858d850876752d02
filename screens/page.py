"""Text to read, wrapped by cells, with paragraphs that can be gone to and chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from npufuse_tui.screens.clean import width as cells
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph. Lines after the first are indented by `hang`; `target` makes it one that can be chosen."""

    content: Content
    hang: int = 0
    target: object = None
    fixed: bool = False  # cropped at the edge, not wrapped


def wrap(content: Content, width: int, hang: int = 0) -> list[Content]:
    """Break content into lines of at most `width` cells: at spaces, and after any wide character."""
    text = content.plain
    if width <= 0 or cells(text) <= width:
        return [content]
    hang = hang if hang < width // 2 else 0
    breaks: list[int] = []
    start = last = 0
    used = 0
    room = width
    index = 0
    while index < len(text):
        size = cells(text[index])
        if used + size > room:
            cut = last if last > start else index
            if cut <= start:
                cut = start + 1
            breaks.append(cut)
            start = last = cut
            index = cut
            used, room = 0, width - hang
            continue
        used += size
        index += 1
        # full-width closing punctuation stays with what it closes
        closing = index < len(text) and text[index] in "，。：；、）」！？"
        if text[index - 1] == " " or (size == 2 and not closing):
            last = index
    lines = content.divide(breaks)
    return [lines[0].rstrip(), *(line.rstrip().pad_left(hang) for line in lines[1:])]


class Page(ScrollView, can_focus=True):
    """A scrolling page of paragraphs. Where some have targets, up and down go among them and Enter chooses."""

    DEFAULT_CSS = """
    Page { scrollbar-size: 1 1; overflow-x: hidden; overflow-y: auto; background: $background; padding: 0 1; }
    Page > .page--cursor { background: $cursor-row; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"page--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]

    class Chosen(Message):
        """Enter, or a double click, on a paragraph with a target."""

        def __init__(self, page: Page, target: object) -> None:
            super().__init__()
            self.page, self.target = page, target

        @property
        def control(self) -> Page:
            return self.page

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._paragraphs: tuple[Paragraph, ...] = ()
        self._lines: list[tuple[Content, int]] = []
        self._cursor = -1
        self._width = 0

    def show(self, paragraphs: Iterable[Paragraph | Content], keep: bool = False) -> None:
        """Show these paragraphs, from the top, or (keep) from where the person was."""
        self._paragraphs = tuple(one if isinstance(one, Paragraph) else Paragraph(one) for one in paragraphs)
        targets = self._targets()
        if not keep or self._cursor not in targets:
            self._cursor = targets[0] if targets else -1
        self._lay_out()
        if not keep:
            self.scroll_to(y=0, animate=False, immediate=True)

    @property
    def text(self) -> str:
        """All that is shown, as plain text."""
        return "\n".join(one.content.plain for one in self._paragraphs)

    @property
    def target(self) -> object:
        """The target of the paragraph under the cursor, or None."""
        return self._paragraphs[self._cursor].target if 0 <= self._cursor < len(self._paragraphs) else None

    def _targets(self) -> list[int]:
        return [index for index, one in enumerate(self._paragraphs) if one.target is not None]

    def _lay_out(self) -> None:
        self._width = self.scrollable_content_region.width
        self._lines = []
        for index, one in enumerate(self._paragraphs):
            lines = [one.content] if one.fixed else wrap(one.content, self._width, one.hang)
            self._lines += [(line, index) for line in lines]
        self.virtual_size = Size(0, len(self._lines))
        self.refresh()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self._lay_out()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, self.rich_style)
        content, paragraph = self._lines[index]
        at_cursor = paragraph == self._cursor
        style = self.get_visual_style("page--cursor") if at_cursor and self.has_focus else self.visual_style
        segments = [Segment(text, one.rich_style) for text, one in content.render(style, end="")]
        return Strip(segments).adjust_cell_length(width, style.rich_style)

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.refresh()

    def action_move(self, by: int) -> None:
        targets = self._targets()
        if not targets:
            self.scroll_relative(y=by, animate=False)
            return
        ahead = [one for one in targets if (one > self._cursor if by > 0 else one < self._cursor)]
        if ahead:
            self._cursor = ahead[0] if by > 0 else ahead[-1]
            self._show_cursor()
        else:
            self.scroll_relative(y=by, animate=False)
        self.refresh()

    def _show_cursor(self) -> None:
        first = next((line for line, (_, index) in enumerate(self._lines) if index == self._cursor), 0)
        last = max((line for line, (_, index) in enumerate(self._lines) if index == self._cursor), default=0)
        height = self.scrollable_content_region.height
        if last >= self.scroll_offset.y + height:
            self.scroll_to(y=last - height + 1, animate=False, immediate=True)
        if first < self.scroll_offset.y:
            self.scroll_to(y=first, animate=False, immediate=True)

    def key_enter(self, event: events.Key) -> None:
        if self.target is not None:
            event.stop()
            self.post_message(self.Chosen(self, self.target))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y + self.scroll_offset.y
        if 0 <= index < len(self._lines):
            paragraph = self._lines[index][1]
            if self._paragraphs[paragraph].target is not None:
                self._cursor = paragraph
                self.refresh()
                if event.chain == 2:
                    self.post_message(self.Chosen(self, self.target))
