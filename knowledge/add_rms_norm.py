"""Residual add followed by RMSNorm → torch_npu.npu_add_rms_norm (inference).

Formula and limits: op-plugin documentation of npu_add_rms_norm: (RMSNorm(x1 + x2), 1/rms, x1 + x2); gamma has x1's dtype;
no backward, so the fused branch is taken only where no gradient is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Verdict
from npufuse_tui.rules import MatchView, Parameter, Refusal, Rule, Scalar, Tensor

if TYPE_CHECKING:
    import torch
    import torch_npu

rule = Rule(
    id="add_rms_norm",
    family="norm",
    api="torch_npu.npu_add_rms_norm",
    title=Text("residual add and RMSNorm", "残差相加与 RMSNorm"),
    training=False,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.1.0",
    products=("A2", "A3", "inference"),
    docs="op-plugin: npu_add_rms_norm",
    needs=((rb"sqrt", rb"\*\* ?\(?-"), (rb"mean", rb"\bsum\("), (rb"\+",)),
    priority=Priority.MEDIUM,
    memory_passes=4,
)

_INFERENCE = Text(
    "for inference: the operator has no backward, so code that records gradients keeps the original; approve this or the"
    " plain rms_norm of the same lines, not both",
    "仅用于推理：该算子没有反向，记录梯度时仍走原代码；同一处代码请只批准此项或 rms_norm 之一",
)


@rule.pattern("weight", verdict=Verdict.CAUTION, reason=_INFERENCE)
def added_first(x: Tensor, residual: Tensor, weight: Parameter, eps: Scalar):
    total = x + residual
    return weight * (total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + eps)), total


@rule.replacement
def fused(x, residual, weight, eps):
    normed, _, total = torch_npu.npu_add_rms_norm(x, residual, weight, epsilon=eps)
    return normed, total


@rule.condition()
def nothing_is_subtracted(match: MatchView) -> Refusal | None:
    """x - mean(x) is a sum too; normed, it is a LayerNorm."""
    if "mean" in match.made_with("x") | match.made_with("residual"):
        return Refusal(Text("the mean is subtracted: a LayerNorm", "减去了均值：这是 LayerNorm"), None)
    return None


@rule.guard()
def no_gradient_is_recorded(x, weight):
    return not torch.is_grad_enabled() and weight.dtype == x.dtype


@rule.example(shapes=[(2, 8, 64), (3, 5, 128), (4, 32)])
def inputs(shape, dtype, parameter_dtype):
    return {
        "x": torch.randn(shape).to(dtype),
        "residual": torch.randn(shape).to(dtype),
        "weight": (torch.rand(shape[-1]) + 0.5).to(dtype),
        "eps": 1e-6,
    }
