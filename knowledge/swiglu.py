"""SwiGLU → torch_npu.npu_swiglu.

Formula and limits: op-plugin documentation of npu_swiglu (y = silu(first half) * second half of the given dim; that dim is
even; the input is contiguous and not empty).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Risk, Verdict
from npufuse_tui.rules import MatchView, Refusal, Rule, Scalar, Tensor, contiguous, information

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    import torch_npu

rule = Rule(
    id="swiglu",
    family="activation",
    api="torch_npu.npu_swiglu",
    title=Text("SwiGLU", "SwiGLU"),
    training=True,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.1.0",
    products=("A2", "A3"),
    docs="op-plugin: npu_swiglu",
    needs=(
        (
            rb"silu",
            rb"SiLU",
            rb"sigmoid",
            rb"[sS]wish",
            rb"relu\(",
            rb"act_f",
            rb"activation",
            rb"act\(",
            rb"hidden_act",
        ),
        (rb"\*",),
    ),
    output_dtype="gate",
    priority=Priority.HIGH,
)


@rule.pattern("two_inputs")
def two_inputs(gate: Tensor, up: Tensor):
    return F.silu(gate) * up


@rule.pattern("two_inputs")
def sigmoid_spread(gate: Tensor, up: Tensor):
    return (up * gate) * torch.sigmoid(gate)


@rule.pattern("halves")
def halves(hidden: Tensor):
    gate, up = hidden.chunk(2, dim=-1)
    return F.silu(gate) * up


@rule.pattern("halves")
def split_halves(hidden: Tensor, size: Scalar):
    gate, up = hidden.split(size, dim=-1)
    return F.silu(gate) * up


@rule.pattern("halves")
def sliced_halves(hidden: Tensor, size: Scalar):
    return F.silu(hidden[..., :size]) * hidden[..., size:]


@rule.pattern("packed_weight")
def linear_of_each_half(x: Tensor, weight: Tensor, size: Scalar):
    return F.silu(F.linear(x, weight[:size])) * F.linear(x, weight[size:])


@rule.pattern("packed_weight")
def linear_of_each_piece(x: Tensor, weight: Tensor):
    gate, up = weight.chunk(2, dim=0)
    return F.silu(F.linear(x, gate)) * F.linear(x, up)


@rule.pattern("halves_dim_1")
def halves_of_dim_1(hidden: Tensor):
    gate, up = hidden.chunk(2, dim=1)
    return F.silu(gate) * up


@rule.pattern("swapped_halves", priority=Priority.MEDIUM)
def swapped_halves(hidden: Tensor):
    up, gate = hidden.chunk(2, dim=-1)
    return F.silu(gate) * up


_CLAMPED = Text(
    "a clamped gate with its own alpha is another function; in inference npu_clipped_swiglu may serve",
    "带截断和 alpha 的门控是另一种函数；推理时可考虑 npu_clipped_swiglu",
)


@rule.pattern("clamped", verdict=Verdict.REFUSED, reason=_CLAMPED)
def clamped_below_one_limit(gate: Tensor, up: Tensor, low: Scalar, high: Scalar):
    return F.silu(gate.clamp(max=high)) * up.clamp(min=low, max=high)


@rule.pattern("clamped", verdict=Verdict.REFUSED, reason=_CLAMPED)
def clamped(gate: Tensor, up: Tensor, alpha: Scalar):
    return (up + 1) * (gate * torch.sigmoid(gate * alpha))


_RELU = Text("the gate is ReLU, for which torch_npu has no fused operator", "门控为 ReLU，torch_npu 没有对应的融合算子")


@rule.pattern("relu_gate", verdict=Verdict.REFUSED, reason=_RELU)
def relu_gate(gate: Tensor, up: Tensor):
    return F.relu(gate) * up


@rule.replacement(variants=("two_inputs",))
def fused(gate, up):
    return torch_npu.npu_swiglu(torch.cat([gate, up], dim=-1), dim=-1)


@rule.replacement(variants=("packed_weight",))
def fused_packed_weight(x, weight):
    return torch_npu.npu_swiglu(F.linear(x, weight), dim=-1)


@rule.replacement(variants=("halves",))
def fused_halves(hidden):
    return torch_npu.npu_swiglu(contiguous(hidden), dim=-1)


@rule.replacement(variants=("halves_dim_1",))
def fused_halves_of_dim_1(hidden):
    return torch_npu.npu_swiglu(contiguous(hidden), dim=1)


@rule.replacement(variants=("swapped_halves",))
def fused_swapped(hidden):
    return torch_npu.npu_swiglu(torch.cat(hidden.chunk(2, dim=-1)[::-1], dim=-1), dim=-1)


@rule.condition("two_inputs", "clamped", "relu_gate")
def both_are_projections(match: MatchView) -> Refusal | None:
    """silu(a) * b is a SwiGLU when both are projections of one value; a gate on something else is not."""
    if match.same_source("gate", "up"):
        return None
    normed = match.uses("norm") or match.uses("rsqrt") or match.uses("mean")
    if match.origin("gate") == "parameter" and match.origin("up") == "parameter" and not normed:
        return None
    return Refusal(Text("the two factors are no projections of one value", "两个因子不是同一值的投影"), None)


@rule.risk("concat_cost")
def concat_costs(match: MatchView) -> Risk | None:
    if match.variant not in ("two_inputs", "swapped_halves"):
        return None
    return information(
        "concat_cost",
        Text(
            "the two projections are concatenated first: one more read and write of 2 × tokens × intermediate size elements"
            " a call; a weight that holds both projections would avoid it",
            "需要先拼接两个投影：每次调用额外读写 2 × token 数 × 中间维度 个元素；使用合并后的权重可避免",
        ),
        match.line("gate"),
    )


@rule.example(shapes=[(2, 8, 64), (3, 5, 32), (4, 16)], variants=("two_inputs", "clamped", "relu_gate"))
def two(shape, dtype, parameter_dtype):
    return {"gate": torch.randn(shape).to(dtype), "up": torch.randn(shape).to(dtype)}


@rule.example(shapes=[(2, 8, 64), (3, 6, 32), (4, 16)], variants=("packed_weight",))
def packed(shape, dtype, parameter_dtype):
    weight = torch.randn(2 * shape[-1], shape[-1]) * shape[-1] ** -0.5
    return {"x": torch.randn(shape).to(dtype), "weight": weight.to(dtype), "size": shape[-1]}


@rule.example(shapes=[(2, 8, 64), (3, 6, 32), (4, 16)])
def one(shape, dtype, parameter_dtype):
    return {"hidden": torch.randn(shape).to(dtype), "size": shape[-1] // 2}
