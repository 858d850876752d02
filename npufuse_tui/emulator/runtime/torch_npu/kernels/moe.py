"""Routing of tokens to experts and back. Sums in float32, cast once at the end."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..registry import kernel
from ..settings import limit, not_emulated
from .limits import dtype_in, named, same_dtype

_MOST_INDICES = 16777215


@kernel("npu_moe_token_permute")
def moe_token_permute(
    tokens: torch.Tensor, indices: torch.Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(tokens repeated k times and sorted by expert, sorted_indices int32).

    tokens is (T, H), indices (T, k) or (T,) of int32 or int64. `permuted[sorted_indices[i]] == tokens[i // k]`:
    sorted_indices is the inverse of the stable argsort. `num_out_tokens` keeps the first so many rows.
    """
    operator = "npu_moe_token_permute"
    if tokens.dim() != 2:
        raise RuntimeError(f"The dims of input tokens should be 2 dimensional, but got {tokens.dim()}-dimensional.")
    if indices.dim() not in (1, 2):
        raise RuntimeError(
            f"The dims of input indices should be 2 or 1 dimensional, but got {indices.dim()}-dimensional."
        )
    dtype_in(operator, "tokens", tokens)
    if indices.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"{operator}: indices is {named(indices.dtype)}; it must be int32 or int64")
    if indices.shape[0] != tokens.shape[0]:
        raise RuntimeError(
            f"{operator}: tokens has {tokens.shape[0]} rows and indices {indices.shape[0]}; they must be as many"
        )
    if padded_mode:
        raise RuntimeError(f"{operator}: padded_mode is True; only False is taken")
    if indices.numel() >= _MOST_INDICES:
        limit(
            operator,
            f"indices has {indices.numel()} elements, and less than {_MOST_INDICES} is taken",
            f"indices 有 {indices.numel()} 个元素，须小于 {_MOST_INDICES}",
        )
    _top_k(operator, 1 if indices.dim() == 1 else indices.shape[1])
    k = 1 if indices.dim() == 1 else indices.shape[1]
    flat = indices.reshape(-1)
    order = torch.argsort(flat, stable=True)
    inverse = torch.empty_like(order)
    inverse.scatter_(0, order, torch.arange(order.numel(), dtype=order.dtype, device=order.device))
    kept = order[: _kept_rows(num_out_tokens, flat.numel())]
    # Through float32, so that the gradients of the k copies of a token are added in float32.
    permuted = tokens.float().index_select(0, kept // max(k, 1)).to(tokens.dtype)
    return permuted, inverse.to(torch.int32)


@kernel("npu_moe_token_unpermute")
def moe_token_unpermute(
    permuted_tokens: torch.Tensor,
    sorted_indices: torch.Tensor,
    probs: torch.Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> torch.Tensor:
    """(T, H): rows gathered by `sorted_indices` (int32), times probs (T, k), summed over k in float32.

    Without probs k is 1. Rows that `num_out_tokens` had cut off count as zero.
    """
    operator = "npu_moe_token_unpermute"
    if probs is not None and probs.dim() != 2:
        raise RuntimeError(f"The dims of input probs should be 2 dimensional, but got {probs.dim()}-dimensional.")
    if permuted_tokens.dim() != 2:
        raise RuntimeError(
            f"The dims of input permuted_tokens should be 2 dimensional, but got {permuted_tokens.dim()}-dimensional."
        )
    if sorted_indices.dim() != 1:
        raise RuntimeError(
            f"The dims of input sorted_indices should be 1 dimensional, but got {sorted_indices.dim()}-dimensional."
        )
    if padded_mode:
        raise RuntimeError(f"{operator}: padded_mode is True; only False is taken")
    dtype_in(operator, "permuted_tokens", permuted_tokens)
    if sorted_indices.dtype != torch.int32:
        limit(
            operator,
            f"sorted_indices is {named(sorted_indices.dtype)}; it must be int32, as npu_moe_token_permute gives it",
            f"sorted_indices 的 dtype 为 {named(sorted_indices.dtype)}，须为 int32（npu_moe_token_permute 的输出）",
        )
    k = 1 if probs is None else probs.shape[1]
    _top_k(operator, k)
    if probs is not None:
        dtype_in(operator, "probs", probs)
        if probs.numel() != sorted_indices.numel():
            raise RuntimeError(
                f"{operator}: probs has {probs.numel()} elements and sorted_indices {sorted_indices.numel()}; "
                "they must be as many"
            )
    if permuted_tokens.is_meta:
        return permuted_tokens.new_empty((sorted_indices.shape[0] // max(k, 1), permuted_tokens.shape[1]))
    wide = permuted_tokens.float()
    where = sorted_indices.long()
    if where.numel() and int(where.max()) >= wide.shape[0]:
        rows = int(where.max()) + 1 - wide.shape[0]
        wide = torch.cat((wide, wide.new_zeros(rows, wide.shape[1])), 0)
    gathered = (
        wide.index_select(0, where).unflatten(0, (-1, k)) if where.numel() else wide.new_zeros(0, k, wide.shape[1])
    )
    if probs is not None:
        gathered = gathered * probs.float().unsqueeze(-1)
    return gathered.sum(1).to(permuted_tokens.dtype)


@kernel("_npu_moe_token_unpermute")
def _moe_token_unpermute(
    permuted_tokens: torch.Tensor,
    sorted_indices: torch.Tensor,
    probs: torch.Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    result = moe_token_unpermute(permuted_tokens, sorted_indices, probs, padded_mode, restore_shape)
    return result, permuted_tokens.detach().clone()


@kernel("npu_moe_gating_top_k_softmax")
def moe_gating_top_k_softmax(
    x: torch.Tensor, finished: torch.Tensor | None = None, k: int = 1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(the k largest of softmax(x) in x's dtype, their experts int32, row_idx int32 with column-major numbers).

    The values are not normalised again. A row that is finished has the number of experts in place of each expert.
    """
    operator = "npu_moe_gating_top_k_softmax"
    if x.dim() not in (2, 3):
        raise RuntimeError("the x shape support only 2d and 3d)")
    dtype_in(operator, "x", x)
    if not 0 < k <= min(x.shape[-1], 1024):
        raise RuntimeError(
            f"{operator}: k is {k} of {x.shape[-1]} experts; give one from 1 to the experts, at most 1024"
        )
    values, experts = torch.sort(torch.softmax(x.float(), -1), dim=-1, descending=True, stable=True)
    values, experts = values[..., :k], experts[..., :k].to(torch.int32)
    if finished is not None:
        if tuple(finished.shape) != tuple(x.shape[:-1]):
            raise RuntimeError(f"{operator}: finished is {tuple(finished.shape)}; it must be {tuple(x.shape[:-1])}")
        experts = torch.where(finished.unsqueeze(-1), torch.full_like(experts, x.shape[-1]), experts)
    rows = x.shape[:-1].numel()
    row_idx = torch.arange(rows * k, dtype=torch.int32, device=experts.device).view(k, rows).t().reshape(experts.shape)
    return values.to(x.dtype).contiguous(), experts.contiguous(), row_idx.contiguous()


@kernel("npu_moe_init_routing")
def moe_init_routing(
    x: torch.Tensor, row_idx: torch.Tensor, expert_idx: torch.Tensor, active_num: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(rows of x by expert, where each went, the experts sorted), of what npu_moe_gating_top_k_softmax gives.

    expanded_x has min(rows, active_num) * k rows.
    """
    operator = "npu_moe_init_routing"
    dtype_in(operator, "x", x)
    if x.dim() != 2 or expert_idx.dim() != 2 or row_idx.shape != expert_idx.shape:
        raise RuntimeError(
            f"{operator}: x is {tuple(x.shape)}, row_idx {tuple(row_idx.shape)}, expert_idx {tuple(expert_idx.shape)}; "
            "give (rows, H), (rows, k) and (rows, k)"
        )
    for name, tensor in (("row_idx", row_idx), ("expert_idx", expert_idx)):
        if tensor.dtype != torch.int32:
            limit(
                operator,
                f"{name} is {named(tensor.dtype)}; it must be int32",
                f"{name} 的 dtype 为 {named(tensor.dtype)}，须为 int32",
            )
    rows, k = expert_idx.shape
    experts, order = torch.sort(expert_idx.reshape(-1), stable=True)
    sorted_rows = row_idx.reshape(-1)[order].long()
    expanded_row_idx = torch.empty_like(sorted_rows)
    expanded_row_idx.scatter_(0, sorted_rows, torch.arange(rows * k, dtype=torch.int64, device=order.device))
    expanded_x = x.index_select(0, sorted_rows[: min(rows, active_num) * k] % max(rows, 1))
    return expanded_x, expanded_row_idx.to(row_idx.dtype), experts.to(row_idx.dtype)


@kernel("npu_moe_finalize_routing")
def moe_finalize_routing(
    expanded_permuted_rows: torch.Tensor,
    skip1: torch.Tensor | None,
    skip2: torch.Tensor | None,
    bias: torch.Tensor | None,
    scales: torch.Tensor | None,
    expanded_src_to_dst_row: torch.Tensor,
    export_for_source_row: torch.Tensor | None,
    drop_pad_mode: int | None = 0,
    k: int | None = 1,
) -> torch.Tensor:
    """skip1 + skip2 + Σₖ scales[i, k] * (rows[src_to_dst[i + k * rows]] + bias[expert[i, k]]), in float32."""
    operator = "npu_moe_finalize_routing"
    if drop_pad_mode not in (0, None):
        raise not_emulated(f"{operator} with drop_pad_mode={drop_pad_mode}")
    rows = expanded_permuted_rows
    dtype_in(operator, "expanded_permuted_rows", rows)
    if skip2 is not None and skip1 is None:
        raise RuntimeError(f"{operator}: skip2 is given and skip1 is not")
    for name, tensor in (("skip1", skip1), ("skip2", skip2), ("bias", bias), ("scales", scales)):
        if tensor is not None:
            same_dtype(operator, "expanded_permuted_rows", rows, name, tensor)
    if scales is not None:
        count, k = scales.shape
    else:
        k = k or 1
        count = expanded_src_to_dst_row.numel() // k
    where = expanded_src_to_dst_row.long().view(k, count).t()
    gathered = rows.float()[where]  # (rows, k, H)
    if bias is not None:
        if export_for_source_row is None:
            raise RuntimeError(f"{operator}: bias is given and export_for_source_row is not")
        gathered = gathered + bias.float()[export_for_source_row.long()]
    if scales is not None:
        gathered = gathered * scales.float().unsqueeze(-1)
    result = gathered.sum(1)
    for skip in (skip1, skip2):
        if skip is not None:
            result = result + skip.float()
    return result.to(rows.dtype)


def _kept_rows(num_out_tokens: int | None, rows: int) -> int:
    wanted = num_out_tokens or 0
    return min(wanted, rows) if wanted > 0 else max(rows + wanted, 0)


def _top_k(operator: str, k: int) -> None:
    if k > 512:
        limit(operator, f"k is {k}, and at most 512 is taken", f"k 为 {k}，至多 512")
