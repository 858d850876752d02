"""Which candidates are shown, in which order, under which groups: filter, sort and grouping, without a widget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from npufuse_tui.i18n import mark
from npufuse_tui.model import Candidate, Decision, Priority, Severity, Verdict

SORTS: tuple[tuple[str, str], ...] = (
    ("found", mark("as found")),
    ("verdict", mark("Verdict")),
    ("rule", mark("Rule")),
    ("file", mark("Place")),
    ("priority", mark("Priority")),
    ("risks", mark("Risks")),
    ("decision", mark("Decision")),
)
GROUPS: tuple[tuple[str, str], ...] = (
    ("none", mark("not grouped")),
    ("rule", mark("by rule")),
    ("shape", mark("by equal shape")),
    ("file", mark("by file")),
)
_VERDICTS = {Verdict.RECOMMENDED: 0, Verdict.CAUTION: 1, Verdict.REFUSED: 2}
_PRIORITIES = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}


@dataclass(frozen=True, slots=True)
class Heading:
    """The line above a group. `members` are candidate ids."""

    key: str
    title: str
    members: tuple[str, ...]
    closed: bool


Row = Heading | Candidate


def _fields(one: Candidate) -> dict[str, str]:
    risks = " ".join(f"{risk.code} {risk.severity.value}" for risk in one.risks)
    return {
        "rule": f"{one.rule} {one.variant} {one.api}".lower(),
        "file": one.file.lower(),
        "function": one.qualname.lower(),
        "verdict": one.verdict.value,
        "priority": one.priority.value,
        "risk": risks.lower(),
        "group": one.group.lower(),
    }


@dataclass
class CandidateList:
    """The candidates of a scan as the person looks at them. `rows` is what a table draws."""

    candidates: tuple[Candidate, ...] = ()
    decisions: dict[str, Decision] = field(default_factory=dict)
    query: str = ""
    sort: str = "found"
    descending: bool = False
    group: str = "none"
    closed: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)
    shown: list[Candidate] = field(default_factory=list)
    _fields: dict[str, dict[str, str]] = field(default_factory=dict)
    _hay: dict[str, str] = field(default_factory=dict)

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Take the candidates of the session; what was marked and folded stays where it still fits."""
        if self.candidates is candidates or self.candidates == tuple(candidates):
            return
        self.candidates = tuple(candidates)
        self._fields = {one.id: _fields(one) for one in self.candidates}
        self._hay = {id: " ".join(values.values()) for id, values in self._fields.items()}
        self.marked &= set(self._fields)
        self.arrange()

    def replace(self, changed: dict[str, Candidate]) -> None:
        """Put newer versions of some candidates in their places, without arranging anew."""
        self.candidates = tuple(changed.get(one.id, one) for one in self.candidates)
        self.shown = [changed.get(one.id, one) for one in self.shown]
        self.rows = [changed.get(row.id, row) if isinstance(row, Candidate) else row for row in self.rows]

    def arrange(self) -> None:
        """Work out `shown` and `rows` from filter, order and groups."""
        self.shown = self._sorted([one for one in self.candidates if self._fits(one)])
        if self.group == "none":
            self.rows = list(self.shown)
            return
        groups: dict[str, list[Candidate]] = {}
        for one in self.shown:
            groups.setdefault(self._group_of(one), []).append(one)
        self.rows = []
        for key, members in groups.items():
            closed = key in self.closed
            title = f"{members[0].rule}  {members[0].variant}" if self.group == "shape" else key
            self.rows.append(Heading(key, title, tuple(one.id for one in members), closed))
            if not closed:
                self.rows += members

    def _group_of(self, one: Candidate) -> str:
        return {"rule": one.rule, "shape": one.group, "file": one.file}[self.group]

    def _fits(self, one: Candidate) -> bool:
        if not self.query:
            return True
        hay, fields = self._hay[one.id], self._fields[one.id]
        for word in self.query.lower().split():
            name, colon, rest = word.partition(":")
            if colon and name in fields:
                if rest not in fields[name]:
                    return False
            elif word not in hay:
                return False
        return True

    def _sorted(self, found: list[Candidate]) -> list[Candidate]:
        keys: dict[str, Callable[[Candidate], Any]] = {
            "verdict": lambda one: _VERDICTS[one.verdict],
            "rule": lambda one: one.rule,
            "file": lambda one: (one.file, one.start_line),
            "priority": lambda one: _PRIORITIES[one.priority],
            "risks": risk_weight,
            "decision": lambda one: self.decisions[one.id].value if one.id in self.decisions else "~",
        }
        if self.sort != "found":
            return sorted(found, key=keys[self.sort], reverse=self.descending)
        return found[::-1] if self.descending else found

    def index_of(self, id: str | None) -> int | None:
        """The row of a candidate, or None when it is not shown."""
        return next((index for index, row in enumerate(self.rows) if isinstance(row, Candidate) and row.id == id), None)

    def undecided(self, start: int, step: int) -> int | None:
        """The row of the next (step 1) or previous (-1) candidate without a decision, going round at the end."""
        total = len(self.rows)
        for far in range(1, total + 1):
            index = (start + step * far) % total
            row = self.rows[index]
            if isinstance(row, Candidate) and row.id not in self.decisions and row.verdict is not Verdict.REFUSED:
                return index
        return None

    def recommended(self) -> list[str]:
        """Ids of what is shown and may be approved in bulk, and is not decided."""
        return [one.id for one in self.shown if one.verdict is Verdict.RECOMMENDED and one.id not in self.decisions]

    def same_group(self, candidate: Candidate) -> list[str]:
        """Ids of the candidates of equal shape that may be approved in bulk, and of itself unless it is refused."""
        return [
            one.id
            for one in self.candidates
            if one.group == candidate.group
            and (one.verdict is Verdict.RECOMMENDED or (one.id == candidate.id and one.verdict is not Verdict.REFUSED))
        ]


def risk_weight(one: Candidate) -> tuple[int, int, int]:
    """Risks by severity, the gravest first."""
    counts = risk_counts(one)
    return -counts[Severity.DANGER], -counts[Severity.WARNING], -counts[Severity.INFO]


def risk_counts(one: Candidate) -> dict[Severity, int]:
    return {severity: sum(risk.severity is severity for risk in one.risks) for severity in Severity}


def next_of(choices: Iterable[tuple[str, str]], now: str) -> str:
    """The id after `now`, going round."""
    ids = [id for id, _ in choices]
    return ids[(ids.index(now) + 1) % len(ids)]
