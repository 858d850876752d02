"""Documented limits that several operators share. Each is an error when strict and a warning otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..settings import limit

HALVES = (torch.float16, torch.bfloat16)
FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def dtype_in(operator: str, argument: str, tensor: torch.Tensor, allowed: Sequence[torch.dtype] = FLOATS) -> None:
    if tensor.dtype not in allowed:
        kinds = ", ".join(named(dtype) for dtype in allowed)
        limit(
            operator,
            f"{argument} is {named(tensor.dtype)}, and only {kinds} is taken; cast it first",
            f"{argument} 的 dtype 为 {named(tensor.dtype)}，仅支持 {kinds}；请先转换",
        )


def same_dtype(operator: str, first: str, one: torch.Tensor, second: str, other: torch.Tensor) -> None:
    if one.dtype != other.dtype:
        limit(
            operator,
            f"{second} is {named(other.dtype)} and {first} is {named(one.dtype)}; they must be equal: cast one",
            f"{second} 的 dtype 为 {named(other.dtype)}，而 {first} 为 {named(one.dtype)}；二者须一致，请转换其一",
        )


def dims(operator: str, argument: str, tensor: torch.Tensor, least: int, most: int) -> None:
    if not least <= tensor.dim() <= most:
        limit(
            operator,
            f"{argument} has {tensor.dim()} dims, and {least} to {most} are taken; reshape it",
            f"{argument} 有 {tensor.dim()} 维，仅支持 {least} 到 {most} 维；请先 reshape",
        )


def not_empty(operator: str, argument: str, tensor: torch.Tensor) -> None:
    if tensor.numel() == 0:
        limit(
            operator,
            f"{argument} of shape {tuple(tensor.shape)} is empty; skip the call",
            f"{argument} 形状 {tuple(tensor.shape)} 为空张量；请跳过此调用",
        )


def contiguous(operator: str, argument: str, tensor: torch.Tensor) -> None:
    if not tensor.is_contiguous():
        limit(
            operator,
            f"{argument} of shape {tuple(tensor.shape)} and strides {tuple(tensor.stride())} is not contiguous; "
            "call .contiguous() first",
            f"{argument}（形状 {tuple(tensor.shape)}，步长 {tuple(tensor.stride())}）不连续；请先调用 .contiguous()",
        )


def axis(operator: str, tensor: torch.Tensor, dim: int) -> int:
    """`dim` counted from the front. Raises IndexError for one that the tensor has not, strict or not."""
    if not -tensor.dim() <= dim < tensor.dim():
        raise IndexError(
            f"{operator}: dim {dim} is out of range for a tensor of {tensor.dim()} dims; "
            f"give one from {-tensor.dim()} to {tensor.dim() - 1}"
        )
    return dim % int(tensor.dim())


def even(operator: str, argument: str, tensor: torch.Tensor, dim: int) -> None:
    """Raises RuntimeError, strict or not: there is no half of an odd number."""
    if tensor.shape[dim] % 2:
        raise RuntimeError(
            f"{operator}: dim {dim} of {argument} has {tensor.shape[dim]} elements, and it must be even to be halved"
        )
