"""`operator_details.csv`: from a call stack to the source line, and from there to the candidates of a scan."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npufuse_tui.model import Candidate
from npufuse_tui.profiling.kernels import OPERATORS, find, read_table

_WANTED = ("Name", "Call Stack", "Host Self Duration(us)", "Device Self Duration(us)")
_FRAME = re.compile(r"^\s*(?P<file>.+?)\((?P<line>\d+)\):\s*(?P<function>.*?)\s*$")


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a call stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """Calls of one operator from one place. Times in microseconds, of the operator itself, over all calls."""

    name: str
    frames: tuple[Frame, ...]
    count: int
    host: float
    device: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a profile says of one candidate: operator calls from its lines, and the time on the device they took."""

    candidate: str
    calls: int
    device: float
    host: float
    operators: tuple[str, ...]


def read_calls(path: Path) -> tuple[OperatorCall, ...]:
    """The operator calls that have a call stack, those of one place together. Raises WrongInput for another file."""
    table = read_table(find(path, OPERATORS), _WANTED)
    if "callstack" not in table.columns or "name" not in table.columns:
        return ()
    grouped: dict[tuple[str, str], list[float]] = {}

    def number(row: Mapping[Hashable, object], name: str) -> float:
        try:
            return float(str(row.get(name, "") or 0.0))
        except ValueError:
            return 0.0

    for row in table.to_dict("records"):
        stack = str(row["callstack"])
        if not stack:
            continue
        entry = grouped.setdefault((str(row["name"]), stack), [0.0, 0.0, 0.0])
        entry[0] += 1
        entry[1] += number(row, "hostselfduration(us)")
        entry[2] += number(row, "deviceselfduration(us)")
    return tuple(
        OperatorCall(name, parse_stack(stack), int(count), host, device)
        for (name, stack), (count, host, device) in grouped.items()
    )


def parse_stack(text: str) -> tuple[Frame, ...]:
    """The frames of a call stack, the innermost first: `file(line): function`, separated by semicolons or new lines."""
    found = (_FRAME.match(one) for one in re.split(r"[;\r\n]+", text))
    return tuple(Frame(one["file"].replace("\\", "/"), int(one["line"]), one["function"]) for one in found if one)


def evidence(calls: Iterable[OperatorCall], candidates: Sequence[Candidate]) -> tuple[Evidence, ...]:
    """Which candidates the calls come from. A call counts for the candidate that its innermost matching frame lies in.

    A frame's file is an absolute path of the machine that was profiled, so paths are matched from their end.
    """
    by_name: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_name.setdefault(one.file.rsplit("/", 1)[-1], []).append(one)
    sums: dict[str, tuple[int, float, float, set[str]]] = {}
    for call in calls:
        owner = _owner(call.frames, by_name)
        if owner is None:
            continue
        count, device, host, names = sums.get(owner.id, (0, 0.0, 0.0, set()))
        sums[owner.id] = (count + call.count, device + call.device, host + call.host, names | {call.name})
    return tuple(
        Evidence(one.id, sums[one.id][0], sums[one.id][1], sums[one.id][2], tuple(sorted(sums[one.id][3])))
        for one in candidates
        if one.id in sums
    )


def _owner(frames: Sequence[Frame], by_name: dict[str, list[Candidate]]) -> Candidate | None:
    for frame in frames:
        near = [
            one
            for one in by_name.get(frame.file.rsplit("/", 1)[-1], ())
            if one.start_line <= frame.line <= one.end_line and _same_file(frame.file, one.file)
        ]
        if near:  # of candidates inside one another the smallest
            return min(near, key=lambda one: one.end_line - one.start_line)
    return None


def _same_file(absolute: str, relative: str) -> bool:
    return absolute == relative or absolute.endswith(f"/{relative.removeprefix('./')}")
