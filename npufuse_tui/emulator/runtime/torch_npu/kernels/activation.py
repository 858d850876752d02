"""Gated and plain activations. float32 inside, the input's dtype outside."""

from __future__ import annotations

import torch
from torch.nn import functional

from ..registry import kernel
from ..settings import limit
from .limits import HALVES, axis, contiguous, dims, dtype_in, even, not_empty


@kernel("npu_swiglu")
def swiglu(input: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """silu(first half of `dim`) * second half. Input contiguous, not empty, 1 to 8 dims, `dim` even."""
    dim = axis("npu_swiglu", input, dim)
    dtype_in("npu_swiglu", "input", input)
    dims("npu_swiglu", "input", input, 1, 8)
    even("npu_swiglu", "input", input, dim)
    contiguous("npu_swiglu", "input", input)
    not_empty("npu_swiglu", "input", input)
    gate, up = input.float().chunk(2, dim)
    return (functional.silu(gate) * up).to(input.dtype)


@kernel("npu_clipped_swiglu")
def clipped_swiglu(
    x: torch.Tensor,
    *,
    group_index: torch.Tensor | None = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> torch.Tensor:
    """gate * sigmoid(alpha * gate) * (up + bias), gate at most `limit`, up within ±`limit`.

    `interleaved`: gate and up are the even and odd elements of `dim`, else its halves. With `group_index` (counts of
    rows), only the rows that the groups cover are computed; the rest is zero here and undefined on the NPU.
    """
    dim = axis("npu_clipped_swiglu", x, dim)
    dtype_in("npu_clipped_swiglu", "x", x)
    even("npu_clipped_swiglu", "x", x, dim)
    contiguous("npu_clipped_swiglu", "x", x)
    wide = x.float().flatten(dim)  # the documentation merges the dim that is cut with those after it
    if interleaved:
        gate, up = wide.unflatten(dim, (-1, 2)).unbind(-1)
    else:
        gate, up = wide.chunk(2, dim)
    gate = gate.clamp(max=limit)
    up = up.clamp(-limit, limit)
    shape = [*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim + 1 :]]
    y = (gate * torch.sigmoid(alpha * gate) * (up + bias)).to(x.dtype).reshape(shape)
    if group_index is not None and not x.is_meta:
        rows = y.view(-1, *shape[dim:])
        rows[int(group_index.sum()) :] = 0
    return y


@kernel("npu_geglu")
def geglu(
    input: torch.Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(gelu(one half) * other half, gelu of that half). By default the right half is inside gelu.

    `approximate`: 0 the error function, 1 tanh.
    """
    dim = axis("npu_geglu", input, dim)
    dtype_in("npu_geglu", "input", input)
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"x shape: {list(input.shape)}. Dim [{dim}] of x should be divisible by 2, but get [{input.shape[dim]}]"
        )
    if approximate not in (0, 1):
        raise RuntimeError(f"npu_geglu: approximate is {approximate}; give 0 (none) or 1 (tanh)")
    left, right = input.float().chunk(2, dim)
    inside, other = (left, right) if activate_left else (right, left)
    gelu = functional.gelu(inside, approximate="tanh" if approximate else "none")
    return (gelu * other).to(input.dtype), gelu.to(input.dtype).detach()


@kernel("npu_gelu")
def gelu(input: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """gelu with the error function ("none") or tanh ("tanh")."""
    dtype_in("npu_gelu", "input", input)
    return _gelu("npu_gelu", input, approximate).to(input.dtype)


@kernel("npu_gelu_mul")
def gelu_mul(input: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """gelu(first half of the last dim) * second half. The last dim is even and at most 1024."""
    dtype_in("npu_gelu_mul", "input", input)
    even("npu_gelu_mul", "input", input, -1)
    if input.shape[-1] > 1024:
        limit(
            "npu_gelu_mul",
            f"the last dim has {input.shape[-1]} elements, and at most 1024 are taken; use gelu and a product",
            f"最后一维有 {input.shape[-1]} 个元素，至多 1024；请改用 gelu 与乘法",
        )
    left, right = input.chunk(2, -1)
    return (_gelu("npu_gelu_mul", left, approximate) * right.float()).to(input.dtype)


@kernel("fast_gelu", "npu_fast_gelu")
def fast_gelu(input: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(1.702 x): an approximation, and not what torch calls gelu."""
    dtype_in("npu_fast_gelu", "input", input, (*HALVES, torch.float32))
    wide = input.float()
    return (wide * torch.sigmoid(1.702 * wide)).to(input.dtype)


@kernel("npu_silu")
def silu(input: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(x)."""
    return functional.silu(input.float()).to(input.dtype)


def _gelu(operator: str, input: torch.Tensor, approximate: str) -> torch.Tensor:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f'{operator}: approximate is {approximate!r}; give "none" or "tanh"')
    return functional.gelu(input.float(), approximate=approximate)
