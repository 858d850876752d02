"""Attention for training and inference against loops over rows in float64."""

from __future__ import annotations

import math

import numpy
import pytest
import torch
import torch_npu
from against import DTYPES, close, drawn, gradients

TRIANGLE = torch.ones(2048, 2048).triu(1).bool()


def rows_of_attention(query, key, value, scale, hidden=None, bias=None, sink=None, zeros=True):
    """(B, N, S, D) numpy float64, one row of scores at a time. key and value are repeated for their groups."""
    batch, heads, rows, _ = query.shape
    ratio = heads // key.shape[1]
    out = numpy.zeros((batch, heads, rows, value.shape[-1]))
    for b in range(batch):
        for n in range(heads):
            for i in range(rows):
                scores = scale * (key[b, n // ratio] @ query[b, n, i])
                if bias is not None:
                    scores = scores + bias[b, n, i]
                if hidden is not None:
                    seen = ~hidden[b, n, i]
                    if not seen.any():
                        continue
                    scores = numpy.where(seen, scores, -numpy.inf)
                largest = scores.max() if sink is None else max(scores.max(), sink[n])
                weights = numpy.exp(scores - largest)
                total = weights.sum() + (0 if sink is None else math.exp(sink[n] - largest))
                out[b, n, i] = (weights / total) @ value[b, n // ratio]
    return torch.from_numpy(out)


def double(*tensors):
    return [tensor.double().numpy() for tensor in tensors]


def to_layout(tensor, layout):
    return {
        "BNSD": lambda one: one,
        "BSND": lambda one: one.transpose(1, 2),
        "BSH": lambda one: one.transpose(1, 2).flatten(2),
        "SBH": lambda one: one.permute(2, 0, 1, 3).flatten(2),
    }[layout](tensor).contiguous()


def made(dtype=torch.float32, batch=2, heads=4, groups=2, rows=5, columns=7, width=16, value_width=None):
    query = drawn(batch, heads, rows, width, dtype=dtype)
    key = drawn(batch, groups, columns, width, dtype=dtype, seed=1)
    value = drawn(batch, groups, columns, value_width or width, dtype=dtype, seed=2)
    return query, key, value


def causal(rows, columns, corner):
    """True where hidden; `corner`: from the right lower corner, else from the left upper one."""
    shift = columns - rows if corner else 0
    return numpy.array([[j > i + shift for j in range(columns)] for i in range(rows)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (5, 7), (1, 7), (1, 1)])
@pytest.mark.parametrize("mode", [None, 2, 3])
def test_fusion_attention(dtype, layout, rows, columns, mode):
    query, key, value = made(dtype, rows=rows, columns=columns)
    kwargs = {} if mode is None else {"atten_mask": TRIANGLE, "sparse_mode": mode}
    given = [to_layout(one, layout) for one in (query, key, value)]
    out = torch_npu.npu_fusion_attention(*given, 4, layout, scale=0.25, **kwargs)
    hidden = None
    if mode is not None:
        hidden = numpy.broadcast_to(causal(rows, columns, mode == 3), (2, 4, rows, columns))
    wanted = rows_of_attention(*double(query, key, value), 0.25, hidden)
    close(out[0], to_layout(wanted, layout), loose=2.0)
    assert out[1].shape == out[2].shape == (2, 4, rows, 8)
    assert out[3].numel() == 0 and out[4:] == (0, 0, 0)


def test_softmax_max_and_sum():
    query, key, value = made()
    out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25)
    scores = 0.25 * query.double() @ key.double().repeat_interleave(2, 1).transpose(-1, -2)
    largest = scores.amax(-1)
    close(out[1], largest.unsqueeze(-1).expand(2, 4, 5, 8), loose=4.0)
    total = torch.exp(scores - largest.unsqueeze(-1)).sum(-1)
    close(out[2], total.unsqueeze(-1).expand(2, 4, 5, 8), loose=4.0)


@pytest.mark.parametrize("shape", [(5, 7), (1, 1, 5, 7), (2, 1, 5, 7), (2, 4, 5, 7)])
@pytest.mark.parametrize("kind", [torch.bool, torch.uint8])
def test_masks_hide_where_true(shape, kind):
    query, key, value = made()
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.4
    mask[..., 0] = False
    out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", atten_mask=mask.to(kind), scale=0.25)[0]
    hidden = numpy.broadcast_to(mask.numpy(), (2, 4, 5, 7))
    close(out, rows_of_attention(*double(query, key, value), 0.25, hidden), loose=2.0)


def test_without_a_mask_nothing_is_hidden_whatever_the_mode():
    query, key, value = made()
    plain = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25)[0]
    for mode in (1, 2, 3, 4):
        with pytest.warns(UserWarning, match="does nothing without atten_mask"):
            moded = torch_npu.npu_fusion_attention(
                query, key, value, 4, "BNSD", scale=0.25, sparse_mode=mode, next_tockens=0
            )[0]
        assert torch.equal(moded, plain)


@pytest.mark.parametrize(("before", "after"), [(2, 0), (1, 1), (0, 3), (4, -1)])
@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (7, 5)])
def test_band(before, after, rows, columns):
    query, key, value = made(rows=rows, columns=columns)
    out = torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        4,
        "BNSD",
        atten_mask=TRIANGLE,
        scale=0.25,
        sparse_mode=4,
        pre_tockens=before,
        next_tockens=after,
    )[0]
    shift = columns - rows
    hidden = numpy.array([[not -before <= j - (i + shift) <= after for j in range(columns)] for i in range(rows)])
    hidden = numpy.broadcast_to(hidden, (2, 4, rows, columns))
    close(out, rows_of_attention(*double(query, key, value), 0.25, hidden), loose=2.0)


