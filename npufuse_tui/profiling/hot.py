"""Hot sequences: which chains of kernels a profile spends its time in, how often, and what holds them back."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.profiling.sequences import find_sequences, kind_of

if TYPE_CHECKING:
    import pandas as pd

IDLE_SHARE = 0.3  # of a sequence's time: above it, launching is what holds it back
SMALL = 10.0  # microseconds; a kernel shorter than this is over before the next can be dispatched
BUSY = 0.6  # share of the time that a compute unit works: above it, fusing gains next to nothing
SHORTEST_RUN = 3  # kernels; a run of small kernels that no rule knows is told from here on


@dataclass(frozen=True, slots=True)
class HotSequence:
    """One chain of kernels, all its occurrences together. Times in microseconds, over the whole profile.

    `rule` is None for a chain that no rule knows. `bound`: "launch", "memory", "compute" or "unknown".
    """

    rule: str | None
    types: tuple[str, ...]
    count: int
    kernels: int
    duration: float
    wait: float
    share: float
    bound: str
    evidence: Text
    shapes: tuple[str, ...]
    median_occurrence: float
    first: int  # the row of the first kernel, for a look into the file

    @property
    def total(self) -> float:
        return self.duration + self.wait


@dataclass
class _Group:
    rows: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)


def hot_sequences(frame: pd.DataFrame) -> tuple[HotSequence, ...]:
    """The chains of the rules, and repeated runs of small vector kernels that no rule knows, the longest time first.

    `frame` is what `kernels.read` returns.
    """
    groups: dict[tuple[str | None, tuple[str, ...]], _Group] = defaultdict(_Group)
    for _, rows in frame.groupby(["device", "stream"], sort=True):
        index = [int(one) for one in rows.index]
        types = [str(one) for one in rows["type"]]
        found = find_sequences(types)
        taken = [False] * len(types)
        for one in found:
            for place in range(one.start, one.end):
                taken[place] = True
            _keep(groups, one.rule, types, index, one.start, one.end)
        vector = [_is_vector(str(core), kind_of(kind)) for core, kind in zip(rows["core"], types, strict=True)]
        for start, end in _runs([v and not t for v, t in zip(vector, taken, strict=True)]):
            _keep(groups, None, types, index, start, end)
    whole = float((frame["duration"] + frame["wait"].fillna(0.0)).sum())
    told = [
        _told(rule, types, group, frame, whole)
        for (rule, types), group in groups.items()
        if rule is not None or len(group.spans) > 1
    ]
    return tuple(sorted(told, key=lambda one: (-one.total, one.first)))


def _keep(
    groups: dict[tuple[str | None, tuple[str, ...]], _Group],
    rule: str | None,
    types: list[str],
    index: list[int],
    start: int,
    end: int,
) -> None:
    group = groups[rule, tuple(kind_of(one) for one in types[start:end])]
    group.rows += index[start:end]
    group.spans.append((index[start], end - start))


def _is_vector(core: str, kind: str) -> bool:
    if core:
        return "VECTOR" in core.upper() or core.upper() in ("AIV", "MIX_AIV")
    return kind != "MatMul"


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    start = None
    for place, flag in enumerate([*flags, False]):
        if flag and start is None:
            start = place
        elif not flag and start is not None:
            if place - start >= SHORTEST_RUN:
                runs.append((start, place))
            start = None
    return runs


def _told(rule: str | None, types: tuple[str, ...], group: _Group, frame: pd.DataFrame, whole: float) -> HotSequence:
    rows = frame.loc[group.rows]
    duration, wait = float(rows["duration"].sum()), float(rows["wait"].fillna(0.0).sum())
    bound, evidence = bound_of(rows)
    length = len(types)
    totals = (rows["duration"] + rows["wait"].fillna(0.0)).tolist()
    occurrences = [sum(totals[place : place + length]) for place in range(0, len(totals), length)]
    shapes = frame.loc[[start for start, _ in group.spans], "input_shapes"].value_counts().index.tolist()
    return HotSequence(
        rule=rule,
        types=types,
        count=len(group.spans),
        kernels=len(group.rows),
        duration=duration,
        wait=wait,
        share=(duration + wait) / whole if whole else 0.0,
        bound=bound,
        evidence=evidence,
        shapes=tuple(str(one).strip('"') for one in shapes[:3] if str(one)),
        median_occurrence=float(median(occurrences)),
        first=group.rows[0],
    )


def bound_of(rows: pd.DataFrame) -> tuple[str, Text]:
    """What holds these kernels back, and the numbers that say so."""
    duration, wait = float(rows["duration"].sum()), float(rows["wait"].fillna(0.0).sum())
    total = duration + wait
    idle = wait / total if total else 0.0
    typical = float(rows["duration"].median())
    if idle >= IDLE_SHARE and typical < SMALL * 10:
        return "launch", Text(
            "{idle} of the time is idle, a kernel takes {typical} us", "{idle} 的时间空闲，单个核函数约 {typical} us"
        ).format(idle=f"{idle:.0%}", typical=f"{typical:.1f}")
    weights = rows["duration"]

    def share(column: str) -> float | None:
        known = rows[column].notna() & (rows[column] > 0)
        moved = weights[known].sum()
        return float((rows[column][known] * weights[known]).sum() / weights.sum()) if moved > 0 else None

    mac, vec = share("mac"), share("vec")
    loads = [one for one in (share("aic_mte2"), share("aiv_mte2"), share("aiv_mte3")) if one is not None]
    busiest = max((one for one in (mac, vec) if one is not None), default=None)
    if busiest is not None and busiest >= BUSY and busiest >= max(loads, default=0.0):
        return "compute", Text("a compute unit works {busy} of the time", "计算单元忙碌 {busy} 的时间").format(
            busy=f"{busiest:.0%}"
        )
    if loads:
        return "memory", Text(
            "moving data takes {load} of the time, computing {busy}", "搬运占 {load} 的时间，计算占 {busy}"
        ).format(load=f"{max(loads):.0%}", busy=f"{busiest:.0%}" if busiest is not None else "?")
    if typical < SMALL:
        return "launch", Text(
            "a kernel takes {typical} us: less than a dispatch; the profile has no pipe columns (use Level1)",
            "单个核函数约 {typical} us，短于一次下发；采集结果没有流水列（请用 Level1）",
        ).format(typical=f"{typical:.1f}")
    return "unknown", Text(
        "the profile has no pipe columns: use profiler_level Level1 with PipeUtilization",
        "采集结果没有流水列：请使用 profiler_level Level1 与 PipeUtilization",
    )


def measured_constants(frame: pd.DataFrame) -> tuple[float | None, float | None]:
    """The median gap before small kernels and the shortest usual kernel (fifth percentile), in microseconds.

    None where the profile has too few kernels to say. They can take the place of the time model's assumptions.
    """
    small = frame[frame["duration"] < SMALL]
    gap = float(small["wait"].median()) if len(small) >= 20 and small["wait"].notna().any() else None
    shortest = float(frame["duration"].quantile(0.05)) if len(frame) >= 20 else None
    return gap, shortest
