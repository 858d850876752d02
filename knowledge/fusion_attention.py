"""Attention written out → torch_npu.npu_fusion_attention (training).

Formula and limits: op-plugin documentation of npu_fusion_attention: dropout(softmax(mask(scale * q kᵀ))) v; atten_mask is
bool, True where a position is masked out, with every row spelled out (a query dim of 1 is not broadcast); head counts of
query and key may differ by a whole factor; head dim at most 768, at most 256 heads; inner_precise=2 where a row may be
wholly masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Risk, Verdict
from npufuse_tui.rules import Flag, Mask, MatchView, Refusal, Rule, Scalar, Tensor, information, warning

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    import torch_npu

rule = Rule(
    id="fusion_attention",
    family="attention",
    api="torch_npu.npu_fusion_attention",
    title=Text("attention written out", "手写注意力"),
    training=True,
    inference=False,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.1.0",
    products=("A2", "A3"),
    docs="op-plugin: npu_fusion_attention",
    needs=((rb"softmax",), (rb"matmul", rb"einsum", rb"bmm", rb" @ ")),
    output_dtype="query",
    priority=Priority.HIGH,
    may_be_none=True,
    at_most={"head_dim": 768, "heads": 256},
    outputs=1,
    memory_passes=4,
    defaults={"scale": 1.0, "keep_prob": 1.0},
    helpers={
        "_attention_fits": '''\
def _attention_fits(query, key, value):
    """Whether npu_fusion_attention takes these on the device (limits of the operator's documentation)."""
    return (
        query.dim() == key.dim() == value.dim() == 4
        and query.dtype == key.dtype == value.dtype
        and query.shape[1] % key.shape[1] == 0
        and query.shape[1] <= 256
        and query.shape[-1] == key.shape[-1] <= 768
    )
''',
        "_masked_out": '''\
def _masked_out(mask, query, key):
    """The mask as npu_fusion_attention wants it: bool, True where masked out, every row spelled out."""
    if mask.dtype != torch.bool:
        mask = mask < -9000.0
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mask.expand(-1, -1, query.shape[-2], key.shape[-2])
''',
    },
)


def _repeat_kv(states, repeats):
    batch, heads, length, head_dim = states.shape
    if repeats == 1:
        return states
    states = states[:, :, None, :, :].expand(batch, heads, repeats, length, head_dim)
    return states.reshape(batch, heads * repeats, length, head_dim)


@rule.pattern("additive_mask_grouped")
def grouped_with_a_mask_if_there_is_one(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    given: Flag,
    repeats: Scalar,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = torch.matmul(query, _repeat_kv(key, repeats).transpose(-2, -1)) * scale
    if given:
        weights = weights + mask
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, _repeat_kv(value, repeats))


@rule.pattern("additive_mask")
def with_a_mask_if_there_is_one(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    given: Flag,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = torch.matmul(query, key.transpose(-2, -1)) * scale
    if given:
        weights = weights + mask
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, value)


@rule.pattern("additive_mask_always")
def with_a_mask(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = torch.matmul(query, key.transpose(-2, -1)) * scale + mask
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, value)


@rule.pattern("additive_mask_always_grouped")
def grouped_with_a_mask(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    repeats: Scalar,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = torch.matmul(query, _repeat_kv(key, repeats).transpose(-2, -1)) * scale + mask
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, _repeat_kv(value, repeats))


@rule.pattern("filled_mask")
def with_a_filled_mask(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    low: Flag,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = (torch.matmul(query, key.transpose(-2, -1)) * scale).masked_fill(mask, low)
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, value)


@rule.pattern("filled_mask_if")
def with_a_filled_mask_if_there_is_one(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    given: Flag,
    low: Flag,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = torch.matmul(query, key.transpose(-2, -1)) * scale
    if given:
        weights = weights.masked_fill(mask, low)
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, value)


@rule.pattern("no_mask")
def without_a_mask(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: Scalar = 1.0,
    rate: Scalar = 0.0,
    training: Flag = False,
):
    weights = torch.matmul(query, key.transpose(-2, -1)) * scale
    weights = F.dropout(F.softmax(weights, dim=-1), rate, training)
    return torch.matmul(weights, value)


_CAPPED = Text(
    "the scores are soft-capped (tanh), which the fused operator cannot do",
    "注意力分数经过 tanh 软截断，融合算子不支持",
)


@rule.pattern("soft_capped", verdict=Verdict.REFUSED, reason=_CAPPED)
def soft_capped(query: Tensor, key: Tensor, cap: Scalar, scale: Scalar = 1.0):
    return torch.tanh(torch.matmul(query, key.transpose(-2, -1)) * scale * cap)


@rule.replacement(variants=("additive_mask", "additive_mask_grouped"))
def fused_with_a_mask_if_there_is_one(query, key, value, mask, given, scale, rate, training):
    return torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        query.shape[1],
        "BNSD",
        atten_mask=_masked_out(mask, query, key) if given else None,
        scale=scale,
        keep_prob=1.0 - rate if training else 1.0,
        inner_precise=2,
    )[0]


@rule.replacement(variants=("additive_mask_always", "additive_mask_always_grouped", "filled_mask"))
def fused_with_a_mask(query, key, value, mask, scale, rate, training):
    return torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        query.shape[1],
        "BNSD",
        atten_mask=_masked_out(mask, query, key),
        scale=scale,
        keep_prob=1.0 - rate if training else 1.0,
        inner_precise=2,
    )[0]


@rule.replacement(variants=("filled_mask_if",))
def fused_with_a_filled_mask_if_there_is_one(query, key, value, mask, given, scale, rate, training):
    return torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        query.shape[1],
        "BNSD",
        atten_mask=_masked_out(mask, query, key) if given else None,
        scale=scale,
        keep_prob=1.0 - rate if training else 1.0,
        inner_precise=2,
    )[0]


@rule.replacement(variants=("no_mask",))
def fused_without_a_mask(query, key, value, scale, rate, training):
    return torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        query.shape[1],
        "BNSD",
        scale=scale,
        keep_prob=1.0 - rate if training else 1.0,
    )[0]


@rule.guard()
def fits(query, key, value):
    return _attention_fits(query, key, value)


_A_BIAS = Text(
    "what is added to the scores is called {name}: a bias is no mask, and the documentation contradicts itself on how the"
    " operator scales one",
    "加到分数上的是 {name}：偏置不是掩码，且文档对算子如何缩放偏置自相矛盾",
)


_ADDITIVE = ("additive_mask", "additive_mask_grouped", "additive_mask_always", "additive_mask_always_grouped")


@rule.condition(*_ADDITIVE)
def what_is_added_is_a_mask(match: MatchView) -> Refusal | None:
    """An additive mask can become a bool one; a learned or a position bias cannot."""
    name = match.source("mask")
    if any(word in name.lower() for word in ("bias", "alibi", "pos", "rel")) and "mask" not in name.lower():
        return Refusal(_A_BIAS.format(name=name), Verdict.REFUSED, match.line("mask"))
    return None


@rule.risk("mask_polarity")
def mask_is_turned(match: MatchView) -> Risk | None:
    if match.variant not in _ADDITIVE:
        return None
    return warning(
        "mask_polarity",
        Text(
            "the additive mask becomes a bool one, True where its value is below -9000: a mask that also carries a bias"
            " (ALiBi, relative positions) would lose it",
            "加性掩码会转为布尔掩码（小于 -9000 视为屏蔽）：若掩码中还带有偏置（ALiBi、相对位置），偏置会丢失",
        ),
        match.line("mask"),
    )


@rule.risk("masked_rows")
def rows_that_are_wholly_masked(match: MatchView) -> Risk | None:
    if match.variant not in _ADDITIVE:
        return None
    return information(
        "masked_rows",
        Text(
            "a row in which everything is masked (left padding makes such rows) comes out as zeros, where finfo.min gave it"
            " the mean of all values: positions that a loss ignores",
            "整行被屏蔽时（左填充会产生这种行）结果为零，而 finfo.min 会得到所有值的平均：这些位置通常不计入损失",
        ),
        match.line("mask"),
    )


@rule.risk("sdpa_alternative")
def sdpa_would_do(match: MatchView) -> Risk | None:
    if match.variant == "soft_capped":
        return None
    return information(
        "sdpa_alternative",
        Text(
            "F.scaled_dot_product_attention with a bool mask (or none) reaches the same fused kernel through torch_npu and"
            " runs on a CPU too",
            "使用布尔掩码（或无掩码）的 F.scaled_dot_product_attention 会由 torch_npu 转到同一融合核，且可在 CPU 上运行",
        ),
        match.line("query"),
    )


@rule.example(shapes=[(2, 4, 8, 32), (1, 2, 5, 16)], variants=("additive_mask", "additive_mask_always"))
def with_additive_mask(shape, dtype, parameter_dtype):
    masked = _future(shape)
    mask = torch.zeros(masked.shape).masked_fill(masked, -3e4).to(dtype)
    return {**_states(shape, dtype), "mask": mask, "given": True}


@rule.example(
    shapes=[(2, 4, 8, 32, 2), (1, 6, 5, 16, 1), (2, 4, 8, 16, 4)],
    variants=("additive_mask_grouped", "additive_mask_always_grouped"),
)
def with_groups_of_heads(shape, dtype, parameter_dtype):
    batch, heads, _, head_dim, groups = shape
    states = with_additive_mask(shape[:4], dtype, parameter_dtype)
    for name in ("key", "value"):
        states[name] = torch.randn(batch, groups, states[name].shape[2], head_dim).to(dtype)
    return {**states, "repeats": heads // groups}


@rule.example(shapes=[(2, 4, 8, 32), (1, 2, 5, 16)], variants=("filled_mask", "filled_mask_if"))
def with_filled_mask(shape, dtype, parameter_dtype):
    masked = _future(shape)
    return {**_states(shape, dtype), "mask": masked, "given": True, "low": float("-inf")}


@rule.example(shapes=[(2, 4, 8, 32), (1, 2, 5, 16)])
def plain(shape, dtype, parameter_dtype):
    return _states(shape, dtype)


def _future(shape):
    """The mask of a query that ends where the keys end: True where the key is later."""
    length, keys = shape[2], _keys(shape)
    return torch.ones(length, keys, dtype=torch.bool).triu(1 + keys - length)[None, None]


def _keys(shape):
    """As many keys as queries, or, for an odd length, some more: a cache that came before."""
    return shape[2] + 3 * (shape[2] % 2)


def _states(shape, dtype):
    query = torch.randn(shape).to(dtype)
    key, value = (torch.randn(*shape[:2], _keys(shape), shape[3]).to(dtype) for _ in range(2))
    return {
        "query": query,
        "key": key,
        "value": value,
        "repeats": 1,
        "scale": shape[-1] ** -0.5,
        "rate": 0.0,
        "training": False,
    }
