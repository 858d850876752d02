"""A profile read and mapped to the candidates of a scan: what `npufuse profile` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npufuse_tui.model import Candidate
from npufuse_tui.profiling.hot import HotSequence, hot_sequences, measured_constants
from npufuse_tui.profiling.kernels import OPERATORS, find, read
from npufuse_tui.profiling.sequences import fused_rule
from npufuse_tui.profiling.stacks import Evidence, evidence, read_calls

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Mapping:
    """A hot sequence and the candidates of its rule. `confirmed` are those that a call stack leads to."""

    sequence: HotSequence
    candidates: tuple[str, ...]
    confirmed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """Fused kernels that the profile holds already: their type, how often, and their time."""

    rule: str
    type: str
    count: int
    duration: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile says. Times in microseconds. `stacks` tells whether call stacks were recorded."""

    file: str
    kernels: int
    steps: int
    duration: float
    wait: float
    mappings: tuple[Mapping, ...]
    fused: tuple[Fused, ...]
    evidence: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    stacks: bool
    launch_gap: float | None
    shortest_kernel: float | None

    @property
    def sequences(self) -> tuple[HotSequence, ...]:
        return tuple(one.sequence for one in self.mappings)

    def candidate(self, name: str) -> Candidate | None:
        return next((one for one in self.candidates if one.id == name), None)


def profile(path: Path, candidates: Sequence[Candidate] = ()) -> Profile:
    """Read the profile at `path` (a kernel_details.csv, or a folder that holds one) and map it to `candidates`.

    Call stacks are read from the operator_details.csv beside it, when there is one. Raises WrongInput for a path
    without a profile, or a file that is none.
    """
    file = find(path)
    frame = read(file)
    beside = file.with_name(OPERATORS)
    calls = read_calls(beside) if beside.is_file() else ()
    proof = evidence(calls, candidates)
    seen = {one.candidate for one in proof}
    mappings = []
    for sequence in hot_sequences(frame):
        same_rule = [one.id for one in candidates if sequence.rule is not None and serves(one.rule, sequence.rule)]
        mappings.append(Mapping(sequence, tuple(same_rule), tuple(one for one in same_rule if one in seen)))
    gap, shortest = measured_constants(frame)
    return Profile(
        file=str(file),
        kernels=len(frame),
        steps=int(frame.loc[frame["step"] != "", "step"].nunique()),
        duration=float(frame["duration"].sum()),
        wait=float(frame["wait"].fillna(0.0).sum()),
        mappings=tuple(mappings),
        fused=_fused(frame),
        evidence=proof,
        candidates=tuple(candidates),
        stacks=bool(calls),
        launch_gap=gap,
        shortest_kernel=shortest,
    )


def _fused(frame: pd.DataFrame) -> tuple[Fused, ...]:
    found: list[Fused] = []
    for kind, rows in frame.groupby("type", sort=True):
        rule = fused_rule(str(kind))
        if rule is not None:
            found.append(Fused(rule, str(kind), len(rows), float(rows["duration"].sum())))
    return tuple(found)


_SAME_CHAIN = {"add_rms_norm": "rms_norm", "fused_infer_attention": "fusion_attention"}


def serves(rule: str, sequence: str) -> bool:
    """Whether a rule's candidates run the chain that a sequence is of: some rules share one."""
    return _SAME_CHAIN.get(rule, rule) == sequence
