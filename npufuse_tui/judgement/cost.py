"""The time model: what a chain moves and launches, turned into seconds with constants that each have a source.

    kernel = max(bytes / (peak bandwidth * share reached), shortest kernel)
    time = kernels + idle gaps, one before every launch

There is a gap only when the host cannot keep up, so a model has two ends, and both are told. Nothing here is a
measurement, and everything that shows these numbers says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from npufuse_tui.errors import WrongInput
from npufuse_tui.judgement.devices import Device
from npufuse_tui.language import Text
from npufuse_tui.model import Step

ITEM_SIZE = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1}

MODEL = Text("a model, not a measurement", "模型推算，并非实测")


@dataclass(frozen=True, slots=True)
class StepCost:
    """One operator: bytes read and written, and the seconds that moving them takes."""

    step: Step
    bytes_read: int
    bytes_written: int
    seconds: float

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class Side:
    """The chain before, or the fused operator after. Times in seconds; `gaps` when the host is too slow."""

    launches: int
    memory_passes: int
    bytes: int
    kernels: float
    gap_count: int
    gaps: float

    @property
    def total(self) -> float:
        """Seconds when the host cannot keep up."""
        return self.kernels + self.gaps


@dataclass(frozen=True, slots=True)
class TimeModel:
    """Both sides. `low` is the ratio when the host keeps up, `high` when it does not."""

    before: Side
    after: Side

    @property
    def low(self) -> float:
        return self.before.kernels / self.after.kernels if self.after.kernels else math.nan

    @property
    def high(self) -> float:
        return self.before.total / self.after.total if self.after.total else math.nan


@dataclass(frozen=True, slots=True)
class WholeModel:
    """One block over a whole model: how often it runs in a step, and what that launches."""

    instances: int
    calls_per_step: int
    launches_before: int
    launches_after: int

    @property
    def runs(self) -> int:
        return self.instances * self.calls_per_step

    @property
    def total_before(self) -> int:
        return self.runs * self.launches_before

    @property
    def total_after(self) -> int:
        return self.runs * self.launches_after


def item_size(dtype: str) -> int:
    """Bytes of one element. Raises WrongInput for a dtype that is not known."""
    name = dtype.removeprefix("torch.")
    if name not in ITEM_SIZE:
        raise WrongInput(
            Text(
                "{dtype} is no dtype that is known; give one of {known}", "未知 dtype {dtype}；请给出以下之一：{known}"
            ).format(dtype=dtype, known=", ".join(ITEM_SIZE))
        )
    return ITEM_SIZE[name]


def step_costs(steps: Iterable[Step], shape: Sequence[int], dtype: str, device: Device) -> tuple[StepCost, ...]:
    """What every step moves for a main tensor of `shape` and `dtype`: one pass is one such tensor.

    A cast to float32 widens what follows, a cast back narrows it; other steps keep the width that they find. Values
    that a reduction has made small are not counted, as in the chain itself.
    """
    elements, narrow = math.prod(shape), item_size(dtype)
    width = narrow
    costs: list[StepCost] = []
    for step in steps:
        after = _width_after(step, width, narrow)
        read, written = step.reads * elements * width, step.writes * elements * after
        costs.append(StepCost(step, read, written, step.launches * kernel_seconds(read + written, device)))
        width = after
    return tuple(costs)


def kernel_seconds(moved: float, device: Device) -> float:
    """Seconds that one kernel takes to move so many bytes."""
    return max(moved / (device.bandwidth.value * device.reached.value), device.shortest.value)


def _width_after(step: Step, width: int, narrow: int) -> int:
    if step.kind != "cast":
        return width
    source = step.source.rstrip(")")
    for name, size in (("float64", 8), ("double", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2), ("half", 2)):
        if source.endswith((name, f"{name}(")):
            return size
    if step.source.rstrip().endswith(".float()"):
        return 4
    return narrow  # `.to(input_dtype)`, `.type_as(x)`: back to what came in


def chain_model(
    costs: Sequence[StepCost], launches_after: int, passes_after: int, shape: Sequence[int], dtype: str, device: Device
) -> TimeModel:
    """The model of a chain against its fused operator, which moves `passes_after` tensors of `shape` and `dtype`."""
    launches = sum(one.step.launches for one in costs)
    moved = passes_after * math.prod(shape) * item_size(dtype)
    gap = device.launch_gap.value
    before = Side(
        launches=launches,
        memory_passes=sum(one.step.reads + one.step.writes for one in costs),
        bytes=sum(one.bytes for one in costs),
        kernels=sum(one.seconds for one in costs),
        gap_count=launches,
        gaps=launches * gap,
    )
    after = Side(
        launches=launches_after,
        memory_passes=passes_after,
        bytes=moved,
        kernels=launches_after * kernel_seconds(moved / max(launches_after, 1), device),
        gap_count=launches_after,
        gaps=launches_after * gap,
    )
    return TimeModel(before, after)


def given_model(
    steps: Sequence[Step], *, passes_after: int, kernel_seconds: float, gap_seconds: float, launches_after: int = 1
) -> TimeModel:
    """The model of a case that gives its constants: the kernels' time, the same on both sides, and the gap.

    Such cases count the operators that compute, so there is one gap fewer than these; casts are taken to run in the
    shadow of the others. Bytes are not known and are 0.
    """
    compute = sum(one.launches for one in steps if one.kind == "compute")
    gaps = max(compute - 1, 0)
    passes = sum(one.reads + one.writes for one in steps)
    before = Side(sum(one.launches for one in steps), passes, 0, kernel_seconds, gaps, gaps * gap_seconds)
    rest = max(launches_after - 1, 0)
    return TimeModel(before, Side(launches_after, passes_after, 0, kernel_seconds, rest, rest * gap_seconds))
