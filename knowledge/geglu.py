"""GEGLU → torch_npu.npu_geglu.

Formula and limits: op-plugin documentation of npu_geglu: by default the second half of the dim goes through GELU
(activate_left=False) and multiplies the first; approximate 0 is the exact GELU, 1 (the default) the tanh form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Risk
from npufuse_tui.rules import MatchView, Refusal, Rule, Tensor, contiguous, information

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    import torch_npu

rule = Rule(
    id="geglu",
    family="activation",
    api="torch_npu.npu_geglu",
    title=Text("GEGLU", "GEGLU"),
    training=True,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.1.0",
    products=("A2", "A3"),
    docs="op-plugin: npu_geglu",
    needs=((rb"gelu", rb"GELU", rb"act_f", rb"activation", rb"act\(", rb"hidden_act"), (rb"\*",)),
    output_dtype="gate",
    priority=Priority.MEDIUM,
)


@rule.pattern("right_exact")
def right_exact(hidden: Tensor):
    value, gate = hidden.chunk(2, dim=-1)
    return value * F.gelu(gate)


@rule.pattern("right_tanh")
def right_tanh(hidden: Tensor):
    value, gate = hidden.chunk(2, dim=-1)
    return value * F.gelu(gate, approximate="tanh")


@rule.pattern("left_exact")
def left_exact(hidden: Tensor):
    gate, value = hidden.chunk(2, dim=-1)
    return F.gelu(gate) * value


@rule.pattern("left_tanh")
def left_tanh(hidden: Tensor):
    gate, value = hidden.chunk(2, dim=-1)
    return F.gelu(gate, approximate="tanh") * value


@rule.pattern("two_inputs_exact")
def two_inputs_exact(gate: Tensor, up: Tensor):
    return F.gelu(gate) * up


@rule.pattern("two_inputs_tanh")
def two_inputs_tanh(gate: Tensor, up: Tensor):
    return F.gelu(gate, approximate="tanh") * up


@rule.replacement(variants=("right_exact",))
def fused_right_exact(hidden):
    return torch_npu.npu_geglu(contiguous(hidden), dim=-1, approximate=0)[0]


@rule.replacement(variants=("right_tanh",))
def fused_right_tanh(hidden):
    return torch_npu.npu_geglu(contiguous(hidden), dim=-1, approximate=1)[0]


@rule.replacement(variants=("left_exact",))
def fused_left_exact(hidden):
    return torch_npu.npu_geglu(contiguous(hidden), dim=-1, approximate=0, activate_left=True)[0]


@rule.replacement(variants=("left_tanh",))
def fused_left_tanh(hidden):
    return torch_npu.npu_geglu(contiguous(hidden), dim=-1, approximate=1, activate_left=True)[0]


@rule.replacement(variants=("two_inputs_exact",))
def fused_two_exact(gate, up):
    return torch_npu.npu_geglu(torch.cat([gate, up], dim=-1), dim=-1, approximate=0, activate_left=True)[0]


@rule.replacement(variants=("two_inputs_tanh",))
def fused_two_tanh(gate, up):
    return torch_npu.npu_geglu(torch.cat([gate, up], dim=-1), dim=-1, approximate=1, activate_left=True)[0]


@rule.condition("two_inputs_exact", "two_inputs_tanh")
def both_are_projections(match: MatchView) -> Refusal | None:
    if match.same_source("gate", "up"):
        return None
    return Refusal(Text("the two factors are no projections of one value", "两个因子不是同一值的投影"), None)


@rule.risk("concat_cost")
def concat_costs(match: MatchView) -> Risk | None:
    if not match.variant.startswith("two_inputs"):
        return None
    return information(
        "concat_cost",
        Text(
            "the two projections are concatenated first: one more read and write of 2 × tokens × intermediate size elements"
            " a call",
            "需要先拼接两个投影：每次调用额外读写 2 × token 数 × 中间维度 个元素",
        ),
        match.line("gate"),
    )


@rule.example(shapes=[(2, 8, 64), (3, 5, 32), (4, 16)], variants=("two_inputs_exact", "two_inputs_tanh"))
def two(shape, dtype, parameter_dtype):
    return {"gate": torch.randn(shape).to(dtype), "up": torch.randn(shape).to(dtype)}


@rule.example(shapes=[(2, 8, 64), (3, 6, 32), (4, 16)])
def one(shape, dtype, parameter_dtype):
    return {"hidden": torch.randn(shape).to(dtype)}
