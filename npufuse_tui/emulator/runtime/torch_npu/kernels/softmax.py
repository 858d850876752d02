"""npu_scaled_masked_softmax."""

from __future__ import annotations

import torch

from ..registry import kernel
from ..settings import limit
from .limits import dtype_in, named

_NAME = "npu_scaled_masked_softmax"
_MASKED = -10000.0  # what a masked score becomes; a wholly masked row is then uniform


@kernel(_NAME)
def scaled_masked_softmax(
    x: torch.Tensor, mask: torch.Tensor, scale: float = 1, fixed_triu_mask: bool = False
) -> torch.Tensor:
    """softmax(x * scale over the last dim, masked where `mask` is True), in float32, cast to x's dtype.

    x is 4-D; its last two dims are multiples of 32 from 32 to 4096; mask is bool and broadcasts to x.
    """
    dtype_in(_NAME, "x", x)
    if x.dim() != 4:
        raise RuntimeError(f"{_NAME}: x has {x.dim()} dims; it must have 4")
    if mask.dtype != torch.bool:
        limit(
            _NAME,
            f"mask is {named(mask.dtype)}; it must be bool, True where masked",
            f"mask 的 dtype 为 {named(mask.dtype)}，须为 bool（True 表示屏蔽）",
        )
    for at in (2, 3):
        size = x.shape[at]
        if not 32 <= size <= 4096 or size % 32:
            limit(
                _NAME,
                f"dim {at} of x is {size}; it must be a multiple of 32 from 32 to 4096: pad it",
                f"x 的第 {at} 维为 {size}，须为 32 到 4096 之间 32 的倍数；请补齐",
            )
    if fixed_triu_mask:
        limit(
            _NAME,
            "fixed_triu_mask is True, and the documentation takes only False: pass the mask",
            "fixed_triu_mask 为 True，文档仅支持 False：请传入 mask",
        )
        mask = torch.ones(x.shape[-2:], dtype=torch.bool, device=mask.device).triu(1)
    return torch.softmax((x.float() * float(scale)).masked_fill(mask.bool(), _MASKED), -1).to(x.dtype)
