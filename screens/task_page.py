"""What was measured for one task, and for the baseline, as paragraphs."""

from __future__ import annotations

from collections.abc import Sequence

from npufuse_tui.screens import details, marks
from npufuse_tui.screens.clean import clean, fit, plain
from npufuse_tui.screens.page import Paragraph
from npufuse_tui.screens.task_rows import clock, state_mark
from textual.content import Content

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Baseline, Candidate, LossResult, RunRecord, SpeedResult, Task


def _row(name: str, *parts: tuple[str, str]) -> Paragraph:
    return Paragraph(Content.assemble((fit(name, 18), "$quiet"), *parts), hang=18)


def task(one: Task, candidate: Candidate | None) -> details.Body:
    """State, the three checks, the runs."""
    state = state_mark(one)
    body: details.Body = [
        Content.assemble(
            (state.said(), f"bold {state.colour}"), "  ", (clean(candidate.qualname) if candidate else one.id, "bold")
        )
    ]
    if one.reason is not None:
        body.append(Paragraph(plain(str(one.reason)), hang=2))
    if one.commit:
        body.append(_row(tr("commit"), (one.commit[:12], "$info")))
    body.append(Content(""))
    body.append(details.heading(tr("Operator check")))
    body += (
        details.check(candidate, one.op)
        if one.op is not None and candidate is not None
        else [details.quiet(tr("not run"))]
    )
    body += [Content(""), details.heading(tr("Loss check")), *loss(one.loss)]
    body += [Content(""), details.heading(tr("Speed check")), *speed(one.speed)]
    body += runs(one.runs)
    return body


def loss(result: LossResult | None) -> details.Body:
    if result is None:
        return [details.quiet(tr("not run"))]
    state = marks.CHECK["passed" if result.passed else "failed" if result.passed is False else "skipped"]
    body: details.Body = [
        Paragraph(Content.assemble((state.said(), state.colour), "  ", clean(str(result.reason))), hang=2)
    ]
    body.append(_row(tr("steps compared"), (str(result.steps), "")))
    worst = "-" if result.max_rel_diff is None else f"{100 * result.max_rel_diff:.4f}%"
    body.append(
        _row(tr("largest"), (worst, "bold"), ("  " + tr("limit {limit}%", limit=f"{100 * result.limit:g}"), "$quiet"))
    )
    if result.noise_max_rel_diff is not None:
        body.append(
            _row(
                tr("noise"),
                (f"{100 * result.noise_max_rel_diff:.4f}%", ""),
                ("  " + tr("between two baseline runs"), "$quiet"),
            )
        )
    if result.first_fail_step is not None:
        body.append(_row(tr("first beyond it"), (tr("step {step}", step=result.first_fail_step), "$bad")))
    return body


def speed(result: SpeedResult | None) -> details.Body:
    if result is None:
        return [details.quiet(tr("not run"))]
    words = {
        "faster": tr("faster"),
        "slower": tr("slower"),
        "no difference shown": tr("no difference shown"),
        "not measured": tr("not measured"),
    }
    body: details.Body = [
        Paragraph(
            Content.assemble(
                (words.get(result.conclusion, result.conclusion), "bold"), "  ", clean(str(result.reason))
            ),
            hang=2,
        )
    ]
    if result.ratio is not None:
        said = f"{result.ratio:.4f}"
        if result.ci_low is not None and result.ci_high is not None:
            said += "  " + tr("95% interval {low} to {high}", low=f"{result.ci_low:.4f}", high=f"{result.ci_high:.4f}")
        body.append(_row(tr("ratio"), (said, "")))
    if result.baseline_median_s is not None and result.fused_median_s is not None:
        body.append(_row(tr("seconds a step"), (f"{result.baseline_median_s:.4f} / {result.fused_median_s:.4f}", "")))
    return body


def runs(records: Sequence[RunRecord]) -> details.Body:
    """The commands that were really run."""
    if not records:
        return []
    body: details.Body = [Content(""), details.heading(trn("{count} run", "{count} runs", len(records)))]
    for one in records:
        ended = {
            "finished": tr("finished"),
            "failed": tr("failed"),
            "timed out": tr("timed out"),
            "stopped early": tr("stopped early"),
            "cancelled": tr("cancelled"),
        }.get(one.ended, one.ended)
        said = tr(
            "{label}  {ended}  {steps} steps in {time}",
            label=one.label,
            ended=ended,
            steps=one.steps,
            time=clock(one.seconds),
        )
        body.append(Paragraph(Content.assemble((clean(said), "")), hang=2))
        body.append(Paragraph(Content.assemble("  ", (clean(one.command), "$code-name")), hang=4))
        if one.reason is not None:
            body.append(Paragraph(plain("  " + str(one.reason), "$warn"), hang=4))
        body.append(Paragraph(plain("  " + one.log, "$quiet"), hang=4))
    return body


def baseline(one: Baseline | None) -> details.Body:
    """How the unmodified code ran."""
    if one is None:
        return [details.quiet(tr("The baseline has not run yet."))]
    state = marks.BASELINE.get(one.status, marks.BASELINE["pending"])
    body: details.Body = [
        Content.assemble((state.said(), f"bold {state.colour}"), "  ", (tr("baseline, unmodified code"), "bold"))
    ]
    if one.reason is not None:
        body.append(Paragraph(plain(str(one.reason)), hang=2))
    body.append(_row(tr("steps"), (str(one.steps), "")))
    if one.noise_max_rel_diff is not None:
        body.append(
            _row(
                tr("noise"),
                (f"{100 * one.noise_max_rel_diff:.4f}%", ""),
                ("  " + tr("between two baseline runs"), "$quiet"),
            )
        )
    return body + runs(one.runs)
