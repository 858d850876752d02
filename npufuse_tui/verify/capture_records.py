"""What a capture brings home: for each candidate the first calls of its region, as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npufuse_tui.language import Text
from npufuse_tui.model import Candidate


@dataclass(frozen=True, slots=True)
class CapturedValue:
    """One input of the region, as it was in one call.

    `kind` is "tensor", "value" (a number, a string, None, a list of those) or "other". Mean, spread and range are of at
    most a million elements. `file` and `key` lead to the recorded tensor where it was kept (masks and indices always
    are).
    """

    kind: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    stride: tuple[int, ...] = ()
    device: str = ""
    requires_grad: bool = False
    mean: float | None = None
    std: float | None = None
    low: float | None = None
    high: float | None = None
    file: str | None = None
    key: str | None = None
    value: object = None
    type: str = ""


@dataclass(frozen=True, slots=True)
class CapturedCall:
    """One call of the region: its inputs by the pattern's names, and the state it ran in.

    `autocast` is the dtype of the autocast block, None outside of one. `number` counts calls of the process from 1.
    """

    values: tuple[tuple[str, CapturedValue], ...]
    training: bool | None
    grad_enabled: bool | None
    autocast: str | None
    number: int


@dataclass(frozen=True, slots=True)
class Captured:
    """What a short run of the launch command showed of one candidate.

    Attributes:
        status: "called"; "not reached" (the function was called, the region's branch was not taken); "never called";
            "not recorded" (the recorder could not see it: the reason says why).
        reason: the status in a sentence.
        calls: of the region, in the process that `examples` are from (rank 0 where there are ranks).
        function_calls: of the function, in that process.
        calls_per_step: of the region, for each step of an optimizer; None where no optimizer took one.
        distinct_shapes: how many sets of input shapes were seen there.
        processes: how many processes called the region.
        examples: the first call of each of the first sets of shapes.
    """

    candidate: str
    status: str
    reason: Text
    calls: int = 0
    function_calls: int = 0
    distinct_shapes: int = 0
    processes: int = 0
    examples: tuple[CapturedCall, ...] = ()
    calls_per_step: float | None = None


NEVER = Text("not on the path that this command runs", "不在该命令执行的路径上")
_NOT_REACHED = Text(
    "the function was called {count} times, and never took the branch with the replaced lines",
    "函数被调用 {count} 次，但从未进入包含被替换代码的分支",
)
_CALLED = Text(
    "called {count} times with {shapes} different sets of shapes",
    "被调用 {count} 次，共 {shapes} 组不同的形状",
)
_NOT_LOADED = Text(
    "no process of this command loaded the file, so the function is not on the path that it runs",
    "该命令没有任何进程加载此文件，因此该函数不在其执行路径上",
)
_NO_PROCESS = Text(
    "no Python process of this command loaded the recorder (python -I, -E or -S ignores it)",
    "该命令没有任何 Python 进程加载记录器（python -I、-E 或 -S 会忽略它）",
)
_CANNOT = Text("the function could not be recorded: {why}", "无法记录该函数：{why}")


def read(folder: Path, candidates: Sequence[Candidate]) -> dict[str, Captured]:
    """What the recorders of all processes wrote into `folder`, for each of the candidates."""
    processes = list(_processes(folder))
    return {candidate.id: _of_one(candidate, processes) for candidate in candidates}


def _processes(folder: Path) -> Iterable[Mapping[str, Any]]:
    for path in sorted(folder.glob("[0-9]*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            yield found


def _of_one(candidate: Candidate, processes: Sequence[Mapping[str, Any]]) -> Captured:
    identity = candidate.id
    if not processes:
        return Captured(identity, "not recorded", _NO_PROCESS)
    loaded = [one for one in processes if any(identity in file for file in one["files"].values())]
    if not loaded:
        return Captured(identity, "never called", _NOT_LOADED)
    seen = [one for one in loaded if identity in one["seen"]]
    if not seen:
        problems = [file[identity] for one in loaded for file in one["files"].values() if file.get(identity)]
        if problems:
            return Captured(identity, "not recorded", _CANNOT.format(why=problems[0]))
        return Captured(identity, "never called", NEVER)
    reached = [one for one in seen if one["seen"][identity]["calls"]]
    best = min(reached or seen, key=lambda one: (_rank(one), -one["seen"][identity]["calls"], one["pid"]))
    entry = best["seen"][identity]
    if not reached:
        count = entry["function_calls"]
        return Captured(identity, "not reached", _NOT_REACHED.format(count=count), function_calls=count)
    return Captured(
        identity,
        "called",
        _CALLED.format(count=entry["calls"], shapes=entry["distinct_shapes"]),
        calls=entry["calls"],
        function_calls=entry["function_calls"],
        distinct_shapes=entry["distinct_shapes"],
        processes=len(reached),
        examples=tuple(_call(one) for one in entry["examples"]),
        calls_per_step=entry["calls_in_steps"] / entry["steps"] if entry.get("steps") else None,
    )


def _rank(process: Mapping[str, Any]) -> int:
    rank = process.get("rank")
    return int(rank) if isinstance(rank, str) and rank.isdigit() else 0


def _call(found: Mapping[str, Any]) -> CapturedCall:
    return CapturedCall(
        values=tuple((name, _value(one)) for name, one in found["values"].items()),
        training=found["training"],
        grad_enabled=found["grad_enabled"],
        autocast=found["autocast"],
        number=found["number"],
    )


def _value(found: Mapping[str, Any]) -> CapturedValue:
    known = {name: value for name, value in found.items() if name in CapturedValue.__dataclass_fields__}
    for name in ("shape", "stride"):
        if name in known:
            known[name] = tuple(known[name])
    return CapturedValue(**known)
