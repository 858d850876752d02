"""RMSNorm and its kin.

    y = x * rsqrt(mean(x², the dims of gamma) + epsilon) * gamma

computed in float32 and cast once at the end (op-plugin documentation of npu_rms_norm).
"""

from __future__ import annotations

import torch

from ..registry import kernel
from ..settings import limit
from .limits import FLOATS, dims, dtype_in, named, not_empty, same_dtype

_PAIRS = {
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.float16, torch.float16),
    (torch.bfloat16, torch.bfloat16),
    (torch.float32, torch.float32),
}


@kernel("npu_rms_norm")
def rms_norm(input: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    """(y in input's dtype, rstd in float32 with 1 for each dim of gamma). Input: 2 to 8 dims; gamma: the last ones."""
    dims("npu_rms_norm", "input", input, 2, 8)
    if (input.dtype, gamma.dtype) not in _PAIRS:
        limit(
            "npu_rms_norm",
            f"input is {named(input.dtype)} and gamma {named(gamma.dtype)}; taken are equal float dtypes, or a float32 "
            "gamma with half input: cast gamma to float32 or to input's dtype",
            f"input 为 {named(input.dtype)}、gamma 为 {named(gamma.dtype)}；仅支持二者相同，"
            "或半精度 input 配 float32 gamma：请转换 gamma",
        )
    return _normalized("npu_rms_norm", input, gamma, epsilon)


@kernel("npu_gemma_rms_norm")
def gemma_rms_norm(
    input: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """As npu_rms_norm, with 1 + gamma in gamma's place."""
    dims("npu_gemma_rms_norm", "input", input, 1, 8)
    same_dtype("npu_gemma_rms_norm", "input", input, "gamma", gamma)
    return _normalized("npu_gemma_rms_norm", input, 1.0 + gamma.float(), epsilon)


@kernel("npu_add_rms_norm")
def add_rms_norm(
    x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(RMSNorm of x1 + x2, rstd in float32, x1 + x2). All of one dtype and shape, 1 to 8 dims, not empty."""
    dims("npu_add_rms_norm", "x1", x1, 1, 8)
    not_empty("npu_add_rms_norm", "x1", x1)
    dtype_in("npu_add_rms_norm", "x1", x1)
    same_dtype("npu_add_rms_norm", "x1", x1, "x2", x2)
    same_dtype("npu_add_rms_norm", "x1", x1, "gamma", gamma)
    if x1.shape != x2.shape:
        limit(
            "npu_add_rms_norm",
            f"x1 is {tuple(x1.shape)} and x2 {tuple(x2.shape)}; the shapes must be equal, nothing is broadcast",
            f"x1 形状为 {tuple(x1.shape)}，x2 为 {tuple(x2.shape)}；形状须一致，不会广播",
        )
    added = x1.float() + x2.float()
    y, rstd = _normalized("npu_add_rms_norm", added, gamma, epsilon)
    return y.to(x1.dtype), rstd, added.to(x1.dtype)


@kernel("npu_add_layer_norm")
def add_layer_norm(
    x1: torch.Tensor,
    x2: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    epsilon: float = 1e-5,
    additional_output: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(LayerNorm of x1 + x2, mean, rstd, x1 + x2 or an empty tensor): mean and rstd in float32, over gamma's dims."""
    for name, tensor in (("x1", x1), ("x2", x2), ("gamma", gamma), ("beta", beta)):
        dtype_in("npu_add_layer_norm", name, tensor)
    over = _over("npu_add_layer_norm", x1, gamma)
    added = x1.float() + x2.float()
    mean = added.mean(over, keepdim=True)
    centred = added - mean
    rstd = torch.rsqrt(centred.square().mean(over, keepdim=True) + epsilon)
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    y = (centred * rstd * gamma.float() + beta.float()).to(dtype)
    return y, mean.detach(), rstd.detach(), added.to(dtype) if additional_output else added.new_empty(0, dtype=dtype)


def _over(operator: str, input: torch.Tensor, gamma: torch.Tensor) -> list[int]:
    """The dims that gamma covers. Raises RuntimeError where gamma is not the trailing shape of input."""
    count = gamma.dim()
    if count == 0 or count > input.dim() or tuple(gamma.shape) != tuple(input.shape[-count:]):
        raise RuntimeError(
            f"{operator}: gamma is {tuple(gamma.shape)} and input {tuple(input.shape)}; gamma must be "
            "the last dims of input"
        )
    return list(range(-count, 0))


def _normalized(
    operator: str, input: torch.Tensor, gamma: torch.Tensor, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    over = _over(operator, input, gamma)
    if input.dtype not in FLOATS:
        dtype_in(operator, "input", input)
    wide = input.float()
    rstd = torch.rsqrt(wide.square().mean(over, keepdim=True) + epsilon)
    return (wide * rstd * gamma.float()).to(input.dtype), rstd.detach()
