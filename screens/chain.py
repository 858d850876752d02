"""The Explain tab: the chain of small operators against the fused one, what was counted, and a timeline drawn to scale."""

from __future__ import annotations

from dataclasses import dataclass

from npufuse_tui.screens import marks
from npufuse_tui.screens.clean import clean, crop, fit, plain
from npufuse_tui.screens.details import Body, heading, quiet
from npufuse_tui.screens.page import Paragraph
from textual.content import Content

from npufuse_tui.i18n import mark, tr
from npufuse_tui.model import Candidate, Step

_COLOURS = {
    "compute": "$primary",
    "cast": "$warn",
    "layout": "$code-keyword",
    "copy": "$code-keyword",
    "control": "$quiet",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One stretch of a timeline: `length` in the unit of the model, `busy` or idle."""

    length: float
    busy: bool
    kind: str = "compute"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Two lanes on one scale, from the cost model. `basis` says in words what was assumed."""

    before: tuple[Bar, ...]
    after: tuple[Bar, ...]
    unit: str
    basis: str

    @property
    def longest(self) -> float:
        return max(sum(bar.length for bar in self.before), sum(bar.length for bar in self.after), 1e-9)


def explain(one: Candidate, room: int, timeline: Timeline | None) -> Body:
    """The whole tab for a page of `room` cells."""
    body: Body = [
        heading(
            tr("{count} small operators run in this order", count=sum(step.kind != "control" for step in one.chain))
        )
    ]
    body += [_step(index, step, room) for index, step in enumerate(one.chain, 1)]
    if not one.chain:
        body.append(quiet(tr("The chain was not recorded.")))
    if one.estimate is not None:
        body += ["", *_counted(one)]  # type: ignore[list-item]
    if timeline is not None:
        body += ["", *draw(timeline, room)]  # type: ignore[list-item]
    if one.bindings:
        body += [Content(""), heading(tr("What the fused operator gets"))]
        names = max(len(binding.name) for binding in one.bindings) + 2
        for binding in one.bindings:
            line = f"  :{binding.line}" if binding.line else ""
            body.append(
                Paragraph(
                    Content.assemble((fit(binding.name, names), "bold"), clean(binding.source), (line, "$quiet")),
                    hang=names,
                )
            )
    return [Content(part) if isinstance(part, str) else part for part in body]


def _step(index: int, step: Step, room: int) -> Paragraph:
    cost = (
        ""
        if not step.launches
        else tr(
            "{launches} launch, {reads} read, {writes} written",
            launches=step.launches,
            reads=step.reads,
            writes=step.writes,
        )
    )
    source = crop(clean(step.source), max(12, room - 66))
    return Paragraph(
        Content.assemble(
            (f"{index:>3} ", "$quiet"),
            (fit(clean(step.op), 14), f"bold {_COLOURS.get(step.kind, '$text')}"),
            (fit(source, max(12, room - 66)), ""),
            (f" :{step.line:<5}", "$quiet"),
            (" " + cost, "$quiet"),
        ),
        fixed=True,
    )


def _counted(one: Candidate) -> Body:
    estimate = one.estimate
    assert estimate is not None
    rows = (
        (tr("launches"), estimate.launches_before, estimate.launches_after),
        (tr("memory passes"), estimate.memory_passes_before, estimate.memory_passes_after),
    )
    body: Body = [heading(tr("Counted, not measured"))]
    most = max(before for _, before, _ in rows) or 1
    for name, before, after in rows:
        for label, value, colour in ((tr("now"), before, "$warn"), (tr("fused"), after, "$ok")):
            cells = max(1, round(30 * value / most)) if value else 0
            body.append(
                Paragraph(
                    Content.assemble(
                        (fit(name if label == tr("now") else "", 16), "$quiet"),
                        (fit(label, 7), ""),
                        (f"{value:>4} ", "bold"),
                        (marks.glyph("=", "=") * cells, colour),
                    ),
                    fixed=True,
                )
            )
    body.append(quiet(tr("basis: {basis}", basis=tr(estimate.basis))))
    return body


def draw(timeline: Timeline, room: int) -> Body:
    """Both lanes on one scale: operators as blocks, idle gaps as dots."""
    lane = max(20, room - 12)
    body: Body = [heading(tr("Timeline (model, not measured)"))]
    for name, bars in ((tr("now"), timeline.before), (tr("fused"), timeline.after)):
        parts: list[tuple[str, str]] = [(fit(name, 8), "")]
        at, drawn = 0.0, 0
        for bar in bars:
            at += bar.length
            cells = round(lane * at / timeline.longest) - drawn
            if bar.busy:
                cells = max(1, cells)
            cells = max(0, min(cells, lane - drawn))
            drawn += cells
            colour = _COLOURS.get(bar.kind, "$primary")
            parts.append(("#" * cells, f"{colour} on {colour}") if bar.busy else ("." * cells, "$quiet"))
        body.append(Paragraph(Content.assemble(*parts), fixed=True))
        total = sum(bar.length for bar in bars)
        idle = sum(bar.length for bar in bars if not bar.busy)
        body.append(
            Paragraph(
                Content.assemble(
                    " " * 8,
                    (
                        tr(
                            "{total} {unit}, of which idle {idle}",
                            total=f"{total:.1f}",
                            unit=timeline.unit,
                            idle=f"{idle:.1f}",
                        ),
                        "$quiet",
                    ),
                ),
                fixed=True,
            )
        )
    body.append(Paragraph(plain(tr("model: {basis}", basis=timeline.basis), "$quiet"), hang=2))
    return body