def test_default_mode_with_tockens_hides_both():
    query, key, value = made(rows=5, columns=5)
    mask = torch.ones(5, 5).triu(1).bool()
    out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", atten_mask=mask, scale=0.25, next_tockens=0)[0]
    hidden = numpy.broadcast_to(causal(5, 5, False), (2, 4, 5, 5))
    close(out, rows_of_attention(*double(query, key, value), 0.25, hidden), loose=2.0)
    with pytest.raises(RuntimeError, match="they must agree"):
        none = torch.zeros(5, 5, dtype=torch.bool)
        torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", atten_mask=none, next_tockens=0)


def test_prefix():
    query, key, value = made(rows=4, columns=6)
    mask = torch.cat((TRIANGLE, torch.cat((torch.zeros(1024, 1024), torch.ones(1024, 1024)), 1).bool()))
    out = torch_npu.npu_fusion_attention(
        query, key, value, 4, "BNSD", atten_mask=mask, scale=0.25, sparse_mode=6, prefix=[3, 5]
    )[0]
    hidden = numpy.stack([causal(4, 6, True) & (numpy.arange(6) >= length) for length in (3, 5)])
    hidden = numpy.broadcast_to(hidden[:, None], (2, 4, 4, 6))
    close(out, rows_of_attention(*double(query, key, value), 0.25, hidden), loose=2.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", [None, 2, 3])
def test_packed_sequences(dtype, mode):
    lengths, others = [3, 0, 5, 2], [4, 0, 5, 6]
    query = drawn(sum(lengths), 4, 16, dtype=dtype)
    key, value = (drawn(sum(others), 2, 16, dtype=dtype, seed=at) for at in (1, 2))
    kwargs = {} if mode is None else {"atten_mask": TRIANGLE, "sparse_mode": mode}
    out = torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        4,
        "TND",
        scale=0.25,
        actual_seq_qlen=list(numpy.cumsum(lengths).tolist()),
        actual_seq_kvlen=list(numpy.cumsum(others).tolist()),
        **kwargs,
    )
    wanted, at, other = [], 0, 0
    for rows, columns in zip(lengths, others, strict=True):
        parts = [query[at : at + rows], key[other : other + columns], value[other : other + columns]]
        one = double(*(part.transpose(0, 1).unsqueeze(0) for part in parts))
        hidden = None if mode is None else numpy.broadcast_to(causal(rows, columns, mode == 3), (1, 4, rows, columns))
        wanted.append(rows_of_attention(*one, 0.25, hidden)[0].transpose(0, 1))
        at, other = at + rows, other + columns
    close(out[0], torch.cat(wanted), loose=2.0)
    assert out[1].shape == (sum(lengths), 4, 8)


def test_packed_sequences_that_end_early():
    query, key, value = drawn(8, 2, 16), drawn(8, 2, 16, seed=1), drawn(8, 2, 16, seed=2)
    out = torch_npu.npu_fusion_attention(
        query, key, value, 2, "TND", actual_seq_qlen=[2, 5, 0, 0], actual_seq_kvlen=[2, 5, 0, 0]
    )[0]
    assert out.shape == (8, 2, 16) and not out[5:].any()


