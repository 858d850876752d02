"""Attention for inference: the float paths of the flash-attention operators for prefill and decode. No gradient.

out = softmax(scale * q kᵀ + pse_shift, masked) v
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..registry import kernel
from ..settings import caution, limit, not_emulated
from .attention_core import (
    EVERYTHING,
    Scores,
    attend,
    band,
    causal,
    check_compressed,
    from_bnsd,
    hidden_row_limit,
    lengths,
    to_bnsd,
)
from .limits import HALVES, contiguous, dtype_in, named, same_dtype

_LAYOUTS = {"BSH": 3, "BSND": 4, "BNSD": 4, "TND": 3, "BNSD_BSND": 4}
# Arguments that change nothing where there is no quantisation and no paging.
_IDLE = {"block_size", "antiquant_mode", "key_antiquant_mode", "value_antiquant_mode", "query_quant_mode"}
_IDLE |= {"key_quant_mode", "value_quant_mode", "padding_mask"}


@kernel("npu_fused_infer_attention_score")
def fused_infer_attention_score(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    pse_shift: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    num_heads: int = 1,
    scale: float = 1.0,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 0,
    softmax_lse_flag: bool = False,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, log-sum-exp float32 (B, N, Sq, 1) or (T, N, 1); empty unless asked for)."""
    _refuse("npu_fused_infer_attention_score", others)
    call = _Call("npu_fused_infer_attention_score", query, key, value, num_heads, num_key_value_heads, input_layout)
    out, lse = call.run(
        scale,
        atten_mask,
        pse_shift,
        (sparse_mode, pre_tokens, next_tokens),
        bool(inner_precise & 2),
        actual_seq_lengths,
        actual_seq_lengths_kv,
    )
    return out, lse if softmax_lse_flag else lse.new_empty(0)


