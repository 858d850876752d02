"""Rotary position embedding: x * cos + rotated(x) * sin, in float32, cast once at the end."""

from __future__ import annotations

import torch

from ..registry import kernel
from ..settings import caution, limit
from .limits import contiguous, dims, dtype_in, not_empty, same_dtype


@kernel("npu_rotary_mul")
def rotary_mul(
    input: torch.Tensor,
    r1: torch.Tensor,
    r2: torch.Tensor,
    rotary_mode: str = "half",
    rotate: torch.Tensor | None = None,
) -> torch.Tensor:
    """input * r1 + rotated(input) * r2 in input's dtype; r1 is cos and r2 sin, both as wide as input.

    "half" rotates (x1, x2) of the two halves to (-x2, x1), "interleave" does so with each pair; with `rotate`, a
    (D, D) matrix, rotated is input @ rotate, and nothing has a gradient.
    """
    operator = "npu_rotary_mul"
    if rotary_mode not in ("half", "interleave"):
        raise RuntimeError(f'{operator}: rotary_mode is {rotary_mode!r}; give "half" or "interleave"')
    dtype_in(operator, "input", input)
    dims(operator, "input", input, 3, 4)
    if r1.shape != r2.shape:
        raise RuntimeError(f"{operator}: r1 is {tuple(r1.shape)} and r2 {tuple(r2.shape)}; the shapes must be equal")
    width = input.shape[-1]
    if r1.shape[-1] != width:
        raise RuntimeError(
            f"{operator}: the last dim of r1 and r2 is {r1.shape[-1]} and that of input {width}; they must be equal "
            "(repeat cos and sin to the full width)"
        )
    if width % 2:
        raise RuntimeError(f"{operator}: the last dim of input has {width} elements, and it must be even")
    _rotary_limits(operator, input, r1, r2, rotary_mode)
    wide = input.float()
    if rotate is not None:
        with torch.no_grad():
            return _applied(wide, wide @ rotate.float(), r1, r2).to(input.dtype)
    return _applied(wide, _rotated(wide, rotary_mode), r1, r2).to(input.dtype)


@kernel("npu_interleave_rope")
def interleave_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The rotary embedding of DeepSeek: pairs are first put into halves, then rotated as halves are.

    x is (B, N, S, 64); cos and sin are (B, 1, S, 64) or (B, 1, 1, 64). float16 or bfloat16, contiguous.
    """
    operator = "npu_interleave_rope"
    dims(operator, "x", x, 4, 4)
    dtype_in(operator, "x", x, (torch.float16, torch.bfloat16))
    for name, tensor in (("x", x), ("cos", cos), ("sin", sin)):
        contiguous(operator, name, tensor)
        if name != "x":
            same_dtype(operator, "x", x, name, tensor)
            if tensor.dim() == 4 and tensor.shape[1] != 1:
                raise RuntimeError(f"{operator}: dim 1 of {name} is {tensor.shape[1]}; it must be 1")
    if x.shape[-1] != 64:
        limit(
            operator,
            f"the last dim of x is {x.shape[-1]}, and only 64 is taken; use npu_rotary_mul",
            f"x 最后一维为 {x.shape[-1]}，仅支持 64；请改用 npu_rotary_mul",
        )
    halves = x.float().unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    return _applied(halves, _rotated(halves, "half"), cos, sin).to(x.dtype)


_HEADS_AT = {"BSND": 2, "SBND": 2, "BNSD": 1, "TND": 1}


@kernel("npu_apply_rotary_pos_emb")
def apply_rotary_pos_emb(
    query: torch.Tensor,
    key: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    layout: str = "BSND",
    rotary_mode: str = "half",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotates query and key **in place**, and returns them. All of one dtype; the last dim is 64 or 128.

    cos and sin have one head: (B, S, 1, D) for BSND, (T, 1, D) for TND.
    """
    operator = "npu_apply_rotary_pos_emb"
    if layout not in ("BSND", "TND"):
        limit(
            operator,
            f'layout is {layout!r}; on Atlas A2 and A3 "BSND" and "TND" are taken: transpose first',
            f"layout 为 {layout!r}；Atlas A2/A3 仅支持 BSND 与 TND，请先 transpose",
        )
    if layout not in _HEADS_AT:
        raise RuntimeError(f"{operator}: layout is {layout!r}; give BSND, SBND, BNSD or TND")
    if rotary_mode not in ("half", "interleave"):
        raise RuntimeError(f'{operator}: rotary_mode is {rotary_mode!r}; give "half"')
    if rotary_mode != "half":
        limit(
            operator,
            f"rotary_mode is {rotary_mode!r}; on Atlas A2 and A3 only half is taken",
            f"rotary_mode 为 {rotary_mode!r}；Atlas A2/A3 仅支持 half",
        )
    for name, tensor in (("query", query), ("key", key), ("cos", cos), ("sin", sin)):
        dtype_in(operator, name, tensor)
        not_empty(operator, name, tensor)
        same_dtype(operator, "query", query, name, tensor)
        if tensor.dim() != len(layout):
            raise RuntimeError(f"{operator}: {name} has {tensor.dim()} dims, and layout {layout} has {len(layout)}")
    heads = _HEADS_AT[layout]
    for name, tensor in (("cos", cos), ("sin", sin)):
        if tensor.shape[heads] != 1:
            raise RuntimeError(f"{operator}: dim {heads} of {name} is {tensor.shape[heads]}; it must be 1")
    if query.shape[-1] not in (64, 128):
        limit(
            operator,
            f"the last dim of query is {query.shape[-1]}, and only 64 and 128 are taken; use npu_rotary_mul",
            f"query 最后一维为 {query.shape[-1]}，仅支持 64 与 128；请改用 npu_rotary_mul",
        )
    width = cos.shape[-1]
    for tensor in (query, key):
        part = tensor[..., :width]
        wide = part.float()
        part.copy_(_applied(wide, _rotated(wide, rotary_mode), cos, sin).to(tensor.dtype))
    return query.clone(), key.clone()


