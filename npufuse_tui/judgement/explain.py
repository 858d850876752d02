"""What a candidate's chain does, operator by operator, and what the fused operator does instead."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from npufuse_tui.judgement.api import bare_name
from npufuse_tui.judgement.api_knowledge import known, texts_of
from npufuse_tui.judgement.cost import ITEM_SIZE, StepCost, TimeModel, WholeModel, chain_model, step_costs
from npufuse_tui.judgement.devices import DEFAULT, Device, device
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Check, Step

ASSUMED_SHAPE = (1, 4096, 4096)
ASSUMED_DTYPE = "bfloat16"
PRODUCTS = frozenset({"matmul", "mm", "bmm", "baddbmm", "addmm", "linear", "einsum", "scaled_dot_product_attention"})


@dataclass(frozen=True, slots=True)
class StackPlace:
    """What the block means to one of the five layers of the stack."""

    layer: str
    title: Text
    text: Text


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is said of one candidate. `assumed` names what nobody gave or captured: "shape", "dtype", "device"."""

    candidate: str
    rule: str
    api: str
    file: str
    qualname: str
    start_line: int
    end_line: int
    steps: tuple[Step, ...]
    costs: tuple[StepCost, ...]
    model: TimeModel
    shape: tuple[int, ...]
    dtype: str
    device: Device
    stages: tuple[Text, ...]
    stack: tuple[StackPlace, ...]
    whole: WholeModel | None
    basis: str
    assumed: tuple[str, ...]

    @property
    def timed(self) -> bool:
        """Whether the time model speaks of this chain: of elementwise operators and reductions, not of matrix products.

        A product's time is not that of its bytes, and what it makes (the scores of attention) is not of the main
        tensor's size. Launches and passes are counted all the same.
        """
        return not any(one.op in PRODUCTS for one in self.steps)

    @property
    def compute_steps(self) -> int:
        return sum(one.launches for one in self.steps if one.kind == "compute")


def explain(
    candidate: Candidate,
    *,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
    on: str | Device | None = None,
    instances: int | None = None,
    calls_per_step: int = 1,
) -> Explanation:
    """Explain a candidate for a main tensor of `shape` and `dtype` on a device (an id or name, or with its constants).

    What is not given is assumed and named in `assumed`. The whole model is counted when `instances` is known: how many
    modules run the block. Raises WrongInput for a device or dtype that is not known.
    """
    assumed = [
        name for name, value in (("shape", shape), ("dtype", dtype), ("device", on)) if value is None or value == ()
    ]
    size = tuple(shape) if shape else ASSUMED_SHAPE
    kind = (dtype or ASSUMED_DTYPE).removeprefix("torch.")
    chosen = on if isinstance(on, Device) else device(on or DEFAULT)
    launches_after = candidate.estimate.launches_after if candidate.estimate else 1
    passes_after = candidate.estimate.memory_passes_after if candidate.estimate else 2
    costs = step_costs(candidate.chain, size, kind, chosen)
    model = chain_model(costs, launches_after, passes_after, size, kind, chosen)
    whole = None
    if instances is not None:
        whole = WholeModel(instances, calls_per_step, model.before.launches, launches_after)
    name = bare_name(candidate.api)
    return Explanation(
        candidate=candidate.id,
        rule=candidate.rule,
        api=candidate.api,
        file=candidate.file,
        qualname=candidate.qualname,
        start_line=candidate.start_line,
        end_line=candidate.end_line,
        steps=candidate.chain,
        costs=costs,
        model=model,
        shape=size,
        dtype=kind,
        device=chosen,
        stages=texts_of(known(name).get("stages")),
        stack=_stack(name, model),
        whole=whole,
        basis=candidate.estimate.basis if candidate.estimate else "counted from the graph",
        assumed=tuple(assumed),
    )


def captured(check: Check) -> tuple[tuple[int, ...], str] | None:
    """Shape and dtype of the largest tensor that an operator check ran on, for `explain`; None when it names none.

    The labels of its cases read `x 2×4096×1536, weight 1536`. The check says whether they were captured.
    """
    found = [
        (tuple(int(one) for one in re.split("[×x]", label)), case.dtype.removeprefix("torch."))
        for case in check.per_case
        for label in re.findall(r"(?<![\w×])\d+(?:[×x]\d+)+(?![\w×])", case.shape)
        if case.dtype.removeprefix("torch.") in ITEM_SIZE
    ]
    return max(found, key=lambda one: math.prod(one[0]), default=None)


def _stack(name: str, model: TimeModel) -> tuple[StackPlace, ...]:
    before, after = model.before, model.after
    return (
        StackPlace(
            "framework",
            Text("framework adaptor", "框架适配层"),
            Text(
                "{before} aten calls go through PyTorch's dispatcher to torch_npu; after: {after}, to {name}",
                "{before} 次 aten 调用经 PyTorch 分发器进入 torch_npu；替换后为 {after} 次，进入 {name}",
            ).format(before=before.launches, after=after.launches, name=name),
        ),
        StackPlace(
            "operators",
            Text("operator library", "算子库"),
            Text(
                "{before} kernels of the CANN operator library; after: {after}, what is in between stays on the chip",
                "使用 CANN 算子库的 {before} 个核函数；替换后为 {after} 个，中间结果留在片上",
            ).format(before=before.launches, after=after.launches),
        ),
        StackPlace(
            "graph",
            Text("graph engine", "图引擎"),
            Text(
                "in eager mode nothing fuses the chain; in graph mode the fused operator is one node",
                "单算子模式下不会自动融合；图模式下融合算子是一个节点",
            ),
        ),
        StackPlace(
            "runtime",
            Text("runtime", "运行时"),
            Text(
                "{before} tasks are queued on the stream, with up to {gaps} idle gaps; after: {after}",
                "向流下发 {before} 个任务，最多 {gaps} 处空隙；替换后为 {after} 个任务",
            ).format(before=before.launches, gaps=before.gap_count, after=after.launches),
        ),
        StackPlace(
            "driver",
            Text("driver and device", "驱动与设备"),
            Text(
                "{before} passes over device memory; after: {after}",
                "读写设备内存 {before} 遍；替换后为 {after} 遍",
            ).format(before=before.memory_passes, after=after.memory_passes),
        ),
    )