def test_wholly_masked_rows():
    query, key, value = made(rows=4, columns=4)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[1] = True
    with pytest.raises(RuntimeError, match="wholly masked"):
        torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", atten_mask=mask, scale=0.25)
    out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", atten_mask=mask, scale=0.25, inner_precise=2)[0]
    assert not out[:, :, 1].any()
    hidden = numpy.broadcast_to(mask.numpy(), (2, 4, 4, 4))
    close(out, rows_of_attention(*double(query, key, value), 0.25, hidden), loose=2.0)
    # Which rows see nothing follows from the mode alone: no setting is needed.
    longer, key, value = made(rows=6, columns=4)
    out = torch_npu.npu_fusion_attention(longer, key, value, 4, "BNSD", atten_mask=TRIANGLE, scale=0.25, sparse_mode=3)[
        0
    ]
    assert not out[:, :, :2].any() and out[:, :, 2:].any()


def test_gradient_of_a_wholly_masked_row_is_zero():
    query, key, value = made(rows=4, columns=4)
    query.requires_grad_()
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[1] = True
    torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", atten_mask=mask, inner_precise=2)[0].sum().backward()
    assert not query.grad[:, :, 1].any() and torch.isfinite(query.grad).all()


def test_pse_is_scaled_as_the_formula_says():
    query, key, value = made()
    pse = drawn(2, 4, 5, 7, seed=9)
    with pytest.warns(UserWarning, match="check on an NPU"):
        out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", pse=pse, scale=0.25)[0]
    wanted = rows_of_attention(*double(query, key, value), 0.25, bias=0.25 * pse.double().numpy())
    close(out, wanted, loose=2.0)
    added = torch_npu.npu_fusion_attention_v2(query, key, value, 4, "BNSD", pse=pse, scale=0.25, pse_type=0)[0]
    close(added, rows_of_attention(*double(query, key, value), 0.25, bias=pse.double().numpy()), loose=2.0)


def test_sink():
    query, key, value = made()
    sink = drawn(4, seed=8)
    out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25, sink=sink)[0]
    close(out, rows_of_attention(*double(query, key, value), 0.25, sink=sink.double().numpy()), loose=2.0)


def test_value_may_be_narrower():
    query, key, value = made(value_width=8)
    out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25)[0]
    close(out, rows_of_attention(*double(query, key, value), 0.25), loose=2.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_backward(dtype):
    def formula(query, key, value):
        scores = query @ key.repeat_interleave(2, 1).transpose(-1, -2) / 4
        scores = scores + torch.full((5, 7), -math.inf, dtype=torch.float64).triu(3)
        return torch.softmax(scores, -1) @ value.repeat_interleave(2, 1)

    def call(*given):
        return torch_npu.npu_fusion_attention(*given, 4, "BNSD", atten_mask=TRIANGLE, scale=0.25, sparse_mode=3)[0]

    gradients(call, formula, made(dtype), loose=4.0)


def test_backward_of_sink_and_pse():
    query, key, value = made()
    sink, pse = drawn(4, seed=8).requires_grad_(), drawn(2, 4, 5, 7, seed=9).requires_grad_()
    torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", pse=pse, sink=sink)[0].sum().backward()
    assert sink.grad.abs().sum() > 0 and pse.grad.abs().sum() > 0


def test_dropout():
    query, key, value = made(rows=64, columns=64)
    whole = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25)[0]
    same = [
        torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25, keep_prob=0.8, seed=5) for _ in "ab"
    ]
    assert torch.equal(same[0][0], same[1][0]) and same[0][4] == 5
    assert same[0][6] == 2 * 4 * 64 * 64
    torch.manual_seed(0)
    first = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25, keep_prob=0.8)
    torch.manual_seed(0)
    again = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25, keep_prob=0.8)
    other = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25, keep_prob=0.8)
    assert torch.equal(first[0], again[0]) and not torch.equal(first[0], other[0])
    mean = sum(
        torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", scale=0.25, keep_prob=0.8, seed=at)[0]
        for at in range(1, 201)
    )
    assert (mean / 200 - whole).abs().max() < 0.25


