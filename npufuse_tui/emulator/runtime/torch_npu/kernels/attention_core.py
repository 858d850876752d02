"""Attention in float32 over (B, N, S, D), and the layouts in which it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from ..settings import limit

EVERYTHING = 2147483647  # pre_tockens and next_tockens that hide nothing
COMPRESSED = 2048  # the side of the mask that stands for any causal one


@dataclass(frozen=True)
class Scores:
    """What becomes of q @ k before and after softmax.

    `hidden` is bool and broadcasts to (B, N, Sq, Skv), True where masked. `bias` is added before (`bias_scaled`) or
    after the scale. `zero_hidden_rows`: a wholly masked row gives zeros, else the mean of all values, as on the NPU.
    """

    scale: float
    hidden: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    bias_scaled: bool = True
    sink: torch.Tensor | None = None
    keep_prob: float = 1.0
    generator: torch.Generator | None = None
    zero_hidden_rows: bool = True


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scores: Scores
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(out (B, N, Sq, Dv), the rows' maxima (B, N, Sq), the sums of exponentials (B, N, Sq)), all float32.

    key and value may have fewer heads than query: each serves as many in a row.
    """
    batch, heads, rows = query.shape[:3]
    groups = key.shape[1]
    wide = query.float().reshape(batch, groups, heads // groups, rows, query.shape[3])
    logits = wide @ key.float().unsqueeze(2).transpose(-1, -2)
    logits = logits.reshape(batch, heads, rows, key.shape[2])
    if scores.bias is not None and scores.bias_scaled:
        logits = (logits + scores.bias.float()) * scores.scale
    else:
        logits = logits * scores.scale
        if scores.bias is not None:
            logits = logits + scores.bias.float()
    hidden_rows = None
    if scores.hidden is not None:
        logits = logits.masked_fill(scores.hidden, torch.finfo(torch.float32).min)
        hidden_rows = scores.hidden.all(-1, keepdim=True)
    if scores.sink is not None:
        sink = scores.sink.float().reshape(1, heads, 1, 1).expand(batch, heads, rows, 1)
        logits = torch.cat((logits, sink), -1)
    maxima = logits.detach().amax(-1, keepdim=True) if logits.shape[-1] else logits.new_zeros(batch, heads, rows, 1)
    exponentials = torch.exp(logits - maxima)
    sums = exponentials.sum(-1, keepdim=True)
    weights = exponentials / sums
    if scores.sink is not None:
        weights = weights[..., :-1]
    if hidden_rows is not None and scores.zero_hidden_rows:
        weights = weights.masked_fill(hidden_rows, 0.0)
    if scores.keep_prob < 1.0:
        kept = torch.rand(weights.shape, generator=scores.generator) < scores.keep_prob
        weights = weights * kept / scores.keep_prob
    grouped = weights.reshape(batch, groups, heads // groups, rows, key.shape[2])
    out = grouped @ value.float().unsqueeze(2)
    return out.reshape(batch, heads, rows, value.shape[3]), maxima.squeeze(-1), sums.squeeze(-1).detach()


def to_bnsd(tensor: torch.Tensor, layout: str, heads: int) -> torch.Tensor:
    """A dense tensor as (B, N, S, D). BSH and SBH have their heads in the last dim."""
    if layout == "BNSD":
        return tensor
    if layout == "BSND":
        return tensor.transpose(1, 2)
    if layout == "BSH":
        return tensor.unflatten(-1, (heads, -1)).transpose(1, 2)
    return tensor.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)  # SBH


def from_bnsd(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The inverse of `to_bnsd`, contiguous."""
    if layout == "BSND":
        tensor = tensor.transpose(1, 2)
    elif layout == "BSH":
        tensor = tensor.transpose(1, 2).flatten(2)
    elif layout == "SBH":
        tensor = tensor.permute(2, 0, 1, 3).flatten(2)
    return tensor.contiguous()


def lengths(operator: str, name: str, totals: Sequence[int] | None, tokens: int) -> list[int]:
    """The lengths of the sequences that are packed in TND, from their running totals; zeros at the end are no batch."""
    if not totals:
        raise RuntimeError(f"{operator}: {name} must be given with layout TND: the running totals of the lengths")
    values = [int(total) for total in totals]
    found, before = [], 0
    for at, total in enumerate(values):
        if total == 0 and before and not any(values[at:]):
            found.append(0)
            continue
        if total < before:
            raise RuntimeError(f"{operator}: {name} is {values}; running totals never fall")
        found.append(total - before)
        before = total
    if before > tokens:
        raise RuntimeError(f"{operator}: {name} ends with {before}, and there are {tokens} tokens")
    return found


def band(rows: int, columns: int, before: int, after: int, offset: int, device: torch.device) -> torch.Tensor:
    """(rows, columns), True where hidden: the column is more than `after` ahead of the row or `before` behind it.

    `offset` is added to the row: 0 counts from the left upper corner, columns - rows from the right lower one.
    """
    at = torch.arange(columns, device=device) - torch.arange(rows, device=device).unsqueeze(1) - offset
    return (at > after) | (at < -before)


def causal(rows: int, columns: int, offset: int, device: torch.device) -> torch.Tensor:
    return band(rows, columns, EVERYTHING, 0, offset, device)


@lru_cache(maxsize=2)
def _triangle(rows: int) -> torch.Tensor:
    return torch.ones(rows, COMPRESSED, dtype=torch.bool, device="cpu").triu(1)


def check_compressed(operator: str, mask: torch.Tensor, sparse_mode: int) -> None:
    """A sparse mode that makes its own mask takes the 2048×2048 upper triangle in the mask's place."""
    if mask.numel() != COMPRESSED * COMPRESSED or tuple(mask.shape[-2:]) != (COMPRESSED, COMPRESSED):
        limit(
            operator,
            f"atten_mask is {tuple(mask.shape)} with sparse_mode={sparse_mode}; it must be the (2048, 2048) upper "
            "triangle, torch.triu(torch.ones(2048, 2048), 1).bool()",
            f"sparse_mode={sparse_mode} 时 atten_mask 形状为 {tuple(mask.shape)}；须为 (2048, 2048) 上三角矩阵 "
            "torch.triu(torch.ones(2048, 2048), 1).bool()",
        )
        return
    if not mask.is_meta and not torch.equal(mask.reshape(COMPRESSED, COMPRESSED).bool(), _triangle(COMPRESSED)):
        limit(
            operator,
            f"atten_mask with sparse_mode={sparse_mode} is not the upper triangle torch.triu(torch.ones(2048, 2048), "
            "1).bool(), True where masked",
            f"sparse_mode={sparse_mode} 时 atten_mask 不是上三角矩阵 torch.triu(torch.ones(2048, 2048), 1).bool()"
            "（True 表示屏蔽）",
        )


def hidden_row_limit(operator: str, hidden: torch.Tensor) -> None:
    """A wholly masked row that the caller has not provided for."""
    if not hidden.is_meta and bool(hidden.all(-1).any()):
        limit(
            operator,
            "a row of atten_mask is wholly masked, and comes out wrong on the NPU with inner_precise=0: pass "
            "inner_precise=2, or unmask one element",
            "atten_mask 有整行被屏蔽，inner_precise=0 时 NPU 结果错误：请传入 inner_precise=2，或保留至少一个元素",
        )
