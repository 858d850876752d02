"""Candidates put together for a reader: equal blocks once with all their places, and the order to take them in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npufuse_tui.language import Text, same
from npufuse_tui.model import Candidate, Estimate, Priority, Risk, Severity, Verdict
from npufuse_tui.report import labels
from npufuse_tui.report.contract_json import in_order

_PRIORITY = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}
_VERDICT = {Verdict.RECOMMENDED: 0, Verdict.CAUTION: 1, Verdict.REFUSED: 2}
_WEIGHT = {Severity.INFO: 0, Severity.WARNING: 1, Severity.DANGER: 4}


@dataclass(frozen=True, slots=True)
class Opportunity:
    """Candidates of one rule, one shape and one verdict. `first` stands for all; `places` holds it too."""

    places: tuple[Candidate, ...]

    @property
    def first(self) -> Candidate:
        return self.places[0]

    @property
    def launches_saved(self) -> int | None:
        """Launches that one pass over every place saves, counted; None where nothing was counted."""
        counted = [one.estimate for one in self.places if one.estimate]
        return sum(one.launches_before - one.launches_after for one in counted) if counted else None

    @property
    def passes_saved(self) -> int | None:
        counted = [one.estimate for one in self.places if one.estimate]
        return sum(one.memory_passes_before - one.memory_passes_after for one in counted) if counted else None

    @property
    def other_risks(self) -> tuple[tuple[Candidate, Risk], ...]:
        """What other places risk and the first does not, each with the first place that shows it."""
        said = {(risk.code, risk.message) for risk in self.first.risks}
        found: list[tuple[Candidate, Risk]] = []
        for one in self.places[1:]:
            for risk in one.risks:
                if (risk.code, risk.message) not in said:
                    said.add((risk.code, risk.message))
                    found.append((one, risk))
        return tuple(found)

    @property
    def worst_risk(self) -> int:
        """-1 without risks, else the weight of the worst one of any place."""
        return max((_WEIGHT[risk.severity] for one in self.places for risk in one.risks), default=-1)

    @property
    def risk_weight(self) -> int:
        own = sum(_WEIGHT[risk.severity] for risk in self.first.risks)
        return own + sum(_WEIGHT[risk.severity] for _, risk in self.other_risks)


@dataclass(frozen=True, slots=True)
class Turn:
    """One place in the suggested order, and why it has it."""

    opportunity: Opportunity
    reason: Text


def opportunities(candidates: Iterable[Candidate]) -> list[Opportunity]:
    """Equal blocks together; high priority first, then recommended before caution before refused, then by gain."""
    groups: dict[tuple[str, str, str, str], list[Candidate]] = {}
    for one in in_order(candidates):
        groups.setdefault((one.rule, one.group or one.id, one.verdict.value, one.priority.value), []).append(one)
    return sorted(
        (Opportunity(tuple(places)) for places in groups.values()),
        key=lambda one: (
            _PRIORITY[one.first.priority],
            _VERDICT[one.first.verdict],
            -(one.launches_saved or 0),
            -(one.passes_saved or 0),
            one.first.rule,
            one.first.file,
            one.first.start_line,
            one.first.id,
        ),
    )


def suggested_order(candidates: Iterable[Candidate]) -> list[Turn]:
    """What to take first in phase two: safe before risky, then high priority, then the larger counted gain.

    Refused candidates and those whose executable proof failed have no turn.
    """
    open_ones = [
        one
        for one in candidates
        if one.verdict is not Verdict.REFUSED and not (one.check and one.check.status == "failed")
    ]
    ranked = sorted(
        opportunities(open_ones),
        key=lambda one: (
            _VERDICT[one.first.verdict],
            _PRIORITY[one.first.priority],
            one.worst_risk >= _WEIGHT[Severity.DANGER],
            -(one.launches_saved or 0),
            -(one.passes_saved or 0),
            one.risk_weight,
            one.first.rule,
            one.first.file,
            one.first.start_line,
        ),
    )
    return [Turn(one, _why(one)) for one in ranked]


def _why(one: Opportunity) -> Text:
    first = one.first
    said = Text("{0}, priority {1}", "{0}，优先级{1}").format(
        labels.VERDICT[first.verdict], labels.PRIORITY[first.priority]
    )
    if one.launches_saved is not None:
        said = labels.join(
            said,
            Text(
                "launches {0:+d} and passes over device memory {1:+d} each time its {2} place(s) run once "
                "(estimated, {3})",
                "其 {2} 处各执行一次：下发 {0:+d} 次，显存读写 {1:+d} 次（估计，{3}）",
            ).format(-one.launches_saved, -(one.passes_saved or 0), len(one.places), basis(first.estimate)),
        )
    else:
        said = labels.join(said, Text("gain not estimated", "收益未估计"))
    checked = [place.check for place in one.places if place.check and place.check.status == "passed"]
    if checked:
        said = labels.join(
            said,
            Text("proof passed at {0} of {1}", "{1} 处中 {0} 处的可执行证明通过").format(len(checked), len(one.places)),
        )
    every = (*first.risks, *(risk for _, risk in one.other_risks))
    warnings = sum(risk.severity is Severity.WARNING for risk in every)
    risks = {
        -1: Text("no risk found", "未发现风险"),
        0: Text("no risk above the level of information", "没有高于“提示”级的风险"),
        1: Text("{0} warning(s) to read first", "先读 {0} 条警告"),
        4: Text("has a danger to settle first", "须先处理“危险”级风险"),
    }[one.worst_risk]
    return labels.join(said, risks.format(warnings))


def gain(estimate: Estimate | None) -> Text:
    """The expected gain of one place, said as the estimate that it is."""
    if estimate is None:
        return Text("not estimated", "未估计")
    return Text(
        "launches {0} → {1}, passes over device memory {2} → {3}, each time the block runs "
        "(estimated: {4}; not measured)",
        "每次执行：下发次数 {0} → {1}，显存读写次数 {2} → {3}（估计：{4}；非实测）",
    ).format(
        estimate.launches_before,
        estimate.launches_after,
        estimate.memory_passes_before,
        estimate.memory_passes_after,
        basis(estimate),
    )


def basis(estimate: Estimate | None) -> Text:
    """Where an estimate comes from, in both languages where the sentence is known."""
    if estimate is None:
        return Text("no basis", "无依据")
    return (
        Text("counted from the graph", "按数据流图计数")
        if estimate.basis == "counted from the graph"
        else same(estimate.basis)
    )


def lines_of(one: Candidate) -> str:
    return f"{one.start_line}" if one.start_line == one.end_line else f"{one.start_line}-{one.end_line}"


def place_of(one: Candidate) -> str:
    return f"{one.file}:{lines_of(one)}"