def test_v3_takes_lengths_as_tensors():
    query, key = drawn(8, 2, 16), drawn(8, 2, 16, seed=1)
    lengths = torch.tensor([3, 8])
    out = torch_npu.npu_fusion_attention_v3(
        query, key, key, 2, "TND", actual_seq_qlen=lengths, actual_seq_kvlen=lengths
    )
    wanted = torch_npu.npu_fusion_attention(query, key, key, 2, "TND", actual_seq_qlen=[3, 8], actual_seq_kvlen=[3, 8])
    assert torch.equal(out[0], wanted[0]) and len(out) == 6 and out[4].shape == (1,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH"])
@pytest.mark.parametrize("masked", [False, True])
def test_fused_infer_attention_score(dtype, layout, masked):
    query, key, value = made(dtype)
    given = [to_layout(one, layout) for one in (query, key, value)]
    kwargs = {"atten_mask": TRIANGLE, "sparse_mode": 3} if masked else {}
    out, lse = torch_npu.npu_fused_infer_attention_score(
        *given, num_heads=4, num_key_value_heads=2, input_layout=layout, scale=0.25, softmax_lse_flag=True, **kwargs
    )
    hidden = numpy.broadcast_to(causal(5, 7, True), (2, 4, 5, 7)) if masked else None
    close(out, to_layout(rows_of_attention(*double(query, key, value), 0.25, hidden), layout), loose=2.0)
    scores = 0.25 * query.double() @ key.double().repeat_interleave(2, 1).transpose(-1, -2)
    if masked:
        scores = scores.masked_fill(torch.from_numpy(hidden.copy()), -math.inf)
    close(lse, torch.logsumexp(scores, -1, keepdim=True), loose=4.0)


def test_infer_attention_of_valid_lengths():
    query, key, value = made(torch.float16)
    out, _ = torch_npu.npu_fused_infer_attention_score(
        query,
        key,
        value,
        num_heads=4,
        num_key_value_heads=2,
        input_layout="BNSD",
        scale=0.25,
        actual_seq_lengths=[5, 3],
        actual_seq_lengths_kv=[7, 4],
    )
    for at, (rows, columns) in enumerate([(5, 7), (3, 4)]):
        parts = double(query[at : at + 1, :, :rows], key[at : at + 1, :, :columns], value[at : at + 1, :, :columns])
        close(out[at : at + 1, :, :rows], rows_of_attention(*parts, 0.25), loose=2.0)
        assert not out[at, :, rows:].any()


def test_decode():
    query, key, value = made(torch.float16, rows=1)
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[1, 5:] = True
    out, _ = torch_npu.npu_fused_infer_attention_score(
        query, key, value, num_heads=4, num_key_value_heads=2, input_layout="BNSD", scale=0.25, atten_mask=mask
    )
    hidden = numpy.broadcast_to(mask.numpy()[:, None, None], (2, 4, 1, 7))
    wanted = rows_of_attention(*double(query, key, value), 0.25, hidden)
    close(out, wanted, loose=2.0)
    older = torch_npu.npu_incre_flash_attention(
        query, key, value, num_heads=4, num_key_value_heads=2, input_layout="BNSD", scale_value=0.25, atten_mask=mask
    )
    close(older, wanted, loose=2.0)


def test_prompt_flash_attention_sees_nothing_ahead_once_it_has_a_mask():
    query, key, value = made(torch.float16, rows=5, columns=5)
    options = {"num_heads": 4, "num_key_value_heads": 2, "input_layout": "BNSD", "scale_value": 0.25}
    open_ = torch_npu.npu_prompt_flash_attention(query, key, value, **options)
    close(open_, rows_of_attention(*double(query, key, value), 0.25), loose=2.0)
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    closed = torch_npu.npu_prompt_flash_attention(query, key, value, atten_mask=nothing, **options)
    hidden = numpy.broadcast_to(causal(5, 5, False), (2, 4, 5, 5))
    close(closed, rows_of_attention(*double(query, key, value), 0.25, hidden), loose=2.0)


def test_infer_attention_packed():
    query, key, value = (
        drawn(5, 4, 16, dtype=torch.float16),
        *(drawn(7, 2, 16, dtype=torch.float16, seed=at) for at in (1, 2)),
    )
    out, lse = torch_npu.npu_fused_infer_attention_score(
        query,
        key,
        value,
        num_heads=4,
        num_key_value_heads=2,
        input_layout="TND",
        scale=0.25,
        actual_seq_lengths=[2, 5],
        actual_seq_lengths_kv=[3, 7],
        softmax_lse_flag=True,
    )
    assert out.shape == (5, 4, 16) and lse.shape == (5, 4, 1)
    parts = [query[2:], key[3:], value[3:]]
    wanted = rows_of_attention(*double(*(part.transpose(0, 1).unsqueeze(0) for part in parts)), 0.25)
    close(out[2:], wanted[0].transpose(0, 1), loose=2.0)


def test_inference_has_no_gradient():
    query, key, value = made(torch.float16)
    query.requires_grad_()
    out, _ = torch_npu.npu_fused_infer_attention_score(
        query, key, value, num_heads=4, num_key_value_heads=2, input_layout="BNSD"
    )
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        out.sum().backward()
    assert query.grad is None
