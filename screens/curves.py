"""Loss, its difference from the baseline with the 1% band, and step time, drawn with plotext in the theme's colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npufuse_tui.screens import marks
from npufuse_tui.screens.series import LIMIT, losses, relative, step_times
from rich.text import Text
from textual.color import Color
from textual.widget import Widget

from npufuse_tui.i18n import tr
from npufuse_tui.model import Metric

_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")


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
        import plotext

        plot: Any = plotext
        plot.clear_figure()
        stacked = room < 100 and high >= 24
        plot.subplots(3, 1) if stacked else plot.subplots(1, 3)
        plot.plotsize(room, high)
        panels = [plot.subplot(*((index, 1) if stacked else (1, index))) for index in (1, 2, 3)]
        for panel in panels:
            panel.plotsize(*((room, high // 3) if stacked else (room // 3, high)))
            panel.canvas_color("default")
            panel.axes_color("default")
            panel.ticks_color(self._colour("quiet"))
            panel.frame(False)
            panel.yfrequency(4 if high < 14 else 5)
        self._draw_loss(panels[0])
        self._draw_difference(panels[1])
        self._draw_times(panels[2])
        built = plot.build()
        plot.clear_figure()
        text = Text.from_ansi(built.translate(_ASCII) if marks.ascii_only() else built)
        text.no_wrap = True
        return text

    @property
    def _marker(self) -> str:
        return "*" if marks.ascii_only() else "braille"

    def _line(self, panel: Any, xs: list[int], ys: list[float], colour: str, marker: str | None = None) -> None:
        if xs:
            middle = (xs[0] + xs[-1]) // 2
            panel.xticks([xs[0], middle, xs[-1]], [str(xs[0]), str(middle), str(xs[-1])])
            panel.plot(xs, ys, color=self._colour(colour), marker=marker or self._marker)

    def _title(self, panel: Any, text: str) -> None:
        panel.title(text)

    def _draw_loss(self, panel: Any) -> None:
        self._title(panel, tr("loss: baseline and fused"))
        self._line(panel, *losses(self._baseline), "quiet")
        self._line(panel, *losses(self._steps), "info", None if not marks.ascii_only() else "x")

    def _draw_difference(self, panel: Any) -> None:
        self._title(panel, tr("difference of the loss, %"))
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
        self._title(panel, tr("seconds a step"))
        self._line(panel, *step_times(self._baseline), "quiet")
        self._line(panel, *step_times(self._steps), "info", None if not marks.ascii_only() else "x")
