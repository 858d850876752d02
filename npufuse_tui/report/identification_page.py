"""The identification report as a page for a browser: what `identification` says, with colours and a filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from npufuse_tui.language import current_language
from npufuse_tui.model import Candidate, Priority, ScanResult, Verdict
from npufuse_tui.report import api_lines, diff_view, labels
from npufuse_tui.report.opportunity import gain, lines_of, opportunities, place_of, suggested_order
from npufuse_tui.report.page import render

if TYPE_CHECKING:
    from npufuse_tui.judgement.api import ApiFacts


def identification_page(
    result: ScanResult, language: str | None = None, facts: Mapping[str, ApiFacts] | None = None, index: str = ""
) -> str:
    """The page. `facts` as for `identification_markdown`; `index`: a link back, "" for none."""
    groups = opportunities(result.candidates)
    saved: dict[str, int] = {}
    for group in groups:
        if group.launches_saved is not None and group.first.verdict is not Verdict.REFUSED:
            saved[group.first.rule] = saved.get(group.first.rule, 0) + group.launches_saved
    known = facts or {}
    return render(
        "identification.html.j2",
        language or current_language(),
        result=result,
        rules=sorted(result.rules, key=lambda one: one.id),
        saved=saved,
        order=suggested_order(result.candidates),
        groups=[(priority, [one for one in groups if one.first.priority is priority]) for priority in Priority],
        skipped=sorted(result.skipped, key=lambda one: (one.file, one.reason.en)),
        gain=gain,
        diff_of=_diff_of,
        colours=diff_view.colours,
        place_of=place_of,
        lines_of=lines_of,
        api_rows={name: api_lines.rows(name, known) for name in sorted({one.api for one in result.candidates})},
        check_line=labels.check_line,
        index=index,
    )


def _diff_of(candidate: Candidate) -> tuple[diff_view.FileDiff, ...]:
    return diff_view.parse(candidate.diff) if candidate.diff else ()