@kernel("npu_fused_infer_attention_score_v2")
def fused_infer_attention_score_v2(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    pse_shift: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    num_query_heads: int = 1,
    num_key_value_heads: int = 0,
    softmax_scale: float = 1.0,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
    inner_precise: int = 0,
    return_softmax_lse: bool = False,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As npu_fused_infer_attention_score, with other names."""
    _refuse("npu_fused_infer_attention_score_v2", others)
    call = _Call(
        "npu_fused_infer_attention_score_v2", query, key, value, num_query_heads, num_key_value_heads, input_layout
    )
    out, lse = call.run(
        softmax_scale,
        atten_mask,
        pse_shift,
        (sparse_mode, pre_tokens, next_tokens),
        bool(inner_precise & 2),
        actual_seq_qlen,
        actual_seq_kvlen,
    )
    return out, lse if return_softmax_lse else lse.new_empty(0)


@kernel("npu_prompt_flash_attention")
def prompt_flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    pse_shift: torch.Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    sparse_mode: int = 0,
    **others: Any,
) -> torch.Tensor:
    """Prefill. `next_tokens` is 0 by default: with a mask in sparse_mode 0 nothing ahead is seen."""
    _refuse("npu_prompt_flash_attention", others)
    call = _Call("npu_prompt_flash_attention", query, key, value, num_heads, num_key_value_heads, input_layout)
    out, _ = call.run(
        scale_value,
        atten_mask,
        pse_shift,
        (sparse_mode, pre_tokens, next_tokens),
        False,
        actual_seq_lengths,
        actual_seq_lengths_kv,
    )
    return out


@kernel("npu_incre_flash_attention")
def incre_flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    pse_shift: torch.Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    inner_precise: int = 1,
    **others: Any,
) -> torch.Tensor:
    """Decode: one row of query; `actual_seq_lengths` are those of key and value."""
    operator = "npu_incre_flash_attention"
    _refuse(operator, others)
    call = _Call(operator, query, key, value, num_heads, num_key_value_heads, input_layout)
    out, _ = call.run(scale_value, atten_mask, pse_shift, (0, EVERYTHING, EVERYTHING), False, None, actual_seq_lengths)
    return out


def _refuse(operator: str, others: dict[str, Any]) -> None:
    given = [name for name, argument in others.items() if argument is not None and name not in _IDLE]
    if given:
        raise not_emulated(f"{operator} with {given[0]}")


class _Call:
    """One call, checked, then run batch by batch, since each may have its own lengths."""

    def __init__(
        self,
        operator: str,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        heads: int,
        groups: int,
        layout: str,
    ) -> None:
        if layout not in _LAYOUTS:
            raise RuntimeError(f"Layout {layout} is not supported!")
        if heads <= 0:
            raise RuntimeError(f"numHeads should be greater than 0, but got {heads}")
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            if not tensor.is_floating_point():
                raise not_emulated(f"{operator} with {named(tensor.dtype)} {name}")
            dtype_in(operator, name, tensor, HALVES)
            same_dtype(operator, "query", query, name, tensor)
            contiguous(operator, name, tensor)
            if tensor.dim() != _LAYOUTS[layout]:
                raise RuntimeError(
                    f"{operator}: {name} has {tensor.dim()} dims, and layout {layout} has {_LAYOUTS[layout]}"
                )
        self.operator, self.layout, self.heads, self.groups = operator, layout, heads, groups or heads
        self.dense = layout.partition("_")[0]
        if self.heads % self.groups or self.heads // self.groups > 64:
            raise RuntimeError(
                f"{operator}: {heads} heads of query with {self.groups} of key; give a multiple, up to 64 times"
            )
        at = {"BSH": None, "BSND": 2, "BNSD": 1, "TND": 1}[self.dense]
        if at is not None and (query.shape[at], key.shape[at]) != (self.heads, self.groups):
            raise RuntimeError(
                f"{operator}: query has {query.shape[at]} heads and key {key.shape[at]} in layout {layout}, and the "
                f"call says {self.heads} and {self.groups}; is the layout the right one?"
            )
        width = query.shape[-1] if at is not None else query.shape[-1] // self.heads
        if width > 512:
            limit(operator, f"the head dim is {width}, and at most 512 is taken", f"head dim 为 {width}，至多 512")
        if width % 16:
            limit(
                operator,
                f"the head dim is {width}, and a multiple of 16 is taken",
                f"head dim 为 {width}，须为 16 的倍数",
            )
        self.query, self.key, self.value = query, key, value

    def run(
        self,
        scale: float,
        mask: torch.Tensor | None,
        pse: torch.Tensor | None,
        sparse: tuple[int, int, int],
        zeros: bool,
        query_lengths: Sequence[int] | None,
        key_lengths: Sequence[int] | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        mode = sparse[0]
        if mode not in (0, 1, 2, 3, 4):
            raise RuntimeError(f"{self.operator}: sparse_mode is {mode}; give one from 0 to 4")
        if mask is not None and mask.dtype not in (torch.bool, torch.int8, torch.uint8):
            raise RuntimeError(f"{self.operator}: atten_mask is {named(mask.dtype)}; it must be bool, int8 or uint8")
        if mask is None and mode:
            caution(
                self.operator,
                f"sparse_mode={mode} does nothing without atten_mask: every position sees every other",
                f"未传 atten_mask 时 sparse_mode={mode} 不生效：所有位置互相可见",
            )
        packed = self.dense == "TND"
        if packed:
            ours = lengths(self.operator, "actual_seq_lengths", query_lengths, self.query.shape[0])
            theirs = lengths(self.operator, "actual_seq_lengths_kv", key_lengths, self.key.shape[0])
            if len(ours) != len(theirs):
                raise RuntimeError(
                    f"{self.operator}: actual_seq_lengths has {len(ours)} entries and actual_seq_lengths_kv "
                    f"{len(theirs)}; they must be as many"
                )
            queries = _unpacked(self.query, ours)
            keys, values = _unpacked(self.key, theirs), _unpacked(self.value, theirs)
        else:
            query = to_bnsd(self.query, self.dense, self.heads)
            key, value = (to_bnsd(tensor, self.dense, self.groups) for tensor in (self.key, self.value))
            batch, rows, columns = query.shape[0], query.shape[2], key.shape[2]
            ours = _each(self.operator, query_lengths, batch, rows)
            theirs = _each(self.operator, key_lengths, batch, columns)
            queries = [query[at : at + 1, :, : ours[at]] for at in range(batch)]
            keys = [key[at : at + 1, :, : theirs[at]] for at in range(batch)]
            values = [value[at : at + 1, :, : theirs[at]] for at in range(batch)]
        outs, sums = [], []
        for at, (one, other, third) in enumerate(zip(queries, keys, values)):  # noqa: B905 (Python 3.9)
            hidden, known = self._hidden(mask, at, len(queries), one, other, sparse)
            if hidden is not None and not (zeros or known):
                hidden_row_limit(self.operator, hidden)
            bias = None if pse is None else pse[min(at, pse.shape[0] - 1)][None, :, : one.shape[2], : other.shape[2]]
            out, largest, total = attend(
                one,
                other,
                third,
                Scores(scale, hidden, bias, bias_scaled=False, zero_hidden_rows=zeros or known),
            )
            outs.append(out)
            sums.append(largest + torch.log(total))
        return self._joined(outs, sums, packed)

    def _joined(
        self, outs: list[torch.Tensor], sums: list[torch.Tensor], packed: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        dtype = self.query.dtype
        if packed:
            out = torch.cat([one.squeeze(0).transpose(0, 1) for one in outs]).to(dtype)
            return out.contiguous(), torch.cat([one.squeeze(0).t() for one in sums]).unsqueeze(-1)
        rows = self.query.shape[{"BSH": 1, "BSND": 1, "BNSD": 2}[self.dense]]
        filled = [torch.nn.functional.pad(one, (0, 0, 0, rows - one.shape[2])) for one in outs]
        lse = [torch.nn.functional.pad(one, (0, rows - one.shape[2])) for one in sums]
        target = "BSND" if self.layout == "BNSD_BSND" else self.dense
        return from_bnsd(torch.cat(filled).to(dtype), target), torch.cat(lse).unsqueeze(-1)

    def _hidden(
        self,
        mask: torch.Tensor | None,
        at: int,
        batch: int,
        query: torch.Tensor,
        key: torch.Tensor,
        sparse: tuple[int, int, int],
    ) -> tuple[torch.Tensor | None, bool]:
        if mask is None:
            return None, False
        mode, before, after = sparse
        rows, columns = query.shape[2], key.shape[2]
        if mode in (2, 3, 4):
            check_compressed(self.operator, mask, mode)
            if mode == 2:
                return causal(rows, columns, 0, query.device), True
            if mode == 3:
                return causal(rows, columns, columns - rows, query.device), True
            return band(rows, columns, before, after, columns - rows, query.device), True
        own = self._own_mask(mask, at, batch, rows, columns)
        if mode == 0 and (before < rows or after < columns):
            own = own | band(rows, columns, before, after, 0, query.device)
        return own, False

    def _own_mask(self, mask: torch.Tensor, at: int, batch: int, rows: int, columns: int) -> torch.Tensor:
        """The mask of one batch, (1, 1, rows, columns)."""
        shape = tuple(mask.shape)
        whole = mask.bool()
        if len(shape) == 2 and shape == (batch, self._columns()) and self._rows() == 1:
            whole = whole[at].unsqueeze(0)
        elif len(shape) == 3:
            whole = whole[min(at, shape[0] - 1)]
        elif len(shape) == 4 and shape[1] == 1:
            whole = whole[min(at, shape[0] - 1), 0]
        elif len(shape) != 2:
            raise RuntimeError(
                f"{self.operator}: atten_mask is {shape}; give (Sq, Skv), (1, Sq, Skv) or (B or 1, 1, Sq, Skv)"
            )
        if whole.shape[0] < rows or whole.shape[1] < columns:
            raise RuntimeError(f"{self.operator}: atten_mask is {shape}, and Sq = {rows}, Skv = {columns}: expand it")
        return whole[None, None, :rows, :columns]

    def _rows(self) -> int:
        return int(self.query.shape[{"BSH": 1, "BSND": 1, "BNSD": 2, "TND": 0}[self.dense]])

    def _columns(self) -> int:
        return int(self.key.shape[{"BSH": 1, "BSND": 1, "BNSD": 2, "TND": 0}[self.dense]])


def _unpacked(tensor: torch.Tensor, sizes: list[int]) -> list[torch.Tensor]:
    """The sequences of a TND tensor, each (1, N, S, D)."""
    return [part.transpose(0, 1).unsqueeze(0) for part in tensor[: sum(sizes)].split(sizes)]


def _each(operator: str, given: Sequence[int] | None, batch: int, most: int) -> list[int]:
    """The valid length of each batch: all of it, one length for all, or one each."""
    if not given:
        return [most] * batch
    found = [int(length) for length in given]
    if len(found) == 1:
        found = found * batch
    if len(found) < batch:
        raise RuntimeError(f"{operator}: {len(found)} lengths are given for {batch} batches; give 1 or {batch}")
    if any(not 0 <= length <= most for length in found[:batch]):
        raise RuntimeError(f"{operator}: lengths {found[:batch]} go beyond the {most} that there are")
    return found[:batch]
