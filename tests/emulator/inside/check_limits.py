"""The documented limits: errors when strict, warnings otherwise. And what is wrong either way."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from against import drawn

X, GAMMA = drawn(2, 8), drawn(8)
HALF = torch.float16
QKV = [drawn(1, 4, 8, 16)] * 3
INFER = [drawn(1, 4, 8, 16, dtype=HALF)] * 3
ANGLES = torch.cos(drawn(1, 1, 5, 8))
TOTALS = torch.tensor([1, 2])
TRIANGLE = torch.ones(2048, 2048).triu(1).bool()


def attention(*args, **kwargs):
    return torch_npu.npu_fusion_attention(*QKV, *(args or (4, "BNSD")), **kwargs)


def infer(**kwargs):
    options = {"num_heads": 4, "input_layout": "BNSD", **kwargs}
    return torch_npu.npu_fused_infer_attention_score(*options.pop("qkv", INFER), **options)


def grouped(**kwargs):
    options = {"x": [drawn(2, 8)], "weight": [drawn(2, 8, 4)], "group_list": TOTALS, "split_item": 2, "group_type": 0}
    options |= kwargs
    return torch_npu.npu_grouped_matmul(options.pop("x"), options.pop("weight"), **options)


# Refused when strict; computed, with a warning, when lenient.
LIMITS = {
    "float32 x with half gamma": (lambda: torch_npu.npu_rms_norm(X, GAMMA.half()), "cast gamma"),
    "half x with the other half": (lambda: torch_npu.npu_rms_norm(X.half(), GAMMA.bfloat16()), "cast gamma"),
    "one dim": (lambda: torch_npu.npu_rms_norm(GAMMA, GAMMA), "1 dims"),
    "nine dims": (lambda: torch_npu.npu_rms_norm(drawn(*[1] * 8, 8), GAMMA), "9 dims"),
    "float64": (lambda: torch_npu.npu_rms_norm(X.double(), GAMMA.double()), "float64"),
    "add: gamma of another dtype": (lambda: torch_npu.npu_add_rms_norm(X.half(), X.half(), GAMMA), "must be equal"),
    "add: empty": (lambda: torch_npu.npu_add_rms_norm(drawn(0, 8), drawn(0, 8), GAMMA), "empty"),
    "add: broadcast": (lambda: torch_npu.npu_add_rms_norm(X, X[:1], GAMMA), "broadcast"),
    "swiglu of a slice": (lambda: torch_npu.npu_swiglu(drawn(2, 16)[:, :8]), "contiguous"),
    "swiglu of a transpose": (lambda: torch_npu.npu_swiglu(X.t(), dim=0), "contiguous"),
    "swiglu of nothing": (lambda: torch_npu.npu_swiglu(drawn(0, 8)), "empty"),
    "swiglu of float64": (lambda: torch_npu.npu_swiglu(X.double()), "float64"),
    "clipped swiglu of a slice": (lambda: torch_npu.npu_clipped_swiglu(drawn(2, 16)[:, :8]), "contiguous"),
    "gelu_mul too wide": (lambda: torch_npu.npu_gelu_mul(drawn(1, 1026)), "1024"),
    "rotary too wide": (
        lambda: torch_npu.npu_rotary_mul(drawn(1, 1, 2, 896), *[torch.cos(drawn(1, 1, 2, 896))] * 2),
        "less than 896",
    ),
    "rotary of many heads": (
        lambda: torch_npu.npu_rotary_mul(drawn(1, 1000, 5, 8), ANGLES, ANGLES),
        "less than 1000",
    ),
    "interleave over many batches and heads": (
        lambda: torch_npu.npu_rotary_mul(drawn(40, 25, 5, 8), ANGLES, ANGLES, "interleave"),
        "B \\* N is 1000",
    ),
    "interleave with a cos of each batch": (
        lambda: torch_npu.npu_rotary_mul(drawn(2, 3, 5, 8), *[torch.cos(drawn(2, 1, 5, 8))] * 2, "interleave"),
        "differs between batches",
    ),
    "gradient of cos over many": (
        lambda: torch_npu.npu_rotary_mul(drawn(40, 40, 5, 8), ANGLES.clone().requires_grad_(), ANGLES),
        "at most 1024",
    ),
    "rope in place of another width": (
        lambda: torch_npu.npu_apply_rotary_pos_emb(drawn(1, 2, 3, 32), drawn(1, 2, 1, 32), *[drawn(1, 2, 1, 32)] * 2),
        "64 and 128",
    ),
    "rope in place in another layout": (
        lambda: torch_npu.npu_apply_rotary_pos_emb(
            drawn(1, 3, 2, 64), drawn(1, 1, 2, 64), *[drawn(1, 1, 2, 64)] * 2, "BNSD"
        ),
        "BSND",
    ),
    "interleave_rope of float32": (
        lambda: torch_npu.npu_interleave_rope(drawn(1, 2, 3, 64), *[drawn(1, 1, 3, 64)] * 2),
        "float32",
    ),
    "attention of mixed dtypes": (
        lambda: torch_npu.npu_fusion_attention(QKV[0].half(), QKV[1], QKV[2], 4, "BNSD"),
        "must be equal",
    ),
    "attention with a wide head": (
        lambda: torch_npu.npu_fusion_attention(*[drawn(1, 1, 2, 770)] * 3, 1, "BNSD"),
        "at most 768",
    ),
    "attention with many heads": (
        lambda: torch_npu.npu_fusion_attention(*[drawn(1, 257, 2, 4)] * 3, 257, "BNSD"),
        "at most 256",
    ),
    "attention with a wider value": (
        lambda: torch_npu.npu_fusion_attention(*[drawn(1, 4, 8, 16)] * 2, drawn(1, 4, 8, 32), 4, "BNSD"),
        "more than query",
    ),
    "mask of one row for all": (lambda: attention(atten_mask=torch.zeros(1, 4, 1, 8, dtype=torch.bool)), "broadcast"),
    "mask of other heads": (lambda: attention(atten_mask=torch.zeros(1, 4, 8, 8, dtype=torch.bool)[:, :1, :1]), "SS"),
    "a small mask for a causal mode": (
        lambda: attention(atten_mask=torch.ones(8, 8).triu(1).bool(), sparse_mode=3),
        "2048",
    ),
    "a mask upside down for a causal mode": (lambda: attention(atten_mask=~TRIANGLE, sparse_mode=2), "triangle"),
    "a wholly masked row": (lambda: attention(atten_mask=torch.ones(8, 8, dtype=torch.bool)), "wholly masked"),
    "infer in float32": (lambda: infer(qkv=QKV), "float32"),
    "infer of a transpose": (
        lambda: infer(qkv=[one.transpose(1, 2) for one in INFER], num_heads=8),
        "contiguous",
    ),
    "infer with an odd head": (lambda: infer(qkv=[drawn(1, 4, 8, 24, dtype=HALF)] * 3), "multiple of 16"),
    "softmax of an odd size": (
        lambda: torch_npu.npu_scaled_masked_softmax(drawn(1, 1, 32, 40), torch.zeros(1, 1, 32, 40).bool()),
        "multiple of 32",
    ),
    "softmax of a small size": (
        lambda: torch_npu.npu_scaled_masked_softmax(drawn(1, 1, 16, 32), torch.zeros(1, 1, 16, 32).bool()),
        "multiple of 32",
    ),
    "softmax with a float mask": (
        lambda: torch_npu.npu_scaled_masked_softmax(drawn(1, 1, 32, 32), torch.zeros(1, 1, 32, 32)),
        "bool",
    ),
    "groups that do not reach the end": (lambda: grouped(x=[drawn(3, 8)]), "together"),
    "groups in int32": (lambda: grouped(group_list=TOTALS.int()), "int64"),
    "one count": (lambda: grouped(weight=[drawn(1, 8, 4)], group_list=torch.tensor([2]), group_list_type=1), "count"),
    "groups split into a list": (lambda: grouped(split_item=0), "split_item"),
    "float32 bias of half x": (
        lambda: grouped(x=[drawn(2, 8, dtype=HALF)], weight=[drawn(2, 8, 4, dtype=HALF)], bias=[drawn(2, 4)]),
        "bias is float32",
    ),
    "an activation": (lambda: grouped(act_type=1), "act_type"),
    "groups of mixed dtypes": (lambda: grouped(weight=[drawn(2, 8, 4, dtype=HALF)]), "must be equal"),
    "unpermute by int64": (lambda: torch_npu.npu_moe_token_unpermute(X, torch.tensor([1, 0])), "int32"),
    "too many experts a token": (
        lambda: torch_npu.npu_moe_token_permute(drawn(1, 4), torch.zeros(1, 513, dtype=torch.int64)),
        "at most 512",
    ),
    "group norm with narrower weights": (
        lambda: torch_npu.npu_group_norm_silu(drawn(1, 4, 2), drawn(4, dtype=HALF), drawn(4, dtype=HALF), 2, 1e-5),
        "narrower",
    ),
}

# Wrong, strict or not: there is nothing to compute.
ERRORS = {
    "gamma of another size": (lambda: torch_npu.npu_rms_norm(X, drawn(4)), "last dims"),
    "gamma with more dims": (lambda: torch_npu.npu_rms_norm(X, drawn(1, 2, 8)), "last dims"),
    "an odd dim": (lambda: torch_npu.npu_swiglu(drawn(2, 7)), "even"),
    "an odd dim of geglu": (lambda: torch_npu.npu_geglu(drawn(2, 7)), "divisible by 2"),
    "gelu of another kind": (lambda: torch_npu.npu_gelu(X, approximate="erf"), "approximate"),
    "a mode that is none": (lambda: torch_npu.npu_rotary_mul(drawn(1, 3, 5, 8), ANGLES, ANGLES, "full"), "rotary_mode"),
    "cos of half the width": (
        lambda: torch_npu.npu_rotary_mul(drawn(1, 3, 5, 8), ANGLES[..., :4], ANGLES[..., :4]),
        "full width",
    ),
    "cos with too few dims": (
        lambda: torch_npu.npu_rotary_mul(drawn(1, 3, 5, 8), ANGLES[0, 0], ANGLES[0, 0]),
        "unsqueeze",
    ),
    "cos that does not broadcast": (
        lambda: torch_npu.npu_rotary_mul(drawn(1, 3, 6, 8), ANGLES, ANGLES),
        "must be 1 or equal",
    ),
    "an odd width": (lambda: torch_npu.npu_rotary_mul(drawn(1, 3, 5, 7), *[drawn(1, 1, 5, 7)] * 2), "even"),
    "a layout that is none": (lambda: attention(4, "BDNS"), "input_layout"),
    "the other layout": (lambda: attention(4, "BSND"), "is the layout the right one"),
    "a layout of other dims": (lambda: attention(4, "BSH"), "dims"),
    "other heads": (lambda: attention(2, "BNSD"), "head_num"),
    "no heads": (lambda: attention(0, "BNSD"), "head_num"),
    "heads that do not divide": (
        lambda: torch_npu.npu_fusion_attention(drawn(1, 3, 8, 16), *[drawn(1, 2, 8, 16)] * 2, 3, "BNSD"),
        "multiple",
    ),
    "key of another width": (
        lambda: torch_npu.npu_fusion_attention(QKV[0], drawn(1, 4, 8, 8), QKV[2], 4, "BNSD"),
        "head dim",
    ),
    "a float mask": (lambda: attention(atten_mask=torch.zeros(8, 8)), "additive mask"),
    "a mode of nine": (lambda: attention(sparse_mode=9), "0 to 8"),
    "packed without lengths": (
        lambda: torch_npu.npu_fusion_attention(*[drawn(8, 4, 16)] * 3, 4, "TND"),
        "actual_seq_qlen must be given",
    ),
    "keeping nothing": (lambda: attention(keep_prob=0.0), "keep_prob"),
    "infer in a layout that is none": (lambda: infer(input_layout="XYZ"), "Layout XYZ is not supported!"),
    "K that differs": (lambda: grouped(weight=[drawn(2, 6, 4)]), "transpose it"),
    "groups that are too many": (lambda: grouped(group_list=torch.tensor([1, 1, 2])), "as many"),
    "totals that fall": (lambda: grouped(group_list=torch.tensor([2, 1])), "never fall"),
    "counts below zero": (lambda: grouped(group_list=torch.tensor([3, -1]), group_list_type=1), "at least 0"),
    "no groups": (lambda: grouped(group_list=None), "group_list must be given"),
    "a split of seven": (lambda: grouped(split_item=7), "split_item"),
    "tokens of three dims": (
        lambda: torch_npu.npu_moe_token_permute(drawn(2, 2, 2), torch.tensor([0, 1])),
        "2 dimensional",
    ),
    "float indices": (lambda: torch_npu.npu_moe_token_permute(X, drawn(2)), "int32 or int64"),
    "indices of other tokens": (lambda: torch_npu.npu_moe_token_permute(X, torch.tensor([0, 1, 2])), "as many"),
    "padded mode": (lambda: torch_npu.npu_moe_token_permute(X, torch.tensor([0, 1]), padded_mode=True), "padded_mode"),
    "probs of other tokens": (
        lambda: torch_npu.npu_moe_token_unpermute(X, torch.tensor([1, 0], dtype=torch.int32), probs=drawn(3, 1)),
        "as many",
    ),
    "more experts than there are": (lambda: torch_npu.npu_moe_gating_top_k_softmax(X, k=9), "k is 9"),
    "channels that do not divide": (
        lambda: torch_npu.npu_group_norm_silu(drawn(1, 4, 2), drawn(4), drawn(4), 3, 1e-5),
        "groups",
    ),
    "a dim that is not there": (lambda: torch_npu.npu_swiglu(X, dim=2), "out of range"),
}


@pytest.fixture
def lenient(monkeypatch):
    monkeypatch.setenv("NPUFUSE_EMULATED_STRICT", "0")


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_errors(name):
    call, sentence = LIMITS[name]
    with pytest.raises(RuntimeError, match=sentence):
        call()


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_warnings_when_lenient(name, lenient):
    call, sentence = LIMITS[name]
    with pytest.warns(torch_npu.EmulatorWarning, match=sentence):
        call()


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("strict", ["1", "0"])
def test_errors(name, strict, monkeypatch):
    monkeypatch.setenv("NPUFUSE_EMULATED_STRICT", strict)
    call, sentence = ERRORS[name]
    with pytest.raises((RuntimeError, IndexError), match=sentence):
        call()


def test_the_person_reads_their_own_language(monkeypatch):
    monkeypatch.setenv("NPUFUSE_LANG", "zh")
    with pytest.raises(RuntimeError, match="不连续"):
        torch_npu.npu_swiglu(drawn(2, 16)[:, :8])


def test_scaled_angles_are_taken_with_a_warning():
    with pytest.warns(torch_npu.EmulatorWarning, match="YaRN"):
        torch_npu.npu_rotary_mul(drawn(1, 3, 5, 8), ANGLES * 1.5, ANGLES)


def test_what_is_not_emulated_names_itself():
    with pytest.raises(torch_npu.NotEmulated, match=r"torch_npu\.npu_mish is not emulated"):
        torch_npu.npu_mish(X)
    with pytest.raises(torch_npu.NotEmulated, match=r"npu_fused_infer_attention_score with block_table"):
        infer(block_table=torch.zeros(1, 1, dtype=torch.int32))
    with pytest.raises(torch_npu.NotEmulated, match="scale"):
        grouped(scale=[GAMMA])
    with pytest.raises(torch_npu.NotEmulated, match=r"torch_npu\.profiler\.profile"):
        torch_npu.profiler.profile()
    with pytest.raises(torch_npu.NotEmulated, match=r"torch\.npu\.NPUGraph"):
        torch.npu.NPUGraph()
    with pytest.raises(AttributeError, match="has no 'npu_nothing'"):
        torch_npu.npu_nothing()
    assert not hasattr(torch_npu, "npu_nothing") and not hasattr(torch.npu, "nothing")
