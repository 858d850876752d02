"""What is told about one candidate, as paragraphs: risks, explanation, check, reuse. No widgets, no engine."""

from __future__ import annotations

from dataclasses import dataclass

from npufuse_tui.screens import marks
from npufuse_tui.screens.clean import clean, fit, plain, width
from npufuse_tui.screens.page import Paragraph
from textual.content import Content

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Approval, Backend, Candidate, CaseResult, Check, Gate, Risk, Severity

Body = list[Paragraph | Content]


@dataclass(frozen=True, slots=True)
class JumpTo:
    """Go to a line of the candidate's file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ChooseGate:
    """Use this gate for the candidate."""

    gate: Gate


def heading(text: str) -> Content:
    return Content.styled(text, "bold $accent")


def quiet(text: str) -> Content:
    return plain(text, "$quiet")


def number(value: float | None, form: str = ".6f") -> str:
    """A measured number, or a dash when it was not measured."""
    return "-" if value is None else format(value, form)


def summary(one: Candidate, approval: Approval | None, note: str) -> Body:
    """The lines above the tabs' bodies: what, where, why this verdict, what was decided."""
    state = marks.VERDICT[one.verdict]
    body: Body = [
        Paragraph(Content.assemble((state.said(), state.colour), "  ", (clean(str(one.reason)), "")), hang=2),
    ]
    if approval is not None:
        decision = marks.DECISION[approval.decision]
        said = tr(
            "{who}, {when}, {digest}",
            who=approval.who,
            when=approval.when[:16].replace("T", " "),
            digest=approval.digest[:12],
        )
        body.append(Content.assemble((decision.said(), decision.colour), "  ", (clean(said), "$quiet")))
        if approval.edit is not None:
            body.append(quiet(tr("with your own replacement")))
    if note:
        body.append(Paragraph(Content.assemble((tr("Note: "), "$info"), clean(note)), hang=2))
    if one.generated_from:
        body.append(
            Paragraph(
                Content.assemble(
                    (marks.SEVERITY[Severity.WARNING].glyph, "$warn"),
                    " ",
                    tr(
                        "generated from {file}: edit that file too, or the change is overwritten",
                        file=clean(one.generated_from),
                    ),
                ),
                hang=2,
            )
        )
    return body


def risks(one: Candidate) -> Body:
    """Each risk with the line that shows it; Enter jumps there."""
    if not one.risks:
        return [quiet(tr("No risk is known for this candidate."))]
    body: Body = [
        quiet(trn("{count} risk; Enter jumps to its line", "{count} risks; Enter jumps to the line", len(one.risks))),
        Content(""),
    ]
    order = sorted(one.risks, key=lambda risk: list(marks.SEVERITY).index(risk.severity), reverse=True)
    for risk in order:
        body.append(risk_paragraph(one, risk))
        body.append(Content(""))
    return body


def risk_paragraph(one: Candidate, risk: Risk) -> Paragraph:
    """One risk as a paragraph that leads to its line."""
    state = marks.SEVERITY[risk.severity]
    where = f"{risk.file or one.file}:{risk.line}" if risk.line else ""
    return Paragraph(
        Content.assemble(
            (fit(state.said(), 10), state.colour),
            (clean(risk.code), "bold"),
            "  ",
            (clean(str(risk.message)), ""),
            "  ",
            (clean(where), "$info"),
        ),
        hang=10,
        target=JumpTo(risk.file or one.file, risk.line) if risk.line else None,
    )


