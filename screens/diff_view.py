"""The diff on the screen: unified or side by side, wrapped or not, drawn line by line as it is scrolled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from npufuse_tui.screens import syntax
from npufuse_tui.screens.clean import clean, width
from npufuse_tui.screens.diff_lines import DiffLine, parse, side_by_side, with_context
from npufuse_tui.screens.page import wrap
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content, Span
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from npufuse_tui.i18n import tr

_SIGNS = {"+": ("+", "$ok", "$added", "$added-word"), "-": ("-", "$bad", "$removed", "$removed-word")}


@dataclass(frozen=True, slots=True)
class _Visual:
    """One line of the screen: a row of the diff, and (wrapped) which part of it."""

    left: DiffLine | None
    right: DiffLine | None
    part: int = 0


class DiffView(ScrollView, can_focus=True):
    """Shows one diff. `+` and `-` stand in the gutter always; colour is never the only sign."""

    DEFAULT_CSS = "DiffView { scrollbar-size: 0 1; background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
        Binding("left", "sideways(-8)", show=False),
        Binding("right", "sideways(8)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.split = False
        self.wrapped = False
        self.extra = 0
        self._diff: str | None = None
        self._note = ""
        self._sources: Mapping[str, Sequence[str]] = {}
        self._lines: list[DiffLine] = []
        self._visuals: list[_Visual] = []
        self._colours: dict[tuple[str, int], tuple[syntax.Span, ...]] = {}
        self._digits = 3
        self._at: int | None = None
        self._width = 0

    def show(
        self, diff: str | None, sources: Mapping[str, Sequence[str]] | None = None, note: str = "", line: int = 0
    ) -> None:
        """Show a unified diff from the first change at or after `line` on.

        `sources` are the files' lines before the edit, for more context; `note` is shown where there is no diff.
        """
        self._diff, self._note, self._sources = diff, note, sources or {}
        self._at = None
        self._build()
        first = next(
            (
                index
                for index, one in enumerate(self._visuals)
                if one.left is not None and one.left.kind == " " and (one.left.old or 0) + 3 >= line
            ),
            0,
        )
        self.scroll_to(0, first if line else 0, animate=False, immediate=True)

    def retell(self) -> None:
        self.refresh()

    def set_options(self, split: bool | None = None, wrapped: bool | None = None, extra: int | None = None) -> None:
        """Change how the diff is shown."""
        self.split = self.split if split is None else split
        self.wrapped = self.wrapped if wrapped is None else wrapped
        self.extra = self.extra if extra is None else max(0, extra)
        self._build()

    def go_to(self, line: int) -> bool:
        """Scroll to a line of the file as it is now and point at it; False when the diff does not show it."""
        for index, visual in enumerate(self._visuals):
            for side in (visual.left, visual.right):
                if side is not None and side.old == line and side.kind in "- ":
                    self._at = line
                    self.scroll_to(y=max(0, index - self.size.height // 2), animate=False, immediate=True)
                    self.refresh()
                    return True
        return False

    @property
    def plain_text(self) -> str:
        """What is shown, for tests and for copying."""
        return "\n".join(self._line(index).plain.rstrip() for index in range(len(self._visuals)))

    def _build(self) -> None:
        self._lines = with_context(parse(self._diff), self._sources, self.extra) if self._diff else []
        self._digits = max([len(str(max(one.old or 0, one.new or 0))) for one in self._lines], default=2)
        self._colours.clear()
        for side, kinds in (("old", "- "), ("new", "+ ")):
            chosen = [one for one in self._lines if one.kind in kinds]
            found = syntax.block_spans([one.text for one in chosen])
            for one, spans in zip(chosen, found or [], strict=False):
                number = one.old if side == "old" else one.new
                self._colours[(one.file + side, number or 0)] = spans
        self._lay_out()

    def _text_width(self) -> int:
        total = self.scrollable_content_region.width
        gutter = self._digits + 3
        return total // 2 - gutter if self.split else total - gutter - self._digits - 1

    def _lay_out(self) -> None:
        self._width = self.scrollable_content_region.width
        pairs = side_by_side(self._lines) if self.split else [(one, None) for one in self._lines]
        room = max(10, self._text_width())
        if self.wrapped:
            self._visuals = []
            for left, right in pairs:
                parts = max(-(-width(clean(one.text)) // room) if one else 1 for one in (left, right))
                self._visuals += [_Visual(left, right, part) for part in range(max(1, parts))]
        else:
            self._visuals = [_Visual(left, right) for left, right in pairs]
        longest = 0
        if not self.wrapped and not self.split:
            longest = max((len(one.text) for one in self._lines), default=0) + 2 * self._digits + 5
        self.virtual_size = Size(max(longest, self._width if self._visuals else 0), len(self._visuals))
        self.refresh()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self._lay_out()

    def action_sideways(self, by: int) -> None:
        self.scroll_relative(x=by, animate=False)

    def render_line(self, y: int) -> Strip:
        room = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        base = self.visual_style
        if not self._visuals:
            lines = wrap(Content(self._note or tr("There is no diff to show.")), max(10, room - 2))
            content = Content.assemble(" ", lines[y].stylize("$quiet")) if y < len(lines) else Content("")
        elif index < len(self._visuals):
            content = self._line(index)
        else:
            return Strip.blank(room, base.rich_style)
        segments = [Segment(text, style.rich_style) for text, style in content.render(base, end="")]
        strip = Strip(segments)
        x = self.scroll_offset.x
        return strip.crop(x, x + room).adjust_cell_length(room, base.rich_style)

    def _line(self, index: int) -> Content:
        visual = self._visuals[index]
        first = visual.left or visual.right
        if first is not None and first.kind in "f@":
            return self._heading(first, self._width)
        if not self.split:
            return self._side(visual.left, visual.part, None, both=True)
        half = self.scrollable_content_region.width // 2
        left = self._side(visual.left, visual.part, half, side="old")
        right = self._side(visual.right, visual.part, half, side="new")
        return left + right

    def _heading(self, line: DiffLine, room: int) -> Content:
        if line.kind == "f":
            return Content.styled(f" {clean(line.text)}".ljust(room), "bold $text on $panel")
        where = tr("line {line}", line=line.old)
        return Content.styled(f" {'.' * self._digits} {where}  {clean(line.text)}".ljust(room), "$quiet on $surface")

    def _side(self, line: DiffLine | None, part: int, room: int | None, side: str = "", both: bool = False) -> Content:
        if line is None:
            return Content.styled(" " * (room or 0), "on $surface")
        sign, colour, back, _ = _SIGNS.get(line.kind, (" ", "$quiet", "", ""))
        old = str(line.old) if line.old is not None and part == 0 else ""
        new = str(line.new) if line.new is not None and part == 0 else ""
        numbers = (
            f"{old:>{self._digits}} {new:>{self._digits}}"
            if both
            else f"{new if side == 'new' else old:>{self._digits}}"
        )
        pointed = line.old is not None and line.old == self._at
        gutter = Content.assemble(
            (numbers, "bold $accent" if pointed else "$quiet"), " ", (sign, f"bold {colour}"), " "
        )
        text = self._text(line, side)
        if self.wrapped:
            cells = max(10, self._text_width())
            pieces = text.fold(cells)
            text = pieces[part] if part < len(pieces) else Content("")
        if room is not None:
            text = text.truncate(max(0, room - gutter.cell_length), pad=True)
        full = gutter + text
        if room is None and full.cell_length < self.virtual_size.width:
            full = full.pad_right(self.virtual_size.width - full.cell_length)
        return full.stylize_before(f"on {back}") if back else full

    def _text(self, line: DiffLine, side: str) -> Content:
        text = clean(line.text)
        if text != line.text.expandtabs(4):
            return Content(text)
        use = side or ("old" if line.kind == "-" else "new")
        number = (line.old if use == "old" else line.new) or 0
        colours = self._colours.get((line.file + use, number))
        if "\t" in line.text or colours is None:
            colours = syntax.spans(text)
        spans = [Span(start, end, style) for start, end, style in colours]
        if "\t" not in line.text and line.kind in _SIGNS:
            spans += [Span(start, end, f"bold on {_SIGNS[line.kind][3]}") for start, end in line.words]
        return Content(text, spans=spans)
