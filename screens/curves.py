"""Loss, its difference from the baseline with the 1% band, and step time, drawn with plotext in the theme's colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npufuse_tui.screens import marks
from npufuse_tui.screens.series import LIMIT, losses, relative, step_times
from rich.text import Text
from textual.color import Color
from textual.widget import Widget

from npufuse_tui.i18n import tr
from npufuse_tui.model import Metric

_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")


def _fitted(line: Text, wide: int) -> Text:
    """The line in exactly so many cells."""
    fitted = line.copy()
    fitted.truncate(wide, overflow="crop", pad=True)
    return fitted


class CurvesView(Widget, can_focus=True):
    """Three small plots beside one another, or above one another where it is narrow and high."""

    DEFAULT_CSS = "CurvesView { background: $background; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._baseline: Sequence[Metric] = ()
        self._steps: Sequence[Metric] = ()
        self._key: tuple[int, int, object] = (-1, -1, None)

    def tell(self, baseline: Sequence[Metric], steps: Sequence[Metric], of: object) -> None:
        """Show these; the same again costs nothing."""
        key = (len(baseline), len(steps), of)
        if key != self._key:
            self._key, self._baseline, self._steps = key, baseline, steps
            if self.display:
                self.refresh()

    def retell(self) -> None:
        self.refresh()

    def summary(self) -> str:
        """The curves in words, for the plain flow and for tests."""
        _, differences = relative(self._baseline, self._steps)
        if not differences:
            return tr("No step of both runs to compare yet.")
        worst = max(map(abs, differences))
        return tr(
            "{steps} steps compared, largest difference of the loss {worst}%",
            steps=len(differences),
            worst=f"{worst:.3f}",
        )

    def _colour(self, name: str) -> tuple[int, int, int]:
        value = self.app.theme_variables.get(name, "#888888")
        return Color.parse(value).rgb

    def render(self) -> Text:
        room, high = self.content_size.width, self.content_size.height
        if room < 20 or high < 5:
            return Text("")
        if not self._baseline and not self._steps:
            return Text(tr("No step was read from a log yet."), style="dim")
        stacked = room < 100 and high >= 24
        count = 3
        wide, tall = (room, high // count) if stacked else (room // count, high)
        drawn = [self._panel(title, draw, wide, tall) for title, draw in self._panels()]
        if stacked:
            return Text("\n", no_wrap=True).join([line for lines in drawn for line in lines])
        rows = [Text.assemble(*parts, no_wrap=True) for parts in zip(*drawn, strict=True)]
        return Text("\n", no_wrap=True).join(rows)

    def _panels(self) -> list[tuple[str, Callable[[Any], None]]]:
        return [
            (tr("loss: baseline and fused"), self._draw_loss),
            (tr("difference of the loss, %"), self._draw_difference),
            (tr("seconds a step"), self._draw_times),
        ]

    def _panel(self, title: str, draw: Callable[[Any], None], wide: int, tall: int) -> list[Text]:
        """One plot as `tall` lines of `wide` cells, its title first.

        The title is ours, since plotext counts a wide character as one cell; and each plot is a figure of its own, since
        plotext's shared one remembers what was drawn before.
        """
        from textual_plotext.plot import Plot

        plot: Any = Plot()
        plot.plotsize(wide, tall - 1)
        plot.canvas_color("default")
        plot.axes_color("default")
        plot.ticks_color(self._colour("quiet"))
        plot.frame(False)
        plot.yfrequency(4 if tall < 14 else 5)
        draw(plot)
        built = plot.build()
        body = Text.from_ansi(built.translate(_ASCII) if marks.ascii_only() else built).split("\n")
        head = Text(title, style=self.app.theme_variables.get("quiet", ""))
        lines = [head, *body][:tall]
        lines += [Text("")] * (tall - len(lines))
        return [_fitted(line, wide) for line in lines]

    @property
    def _marker(self) -> str:
        return "*" if marks.ascii_only() else "braille"

    def _line(self, panel: Any, xs: list[int], ys: list[float], colour: str, marker: str | None = None) -> None:
        if xs:
            middle = (xs[0] + xs[-1]) // 2
            panel.xticks([xs[0], middle, xs[-1]], [str(xs[0]), str(middle), str(xs[-1])])
            panel.plot(xs, ys, color=self._colour(colour), marker=marker or self._marker)

    def _draw_loss(self, panel: Any) -> None:
        self._line(panel, *losses(self._baseline), "quiet")
        self._line(panel, *losses(self._steps), "info", None if not marks.ascii_only() else "x")

    def _draw_difference(self, panel: Any) -> None:
        xs, ys = relative(self._baseline, self._steps)
        limit = 100 * LIMIT
        span = losses(self._baseline)[0] or xs or [0, 1]
        for level in (-limit, limit):
            self._line(panel, [span[0], span[-1]], [level, level], "warn")
        most = max([limit * 1.2, *map(abs, ys)])
        panel.ylim(-most, most)
        panel.xlim(span[0], span[-1] if span[-1] > span[0] else span[0] + 1)
        if xs:
            self._line(panel, xs, ys, "bad" if max(map(abs, ys)) > limit else "ok")

    def _draw_times(self, panel: Any) -> None:
        self._line(panel, *step_times(self._baseline), "quiet")
        self._line(panel, *step_times(self._steps), "info", None if not marks.ascii_only() else "x")
