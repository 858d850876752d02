"""Memory formats, of which there is one here, and casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..registry import kernel

ND = 2


@kernel("npu_confusion_transpose")
def confusion_transpose(
    input: torch.Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> torch.Tensor:
    """permute then reshape, or the other way round. Deprecated in torch_npu: view and permute do the same."""
    if transpose_first:
        return input.permute(*perm).reshape(*shape).clone(memory_format=torch.contiguous_format)
    return input.reshape(*shape).permute(*perm).clone(memory_format=torch.contiguous_format)


@kernel("npu_format_cast", "npu_format_cast.Tensor")
def format_cast(input: torch.Tensor, acl_format: Any, **others: Any) -> torch.Tensor:
    """The same values: memory formats exist on the NPU only."""
    return input.clone()


@kernel("npu_format_cast_", "npu_format_cast_.acl_format")
def format_cast_(input: torch.Tensor, src: Any, **others: Any) -> torch.Tensor:
    return input


@kernel("get_npu_format")
def get_npu_format(input: torch.Tensor) -> int:
    """ND, always."""
    return ND
