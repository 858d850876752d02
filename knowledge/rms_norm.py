"""RMSNorm → torch_npu.npu_rms_norm.

Formula and limits: op-plugin documentation of npu_rms_norm (y = x / sqrt(mean(x²) + epsilon) * gamma over the trailing
dims that gamma has, computed in float32, cast to x's dtype at the end; x has 2 to 8 dims; gamma has x's dtype or float32).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Verdict
from npufuse_tui.rules import Flag, MatchView, Parameter, Refusal, Rule, Scalar, Tensor

if TYPE_CHECKING:
    import torch
    import torch_npu

rule = Rule(
    id="rms_norm",
    family="norm",
    api="torch_npu.npu_rms_norm",
    title=Text("RMSNorm", "RMSNorm"),
    training=True,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.1.0",
    products=("A2", "A3", "inference", "training"),
    docs="op-plugin: npu_rms_norm",
    needs=(
        (rb"sqrt", rb"\*\* ?\(?-", rb"\.norm\(", rb"normalize\(", rb"rms_norm"),
        (rb"mean", rb"\bsum\(", rb"\.norm\(", rb"normalize\(", rb"rms_norm"),
    ),
    priority=Priority.HIGH,
    helpers={
        "_ones_for": '''\
@functools.lru_cache(maxsize=None)
def _ones_for(size, dtype, device):
    """The gamma of an RMSNorm that has none, made once."""
    return torch.ones(size, dtype=dtype, device=device)
'''
    },
)


@rule.pattern("weight")
def weight_last(x: Tensor, weight: Parameter, eps: Scalar):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


@rule.pattern("one_plus_weight")
def gemma(x: Tensor, weight: Parameter, eps: Scalar):
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)) * (1.0 + weight)


@rule.pattern("weight_if")
def weight_if_there_is_one(x: Tensor, weight: Parameter, eps: Scalar, given: Flag):
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    if given:
        normed = normed * weight
    return normed


@rule.pattern("no_weight", priority=Priority.MEDIUM)
def plain(x: Tensor, eps: Scalar):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


_NEAR_EPSILON = Text(
    "epsilon stands outside of the root, so the results differ where the norm is near epsilon",
    "epsilon 在根号之外，范数接近 epsilon 时结果不同",
)


@rule.pattern("epsilon_outside", verdict=Verdict.CAUTION, reason=_NEAR_EPSILON)
def epsilon_outside(x: Tensor, weight: Parameter, eps: Scalar):
    return weight * (x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + eps))


@rule.pattern("clamped_norm", verdict=Verdict.CAUTION, reason=_NEAR_EPSILON)
def clamped_norm(x: Tensor, weight: Parameter, scale: Scalar, eps: Scalar):
    return x / (x.norm(dim=-1, keepdim=True) * scale).clamp(min=eps) * weight


_ONE_OPERATOR = Text(
    "already one operator in new torch; worth it only where the installed torch takes it apart",
    "在新版 torch 中已是单个算子；仅当所安装的 torch 会将其拆分时才值得替换",
)


@rule.pattern("functional", verdict=Verdict.CAUTION, reason=_ONE_OPERATOR, priority=Priority.LOW)
def functional(x: Tensor, weight: Parameter, eps: Scalar, shape: Flag):
    return F.rms_norm(x, shape, weight, eps)


@rule.pattern("functional_plus_one", verdict=Verdict.CAUTION, reason=_ONE_OPERATOR, priority=Priority.LOW)
def functional_plus_one(x: Tensor, weight: Parameter, eps: Scalar, shape: Flag):
    return F.rms_norm(x, shape, 1.0 + weight, eps)


_NORMALIZED = Text(
    "F.normalize keeps its epsilon apart from the mean, so the results differ where the norm is near it",
    "F.normalize 的 epsilon 作用于范数而非均值，范数接近 epsilon 时结果不同",
)


@rule.pattern("normalized", verdict=Verdict.CAUTION, reason=_NORMALIZED)
def normalized(x: Tensor, weight: Parameter, scale: Scalar):
    return F.normalize(x, dim=-1) * scale * weight


@rule.replacement(variants=("functional",))
def fused_functional(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]


@rule.replacement(variants=("functional_plus_one",))
def fused_functional_plus_one(x, weight, eps):
    return torch_npu.npu_rms_norm(x, 1.0 + weight, epsilon=eps)[0]


@rule.replacement(variants=("clamped_norm",))
def fused_clamped_norm(x, weight, scale, eps):
    return torch_npu.npu_rms_norm(x, weight * (x.shape[-1] ** -0.5 / scale), epsilon=eps * eps)[0]


@rule.replacement(variants=("normalized",))
def fused_normalized(x, weight, scale):
    return torch_npu.npu_rms_norm(x, weight * (scale * x.shape[-1] ** -0.5), epsilon=1e-12)[0]


@rule.replacement
def fused(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]


@rule.replacement(variants=("one_plus_weight",))
def fused_one_plus(x, weight, eps):
    return torch_npu.npu_rms_norm(x, 1.0 + weight, epsilon=eps)[0]


@rule.replacement(variants=("weight_if",))
def fused_with_weight_if_there_is_one(x, weight, eps, given):
    return torch_npu.npu_rms_norm(x, weight if given else _ones_for(x.shape[-1], x.dtype, x.device), epsilon=eps)[0]


@rule.replacement(variants=("no_weight",))
def fused_without_weight(x, eps):
    return torch_npu.npu_rms_norm(x, _ones_for(x.shape[-1], x.dtype, x.device), epsilon=eps)[0]


@rule.replacement(variants=("epsilon_outside",))
def fused_epsilon_squared(x, weight, eps):
    return torch_npu.npu_rms_norm(x, weight, epsilon=eps * eps)[0]


@rule.condition()
def nothing_is_subtracted(match: MatchView) -> Refusal | None:
    """x - mean(x), normed, is a LayerNorm."""
    if match.origin("x") == "add" and "mean" in match.made_with("x"):
        return Refusal(Text("the mean is subtracted: a LayerNorm", "减去了均值：这是 LayerNorm"), None)
    return None


@rule.example(shapes=[(2, 8, 64), (3, 5, 128), (4, 32)], variants=("clamped_norm",))
def inputs_of_a_clamped_norm(shape, dtype, parameter_dtype):
    return {**inputs(shape, dtype, parameter_dtype), "scale": shape[-1] ** -0.5}


@rule.example(shapes=[(2, 8, 64), (3, 5, 128), (4, 32), (1, 1, 96)])
def inputs(shape, dtype, parameter_dtype):
    return {
        "x": torch.randn(shape).to(dtype),
        "weight": (torch.rand(shape[-1]) + 0.5).to(parameter_dtype),
        "eps": 1e-6,
        "given": True,
        "scale": shape[-1] ** 0.5,
        "shape": (shape[-1],),
    }