def _rotated(wide: torch.Tensor, mode: str) -> torch.Tensor:
    if mode == "half":
        first, second = wide.chunk(2, -1)
        return torch.cat((-second, first), -1)
    return torch.stack((-wide[..., 1::2], wide[..., ::2]), -1).flatten(-2)


def _applied(wide: torch.Tensor, rotated: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return wide * cos.float() + rotated * sin.float()


def _rotary_limits(operator: str, input: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, mode: str) -> None:
    width = input.shape[-1]
    if width >= 896:
        limit(
            operator,
            f"the last dim of input is {width}, and less than 896 is taken; rotate in parts",
            f"input 最后一维为 {width}，须小于 896；请分段旋转",
        )
    if r1.dim() != input.dim():
        raise RuntimeError(f"{operator}: r1 has {r1.dim()} dims and input {input.dim()}; unsqueeze cos and sin")
    broadcast = [at for at in range(input.dim() - 1) if r1.shape[at] != input.shape[at]]
    wrong = [at for at in broadcast if r1.shape[at] != 1]
    if wrong:
        raise RuntimeError(
            f"{operator}: r1 is {tuple(r1.shape)} and input {tuple(input.shape)}; dim {wrong[0]} must be 1 or equal"
        )
    if input.dim() == 4:
        # Which dims are B, N and S is not said by the call. cos is broadcast over B and N, so S is the one that it has;
        # where all are 1 or equal any reading is allowed.
        kept = [at for at in range(3) if r1.shape[at] != 1]
        batch_heads = [input.shape[at] for at in range(3) if at not in kept] or [1]
        if mode == "interleave" and len(kept) > 1 and tuple(r1.shape) != tuple(input.shape):
            limit(
                operator,
                f"cos of shape {tuple(r1.shape)} differs between batches; interleave takes one cos for all of them",
                f"cos 形状 {tuple(r1.shape)} 随 batch 变化；interleave 模式要求所有 batch 共用一份 cos",
            )
        product = 1
        for size in batch_heads:
            product *= size
        if mode == "interleave" and len(kept) <= 1 and product >= 1000:
            limit(
                operator,
                f"B * N is {product}, and interleave takes less than 1000; use the original code",
                f"B * N 为 {product}，interleave 模式须小于 1000；请使用原实现",
            )
        if any(size >= 1000 for size in batch_heads):
            limit(
                operator,
                f"B or N is {max(batch_heads)}, and less than 1000 is taken; use the original code",
                f"B 或 N 为 {max(batch_heads)}，须小于 1000；请使用原实现",
            )
        if mode == "half" and len(kept) <= 1 and product > 1024 and (r1.requires_grad or r2.requires_grad):
            limit(
                operator,
                f"B * N is {product}, and at most 1024 is taken where cos or sin need a gradient; detach them",
                f"cos/sin 需要梯度时 B * N 至多 1024，现为 {product}；请对其 detach",
            )
    in_bnsd = input.dim() == 4 and r1.shape[2] != 1 and tuple(r1.shape[:2]) == (1, 1)
    if in_bnsd and mode == "half" and width * input.element_size() % 32:
        caution(
            operator,
            f"in BNSD a last dim of {width} is not aligned to 32 bytes; it may be slow, or refused, on an NPU",
            f"BNSD 布局下最后一维 {width} 未按 32 字节对齐；在 NPU 上可能变慢或被拒绝",
        )
    if not r1.is_meta and r1.numel() and bool((r1.detach().abs() > 1.001).any()):
        caution(
            operator,
            "cos holds values beyond [-1, 1] (scaled, as YaRN does?), outside of what is documented",
            "cos 含有超出 [-1, 1] 的值（如 YaRN 的缩放），超出文档规定的范围",
        )