def check(one: Candidate, own: Check | None = None) -> Body:
    """The measured numbers of the executable proof, case by case."""
    result = own or one.check
    if result is None:
        return [quiet(tr("Not checked yet; c runs original and replacement side by side.")), *proof_note(one)]
    state = marks.CHECK.get(result.status, marks.CHECK["skipped"])
    where = tr("on the NPU") if result.backend is Backend.NPU else tr("emulated on the CPU")
    body: Body = [
        Content.assemble(
            (state.said(), f"bold {state.colour}"),
            "  ",
            trn("{count} case", "{count} cases", result.cases),
            "  ",
            (where, "$quiet"),
        ),
        Content.assemble(
            (tr("least cosine") + " ", "$quiet"),
            number(result.worst_cosine, ".7f"),
            "   ",
            (tr("largest difference") + " ", "$quiet"),
            number(result.worst_abs_diff, ".2e"),
            "   ",
            (tr("least cosine of gradients") + " ", "$quiet"),
            number(result.worst_grad_cosine, ".7f"),
            "   ",
            (tr("dtype") + " ", "$quiet"),
            tr("equal") if result.dtype_equal else "-" if result.dtype_equal is None else tr("differs"),
        ),
    ]
    if result.reason:
        body.append(Paragraph(plain(result.reason, "$warn"), hang=2))
    if result.per_case:
        body += [Content(""), *case_table(result.per_case)]
    return body


def proof_note(one: Candidate) -> Body:
    if one.proof is not None and one.proof.not_run is not None:
        return [Paragraph(plain(str(one.proof.not_run), "$warn"), hang=2)]
    return []


def case_table(cases: tuple[CaseResult, ...]) -> Body:
    """One line a case."""
    shape = max([width(tr("shape")), *(width(clean(one.shape)) for one in cases)]) + 2
    layout = max([width(tr("layout")), *(width(clean(one.layout)) for one in cases)]) + 2
    dtype = max([width(tr("dtype")), *(width(clean(one.dtype)) for one in cases)]) + 2
    titles = "  " + fit(tr("shape"), shape) + fit(tr("dtype"), dtype) + fit(tr("layout"), layout)
    titles += fit(tr("cosine"), 12) + fit(tr("difference"), 12) + fit(tr("gradients"), 12) + tr("dtype out")
    body: Body = [Paragraph(Content.styled(titles, "$quiet"), fixed=True)]
    for one in cases:
        state = marks.CHECK["passed" if one.passed else "failed"]
        text = fit(clean(one.shape), shape) + fit(clean(one.dtype), dtype) + fit(clean(one.layout), layout)
        text += fit(number(one.cosine, ".7f"), 12) + fit(number(one.abs_diff, ".2e"), 12)
        text += fit(number(one.grad_cosine, ".7f"), 12) + clean(one.dtype_out)
        body.append(Paragraph(Content.assemble((state.glyph, state.colour), " ", text), fixed=True))
        if one.reason:
            body.append(Paragraph(plain("  " + one.reason, "$warn"), hang=2))
    return body


def reuse(one: Candidate, chosen: Gate | None, frozen: bool) -> Body:
    """The gates that could be used, the one that is, and what the repo has already."""
    body: Body = [heading(tr("Gate: what switches the fused branch"))]
    gates = one.gates or ((one.gate,) if one.gate else ())
    if not gates:
        body.append(quiet(tr("No gate: the candidate is refused.")))
    elif len(gates) > 1 and not frozen:
        body.append(quiet(tr("Enter takes another one; the diff is made anew.")))
    for gate in gates:
        current = gate == (chosen or one.gate)
        lead = "(x) " if current else "( ) "
        body.append(
            Paragraph(
                Content.assemble(
                    (lead, "bold $accent" if current else "$quiet"),
                    (fit(gate_kind(gate), 22), "bold" if current else ""),
                    clean(gate.expression),
                ),
                hang=4,
                target=ChooseGate(gate),
            )
        )
        body.append(Paragraph(Content.assemble("    ", (clean(str(gate.why)), "$quiet")), hang=4))
    body += [Content(""), heading(tr("Found in the repo"))]
    if not one.reuse:
        body.append(quiet(tr("Nothing that switches NPU code was found.")))
    for found in one.reuse:
        body.append(
            Paragraph(
                Content.assemble((clean(found.what), "bold"), "  ", (clean(f"{found.file}:{found.line}"), "$info")),
                hang=2,
                target=JumpTo(found.file, found.line),
            )
        )
    return body


def gate_kind(gate: Gate) -> str:
    return {
        "existing": tr("a switch you have"),
        "argument": tr("a new argument"),
        "environment": tr("an environment variable"),
        "availability": tr("availability alone"),
    }[gate.kind.value]
