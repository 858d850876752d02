"""npu_fusion_attention and its later forms: attention for training.

    out = dropout(softmax(mask(scale * (pse + q kᵀ)))) v

The documentation's formula scales pse, its example does not; the formula is taken, and said so when pse is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..registry import kernel
from ..settings import not_emulated
from .attention_core import EVERYTHING
from .fusion_call import FusionCall


@kernel("npu_fusion_attention")
def fusion_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = EVERYTHING,
    next_tockens: int = EVERYTHING,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: torch.Tensor | None = None,
    dropout_mask: torch.Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int, int, int]:
    """(out, softmax max, softmax sum, an empty tensor, seed, offset, length of the dropout mask).

    max and sum are float32, (B, N, Sq, 8) with eight equal values, (T, N, 8) for TND. `atten_mask` hides where True.
    Without it `sparse_mode` and the tockens do nothing. With a given `seed` dropout is the same each time.
    """
    call = FusionCall("npu_fusion_attention", query, key, value, head_num, input_layout)
    call.sparse(sparse_mode, pre_tockens, next_tockens, inner_precise, prefix)
    call.extras(pse, padding_mask, atten_mask, sink, dropout_mask, softmax_layout)
    call.sequences(actual_seq_qlen, actual_seq_kvlen)
    out, maxima, sums, drawn, length = call.run(scale, keep_prob, seed, offset)
    return out, maxima, sums, query.new_empty(0), drawn, offset, length


@kernel("npu_fusion_attention_v2")
def fusion_attention_v2(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    *,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    query_rope: torch.Tensor | None = None,
    key_rope: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    pse_type: int = 1,
    q_start_idx: Sequence[int] | None = None,
    kv_start_idx: Sequence[int] | None = None,
    softmax_layout: str = "",
    sink: torch.Tensor | None = None,
    dropout_mask: torch.Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int, int, int]:
    """As npu_fusion_attention; `pse_type` 0 adds pse after the scale, 1 before it."""
    operator = "npu_fusion_attention_v2"
    if query_rope is not None or key_rope is not None:
        raise not_emulated(f"{operator} with query_rope")
    if pse_type not in (0, 1):
        raise not_emulated(f"{operator} with pse_type={pse_type}")
    call = FusionCall(operator, query, key, value, head_num, input_layout)
    call.sparse(sparse_mode, pre_tokens, next_tokens, inner_precise, prefix)
    call.extras(pse, padding_mask, atten_mask, sink, dropout_mask, softmax_layout, pse_scaled=pse_type == 1)
    call.sequences(actual_seq_qlen, actual_seq_kvlen)
    out, maxima, sums, drawn, length = call.run(scale, keep_prob, seed, offset)
    return out, maxima, sums, query.new_empty(0), drawn, offset, length


@kernel("npu_fusion_attention_v3")
def fusion_attention_v3(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    head_num: int,
    input_layout: str,
    pse: torch.Tensor | None = None,
    padding_mask: torch.Tensor | None = None,
    atten_mask: torch.Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = EVERYTHING,
    next_tockens: int = EVERYTHING,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: torch.Tensor | None = None,
    actual_seq_kvlen: torch.Tensor | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """As npu_fusion_attention, for graphs: the lengths are tensors, and so are seed and offset, int64 of shape (1,)."""
    call = FusionCall("npu_fusion_attention_v3", query, key, value, head_num, input_layout)
    call.sparse(sparse_mode, pre_tockens, next_tockens, inner_precise, prefix)
    call.extras(pse, padding_mask, atten_mask, sink, None, softmax_layout)
    call.sequences(
        None if actual_seq_qlen is None else actual_seq_qlen.tolist(),
        None if actual_seq_kvlen is None else actual_seq_kvlen.tolist(),
    )
    out, maxima, sums, drawn, _ = call.run(scale, keep_prob, 0, 0)
    place = out.device if out.is_meta else "cpu"
    seed = torch.full((1,), drawn, dtype=torch.int64, device=place)
    return out, maxima, sums, query.new_empty(0), seed, torch.zeros((1,), dtype=torch.int64, device=place)
