"""The plan of an apply as paragraphs: refusals, where, then each edit with its gate and the risks that are left."""

from __future__ import annotations

from collections.abc import Sequence

from npufuse_tui.screens import details, marks
from npufuse_tui.screens.clean import clean, fit, plain
from npufuse_tui.screens.page import Paragraph
from textual.content import Content

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Approval, Candidate, Session, Severity
from npufuse_tui.workspace.apply_plan import ApplyPlan


def plan_body(
    plan: ApplyPlan | None, approved: Sequence[tuple[Candidate, Approval]], session: Session | None
) -> details.Body:
    """All of the checkpoint. Each approved candidate is a paragraph that can be gone to (and taken out)."""
    body: details.Body = []
    names = {one.id: one for one, _ in approved}
    if plan is not None and plan.refusals:
        body.append(Content.styled(tr("This cannot be applied yet:"), "bold $bad"))
        for refusal in plan.refusals:
            one = names.get(refusal.candidate or "")
            about = f"{one.file}:{one.start_line}  " if one else ""
            body.append(
                Paragraph(
                    Content.assemble(
                        ("✗ " if not marks.ascii_only() else "x ", "$bad"),
                        (clean(about), "bold"),
                        clean(str(refusal.reason)),
                    ),
                    hang=2,
                )
            )
        body.append(Content(""))
    if plan is not None:
        rows = [
            (tr("branch"), plan.branch),
            (tr("starts from"), (plan.base or "-")[:12]),
            (tr("files"), ", ".join(plan.files)),
        ]
        if plan.links:
            rows.append(
                (
                    tr("linked"),
                    tr(
                        "{entries} (untracked, needed by runs; rule: {rule})",
                        entries=", ".join(plan.links),
                        rule=plan.link_rule,
                    ),
                )
            )
        for name, value in rows:
            body.append(Paragraph(Content.assemble((fit(name, 14), "$quiet"), clean(value)), hang=14))
        body += [
            Paragraph(
                Content.assemble((marks.SEVERITY[Severity.INFO].glyph, "$info"), " ", (clean(str(note)), "$quiet")),
                hang=2,
            )
            for note in plan.notes
        ]
        body.append(Content(""))
    edits = {one.candidate: one for one in plan.edits} if plan is not None else {}
    for one, approval in approved:
        edit = edits.get(one.id)
        gate = (edit.gate if edit else None) or one.gate
        body.append(
            Paragraph(
                Content.assemble(
                    (f"{one.rule}  ", "bold $accent"),
                    (clean(f"{one.file}:{one.start_line}-{one.end_line}"), "bold"),
                    "  ",
                    (clean(one.qualname), "$quiet"),
                ),
                hang=2,
                target=one,
            )
        )
        if gate is not None:
            body.append(
                Paragraph(
                    Content.assemble(
                        "  ",
                        (fit(tr("gate"), 12), "$quiet"),
                        (details.gate_kind(gate), ""),
                        "  ",
                        (clean(gate.expression), "$code-name"),
                    ),
                    hang=14,
                )
            )
        if edit is not None and edit.own:
            body.append(plain("  " + tr("with your own replacement"), "$info"))
        if one.check is not None:
            state = marks.CHECK.get(one.check.status, marks.CHECK["skipped"])
            body.append(
                Content.assemble(
                    "  ",
                    (fit(tr("check"), 12), "$quiet"),
                    (state.said(), state.colour),
                    "  ",
                    (trn("{count} case", "{count} cases", one.check.cases), "$quiet"),
                )
            )
        else:
            body.append(
                Content.assemble(
                    "  ",
                    (fit(tr("check"), 12), "$quiet"),
                    (tr("not checked yet; the verification does it first"), "$quiet"),
                )
            )
        left = [risk for risk in one.risks if risk.severity is not Severity.INFO]
        for risk in left:
            state = marks.SEVERITY[risk.severity]
            body.append(
                Paragraph(
                    Content.assemble(
                        "  ",
                        (fit(state.said(), 12), state.colour),
                        (clean(risk.code), "bold"),
                        "  ",
                        clean(str(risk.message)),
                    ),
                    hang=14,
                )
            )
        body.append(
            Content.assemble(
                "  ",
                (fit(tr("approved by"), 12), "$quiet"),
                (clean(approval.who), ""),
                ("  " + clean(approval.when[:19].replace("T", " ")) + "  " + clean(approval.digest[:16]), "$quiet"),
            )
        )
        body.append(Content(""))
    return body
