"""GroupNorm followed by an activation. float32 inside, the input's dtype outside."""

from __future__ import annotations

import torch

from ..registry import kernel
from ..settings import limit
from .limits import dtype_in, named, same_dtype


@kernel("npu_group_norm_silu")
def group_norm_silu(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    group: int,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(silu(GroupNorm(input)), mean, rstd), mean and rstd (N, group). weight and bias may be wider than input."""
    operator = "npu_group_norm_silu"
    if weight is not None and bias is not None:
        same_dtype(operator, "weight", weight, "bias", bias)
        if torch.promote_types(weight.dtype, input.dtype) != weight.dtype:
            limit(
                operator,
                f"weight is {named(weight.dtype)}, narrower than input's {named(input.dtype)}; cast weight and bias",
                f"weight 为 {named(weight.dtype)}，精度低于 input 的 {named(input.dtype)}；请转换 weight 与 bias",
            )
    return _normalized(operator, input, weight, bias, group, eps, 1.0)


@kernel("npu_group_norm_swish")
def group_norm_swish(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float | None = 1e-5,
    swish_scale: float | None = 1.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(y * sigmoid(swish_scale * y) of y = GroupNorm(input), mean, rstd). All of one dtype."""
    operator = "npu_group_norm_swish"
    same_dtype(operator, "input", input, "weight", weight)
    same_dtype(operator, "input", input, "bias", bias)
    if input.dim() > 1 and num_groups > 0 and input.shape[1] // num_groups > 4000 and input.requires_grad:
        limit(
            operator,
            f"{input.shape[1] // num_groups} channels a group, and backward takes at most 4000",
            f"每组 {input.shape[1] // num_groups} 个通道，反向至多 4000",
        )
    scale = 1.0 if swish_scale is None else swish_scale
    return _normalized(operator, input, weight, bias, num_groups, 1e-5 if eps is None else eps, scale)


def _normalized(
    operator: str,
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    groups: int,
    eps: float,
    swish_scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dtype_in(operator, "input", input)
    if input.dim() < 2:
        raise RuntimeError(f"{operator}: input has {input.dim()} dims; it must have at least 2")
    if groups <= 0 or input.shape[1] % groups:
        raise RuntimeError(f"{operator}: {input.shape[1]} channels do not divide into {groups} groups")
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tuple(tensor.shape) != (input.shape[1],):
            raise RuntimeError(f"{operator}: {name} is {tuple(tensor.shape)}; it must be ({input.shape[1]},)")
    if eps <= 0:
        limit(operator, f"eps is {eps}; it must be above 0", f"eps 为 {eps}，须大于 0")
    grouped = input.float().reshape(input.shape[0], groups, -1)
    mean = grouped.mean(-1, keepdim=True)
    centred = grouped - mean
    rstd = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    y = (centred * rstd).reshape(input.shape)
    each = [1, -1, *([1] * (input.dim() - 2))]
    if weight is not None:
        y = y * weight.float().reshape(each)
    if bias is not None:
        y = y + bias.float().reshape(each)
    y = y * torch.sigmoid(swish_scale * y)
    return y.to(input.dtype), mean.squeeze(-1).to(input.dtype).detach(), rstd.squeeze(-1).to(input.dtype).detach()
