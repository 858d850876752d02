"""Attention written out → torch_npu.npu_fused_infer_attention_score (inference).

Formula and limits: op-plugin documentation of npu_fused_infer_attention_score: head dim at most 512 and, in half types, a
multiple of 16; at most 256 heads, at most 64 of them a key head; no backward, so the fused branch is taken only where no
gradient is recorded. The chains are those of fusion_attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.knowledge import fusion_attention as training

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Verdict
from npufuse_tui.rules import Rule, contiguous

if TYPE_CHECKING:
    import torch
    import torch_npu

rule = Rule(
    id="fused_infer_attention",
    family="attention",
    api="torch_npu.npu_fused_infer_attention_score",
    title=Text("attention written out, for inference", "手写注意力（推理）"),
    training=False,
    sibling="fusion_attention",
    dtypes=("float16", "bfloat16"),
    since="2.1.0",
    products=("A2", "A3"),
    docs="op-plugin: npu_fused_infer_attention_score",
    needs=training.rule.needs,
    output_dtype="query",
    priority=Priority.HIGH,
    may_be_none=True,
    at_most={"head_dim": 512, "heads": 256},
    outputs=1,
    memory_passes=4,
    helpers={
        "_infer_attention_fits": '''\
def _infer_attention_fits(query, key, value):
    """Whether npu_fused_infer_attention_score takes these (limits of the operator's documentation)."""
    return (
        query.dim() == key.dim() == 4
        and query.dtype == key.dtype == value.dtype
        and query.dtype in (torch.float16, torch.bfloat16)
        and query.shape[1] % key.shape[1] == 0
        and query.shape[1] <= 256
        and query.shape[-1] == key.shape[-1] <= 512
        and query.shape[-1] % 16 == 0
    )
''',
        "_masked_out": training.rule.helpers["_masked_out"],
    },
)

for _name in ("grouped_with_a_mask_if_there_is_one", "with_a_mask_if_there_is_one"):
    rule.pattern("additive_mask")(getattr(training, _name))
for _name in ("with_a_mask", "grouped_with_a_mask"):
    rule.pattern("additive_mask_always")(getattr(training, _name))
rule.pattern("filled_mask")(training.with_a_filled_mask)
rule.pattern("filled_mask_if")(training.with_a_filled_mask_if_there_is_one)
rule.pattern("no_mask")(training.without_a_mask)
rule.pattern("soft_capped", verdict=Verdict.REFUSED, reason=training._CAPPED)(training.soft_capped)


@rule.replacement(variants=("additive_mask",))
def fused_with_a_mask_if_there_is_one(query, key, value, mask, given, scale):
    return torch_npu.npu_fused_infer_attention_score(
        contiguous(query),
        contiguous(key),
        contiguous(value),
        num_heads=query.shape[1],
        num_key_value_heads=key.shape[1],
        input_layout="BNSD",
        atten_mask=_masked_out(mask, query, key) if given else None,
        scale=scale,
    )[0]


@rule.replacement(variants=("additive_mask_always", "filled_mask"))
def fused_with_a_mask(query, key, value, mask, scale):
    return torch_npu.npu_fused_infer_attention_score(
        contiguous(query),
        contiguous(key),
        contiguous(value),
        num_heads=query.shape[1],
        num_key_value_heads=key.shape[1],
        input_layout="BNSD",
        atten_mask=_masked_out(mask, query, key),
        scale=scale,
    )[0]


@rule.replacement(variants=("filled_mask_if",))
def fused_with_a_filled_mask_if_there_is_one(query, key, value, mask, given, scale):
    return torch_npu.npu_fused_infer_attention_score(
        contiguous(query),
        contiguous(key),
        contiguous(value),
        num_heads=query.shape[1],
        num_key_value_heads=key.shape[1],
        input_layout="BNSD",
        atten_mask=_masked_out(mask, query, key) if given else None,
        scale=scale,
    )[0]


@rule.replacement(variants=("no_mask",))
def fused_without_a_mask(query, key, value, scale):
    return torch_npu.npu_fused_infer_attention_score(
        contiguous(query),
        contiguous(key),
        contiguous(value),
        num_heads=query.shape[1],
        num_key_value_heads=key.shape[1],
        input_layout="BNSD",
        scale=scale,
    )[0]


@rule.guard()
def fits(query, key, value):
    return not torch.is_grad_enabled() and _infer_attention_fits(query, key, value)


rule.condition("additive_mask", "additive_mask_always")(training.what_is_added_is_a_mask)


@rule.example(shapes=[(2, 4, 8, 32), (1, 2, 5, 16)], variants=("filled_mask", "filled_mask_if"))
def with_filled_mask(shape, dtype, parameter_dtype):
    return {**training.with_filled_mask(shape, dtype, parameter_dtype), "repeats": 1}


@rule.example(shapes=[(2, 4, 8, 32), (1, 2, 5, 16)], variants=("additive_mask", "additive_mask_always"))
def with_additive_mask(shape, dtype, parameter_dtype):
    return {**training.with_additive_mask(shape, dtype, parameter_dtype), "repeats": 1}


@rule.example(shapes=[(2, 4, 8, 32), (1, 2, 5, 16)])
def plain(shape, dtype, parameter_dtype):
    return training._states(shape, dtype)
