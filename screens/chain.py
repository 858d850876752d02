"""The Explain tab: the chain of small operators against the fused one, counts, and a timeline drawn to scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npufuse_tui.screens import marks
from npufuse_tui.screens.clean import clean, crop, fit, plain
from npufuse_tui.screens.details import Body, heading, quiet
from npufuse_tui.screens.page import Paragraph

if TYPE_CHECKING:
    from npufuse_tui.judgement.explain import Explanation
from textual.content import Content

from npufuse_tui.i18n import tr
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
    """One stretch of a timeline: a kernel (its kind and label) or an idle gap."""

    seconds: float
    busy: bool
    kind: str
    label: str


def explain(one: Candidate, told: Explanation | None, room: int) -> Body:
    """The whole tab for a page of `room` cells; `told` is None while it is being worked out."""
    title = tr("{count} small operators run in this order", count=sum(step.kind != "control" for step in one.chain))
    body: Body = [heading(title)]
    if one.chain:
        body.append(_titles(room))
    body += [_step(index, step, room) for index, step in enumerate(one.chain, 1)]
    if not one.chain:
        body.append(quiet(tr("The chain was not recorded.")))
    if told is not None:
        body += _inside(told)
        body += _compared(told)
        body += _timeline(told, room)
        body += _basis(told, room)
    if one.bindings:
        body += [Content(""), heading(tr("What the fused operator gets"))]
        names = max(len(binding.name) for binding in one.bindings) + 2
        for binding in one.bindings:
            line = f"  :{binding.line}" if binding.line else ""
            text = Content.assemble((fit(binding.name, names), "bold"), clean(binding.source), (line, "$quiet"))
            body.append(Paragraph(text, hang=names))
    return body


def _titles(room: int) -> Paragraph:
    text = "    " + fit(tr("operator"), 14) + fit(tr("code"), _code_cells(room)) + fit(tr("line"), 7)
    text += fit(tr("launches"), 10) + fit(tr("reads"), 7) + tr("writes")
    return Paragraph(Content.styled(text, "$quiet"), fixed=True)


def _code_cells(room: int) -> int:
    return max(10, room - 50)


def _step(index: int, step: Step, room: int) -> Paragraph:
    cells = _code_cells(room)
    return Paragraph(
        Content.assemble(
            (f"{index:>3} ", "$quiet"),
            (fit(clean(step.op), 14), f"bold {_COLOURS.get(step.kind, '$text')}"),
            (fit(crop(clean(step.source), cells - 1), cells), ""),
            (fit(str(step.line), 7), "$quiet"),
            (f"{step.launches or '-':>8}  {step.reads or '-':>5}  {step.writes or '-':>6}", "$quiet"),
        ),
        fixed=True,
    )


def _inside(told: Explanation) -> Body:
    if not told.stages:
        return []
    body: Body = [Content(""), heading(tr("Inside the fused operator"))]
    for number, stage in enumerate(told.stages, 1):
        body.append(Paragraph(Content.assemble((f"{number:>3} ", "$quiet"), clean(str(stage))), hang=4))
    return body


def _compared(told: Explanation) -> Body:
    """Before and after, counted and modelled; the heading says which."""
    from npufuse_tui.judgement.explain_text import comparison
    from npufuse_tui.judgement.explain_text import heading as basis

    body: Body = [Content(""), heading(clean(str(basis(told))))]
    for title, before, after, ratio in comparison(told):
        body.append(
            Paragraph(
                Content.assemble(
                    (fit(str(title), 18), "$quiet"),
                    (f"{before:>14}", "$warn"),
                    ("  " + marks.separator() + "  ", "$quiet"),
                    (fit(after, 14), "$ok"),
                    (ratio, "bold"),
                ),
                fixed=True,
            )
        )
    return body


def _timeline(told: Explanation, room: int) -> Body:
    """Both lanes on one scale: kernels as blocks with the number of their step, idle gaps as dots."""
    if not told.timed:
        return []
    gap = told.device.launch_gap.value
    before = [
        Bar(gap if idle else cost.seconds / max(1, cost.step.launches), not idle, cost.step.kind, str(number % 10))
        for number, cost in enumerate(told.costs, 1)
        for _ in range(cost.step.launches)
        for idle in (True, False)
    ]
    after_side = told.model.after
    after = [
        Bar(gap if idle else after_side.kernels / max(1, after_side.launches), not idle, "compute", "F")
        for _ in range(after_side.launches)
        for idle in (True, False)
    ]
    lane = max(20, room - 9)
    longest = max(sum(bar.seconds for bar in before), sum(bar.seconds for bar in after), 1e-12)
    body: Body = [Content(""), heading(tr("On the device, to scale (a model, not a measurement)"))]
    for name, bars in ((tr("now"), before), (tr("fused"), after)):
        body.append(Paragraph(Content.assemble((fit(name, 8), ""), *_lane(bars, lane, longest)), fixed=True))
    body.append(quiet(tr("One cell is {time} us; dots are idle.", time=f"{1e6 * longest / lane:.1f}")))
    return body


def _lane(bars: list[Bar], lane: int, longest: float) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    at, drawn = 0.0, 0
    for bar in bars:
        at += bar.seconds
        cells = max(0, min(round(lane * at / longest) - drawn, lane - drawn))
        drawn += cells
        colour = _COLOURS.get(bar.kind, "$primary")
        parts.append((bar.label * cells, f"bold $background on {colour}") if bar.busy else ("." * cells, "$quiet"))
    return parts


def _basis(told: Explanation, room: int) -> Body:
    """What was assumed, and every constant of the model with its source."""
    from npufuse_tui.judgement.explain_text import constants, given

    body: Body = [Content(""), heading(tr("What this rests on"))]
    lines = [*given(told, room), *constants(told, room)]
    return body + [Paragraph(plain(line.strip(), "$quiet"), hang=2) for line in lines if line.strip()]
