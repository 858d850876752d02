"""The table of candidates: columns that drop out as the terminal narrows, groups, marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from npufuse_tui.screens import marks
from npufuse_tui.screens.candidate_list import CandidateList, Heading, risk_counts
from npufuse_tui.screens.clean import clean, fit, fit_start
from npufuse_tui.screens.rows import Rows
from textual.binding import Binding, BindingType
from textual.content import Content

from npufuse_tui.i18n import mark, tr, trn
from npufuse_tui.model import Candidate, Decision, Severity


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its least width, how much of spare room it takes, and from which table width on it is there."""

    id: str
    title: str
    cells: int
    share: int = 0
    since: int = 0


COLUMNS = (
    Column("decision", mark("Decision"), 12, 0, 66),
    Column("verdict", mark("Verdict"), 14, 0, 40),
    Column("rule", mark("Rule"), 13, 0),
    Column("place", mark("Place"), 16, 3),
    Column("function", mark("Function"), 14, 2, 96),
    Column("priority", mark("Priority"), 9, 0, 112),
    Column("risks", mark("Risks"), 8, 0, 52),
    Column("check", mark("Check"), 10, 0, 80),
)


def columns_for(width: int) -> list[tuple[Column, int]]:
    """The columns that a table of that width shows, and the cells that each gets (one of them a gap)."""
    there = [one for one in COLUMNS if width >= one.since]
    spare = width - 4 - sum(one.cells for one in there)
    shares = sum(one.share for one in there)
    return [(one, one.cells + (max(0, spare) * one.share // shares if one.share else 0)) for one in there]


class CandidateTable(Rows):
    """Draws a `CandidateList`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+up", "extend(-1)", show=False),
        Binding("shift+down", "extend(1)", show=False),
    ]

    def __init__(self, listing: CandidateList, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.listing = listing

    @property
    def here(self) -> Candidate | Heading | None:
        rows = self.listing.rows
        return rows[self.cursor] if 0 <= self.cursor < len(rows) else None

    def count(self) -> int:
        return len(self.listing.rows)

    def is_marked(self, index: int) -> bool:
        row = self.listing.rows[index]
        return isinstance(row, Candidate) and row.id in self.listing.marked

    def titles(self, width: int) -> Content:
        parts: list[tuple[str, str]] = [("    ", "")]
        order = {"place": "file"}
        for column, cells in columns_for(width):
            name = tr(column.title)
            if order.get(column.id, column.id) == self.listing.sort:
                name += " " + (marks.glyph("▾", "v") if self.listing.descending else marks.glyph("▴", "^"))
                parts.append((fit(name, cells), "bold $text"))
            else:
                parts.append((fit(name, cells), ""))
        return Content.assemble(*parts)

    def row(self, index: int, width: int) -> Content:
        row = self.listing.rows[index]
        return self._heading(row, width) if isinstance(row, Heading) else self._candidate(row, index, width)

    def _heading(self, row: Heading, width: int) -> Content:
        approved = sum(self.listing.decisions.get(id) is Decision.APPROVED for id in row.members)
        said = trn("{count} candidate", "{count} candidates", len(row.members))
        if approved:
            said += "  " + tr("{count} approved", count=approved)
        return Content.assemble(
            (f" {marks.folded(row.closed)} ", "$accent"),
            (
                fit_start(clean(row.title), width - len(said) * 2 - 6)
                if len(row.title) > width - 30
                else clean(row.title),
                "bold",
            ),
            "  ",
            (said, "$quiet"),
        )

    def _candidate(self, one: Candidate, index: int, width: int) -> Content:
        at_cursor = index == self.cursor
        decision = marks.DECISION[self.listing.decisions.get(one.id)]
        narrow = width < 66
        lead = marks.cursor() if at_cursor else " "
        chosen = "*" if one.id in self.listing.marked else " "
        parts: list[tuple[str, str]] = [
            (lead, "$accent"),
            (chosen, "bold $accent"),
            (decision.glyph if narrow else " ", decision.colour),
            (" ", ""),
        ]
        quiet = "$quiet" if one.verdict.value == "refused" else "$text"
        for column, cells in columns_for(width):
            text, style = self._cell(one, column.id, quiet)
            fitted = fit_start(text, cells - 1) if column.id == "place" else fit(text, cells - 1)
            parts += [(fitted, style), (" ", "")]
        return Content.assemble(*parts)

    def _cell(self, one: Candidate, column: str, quiet: str) -> tuple[str, str]:
        if column == "decision":
            state = marks.DECISION[self.listing.decisions.get(one.id)]
            return state.said(), state.colour
        if column == "verdict":
            return marks.VERDICT[one.verdict].said(), marks.VERDICT[one.verdict].colour
        if column == "rule":
            return one.rule, quiet
        if column == "place":
            return clean(f"{one.file}:{one.start_line}"), quiet
        if column == "function":
            return clean(one.qualname), quiet
        if column == "priority":
            return marks.PRIORITY[one.priority].said(), marks.PRIORITY[one.priority].colour
        if column == "risks":
            return risk_words(one)
        if one.check is None:
            return "-", "$quiet"
        state = marks.CHECK.get(one.check.status, marks.CHECK["skipped"])
        return f"{state.glyph} {one.check.cases}" if one.check.status == "passed" else state.said(), state.colour

    def action_extend(self, by: int) -> None:
        """Mark the row under the cursor and move on."""
        if isinstance(self.here, Candidate):
            self.listing.marked.add(self.here.id)
        self.action_move(by)
        if isinstance(self.here, Candidate):
            self.listing.marked.add(self.here.id)
        self.refresh()


def risk_words(one: Candidate) -> tuple[str, str]:
    """The risks of a candidate in few cells: how many of each severity, and the colour of the gravest."""
    counts = risk_counts(one)
    words = [f"{counts[level]}{marks.SEVERITY[level].glyph}" for level in reversed(Severity) if counts[level]]
    grave = next((level for level in reversed(Severity) if counts[level]), None)
    return (" ".join(words), marks.SEVERITY[grave].colour) if grave else ("-", "$quiet")
