"""Rotary embeddings against complex multiplication in float64."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from against import DTYPES, close, drawn, gradcheck, gradients

LAYOUTS = {  # where B, N and S stand, and the shapes that cos may have
    "BNSD": ((2, 3, 5), [(1, 1, 5), (2, 1, 5), (2, 3, 5)]),
    "BSND": ((2, 5, 3), [(1, 5, 1), (2, 5, 1), (2, 5, 3)]),
    "SBND": ((5, 2, 3), [(5, 1, 1), (5, 2, 1), (5, 2, 3)]),
    "TND": ((10, 3), [(10, 1), (10, 3)]),
}


def angles(shape, width, mode, dtype, repeat=True):
    half = drawn(*shape, width // 2, seed=3)
    whole = torch.cat((half, half), -1) if mode == "half" else half.repeat_interleave(2, -1)
    return half.double(), torch.cos(whole).to(dtype), torch.sin(whole).to(dtype)


def turned(x, cos, sin, mode):
    """Each pair of x as a complex number, times cos + i sin."""
    if mode == "half":
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        cos, sin = cos[..., : cos.shape[-1] // 2], sin[..., : sin.shape[-1] // 2]
    else:
        first, second, cos, sin = x[..., ::2], x[..., 1::2], cos[..., ::2], sin[..., ::2]
    real, imaginary = first * cos - second * sin, first * sin + second * cos
    return torch.cat((real, imaginary), -1) if mode == "half" else torch.stack((real, imaginary), -1).flatten(-2)


CASES = [(layout, shape) for layout, (_, shapes) in LAYOUTS.items() for shape in shapes]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize(("layout", "cos_shape"), CASES)
def test_rotary_mul(dtype, mode, layout, cos_shape):
    dims = LAYOUTS[layout][0]
    if mode == "interleave" and sum(size > 1 for size in cos_shape) > 1:
        pytest.skip("interleave takes one cos for all batches and heads")
    x = drawn(*dims, 16, dtype=dtype)
    _, cos, sin = angles(cos_shape, 16, mode, dtype)
    y = torch_npu.npu_rotary_mul(x, cos, sin, mode)
    assert y.dtype == dtype
    wanted = turned(x.double(), cos.double(), sin.double(), mode)
    torch.testing.assert_close(y.double(), wanted, rtol=2**-7 if dtype == torch.bfloat16 else 2**-10, atol=1e-6)


def test_rotary_mul_takes_wider_angles():
    x = drawn(2, 3, 5, 16, dtype=torch.bfloat16)
    _, cos, sin = angles((1, 1, 5), 16, "half", torch.float32)
    y = torch_npu.npu_rotary_mul(x, cos, sin)
    assert y.dtype == torch.bfloat16
    close(y, turned(x.double(), cos.double(), sin.double(), "half"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_rotary_mul_backward(dtype, mode):
    x = drawn(2, 3, 5, 8, dtype=dtype)
    _, cos, sin = angles((1, 1, 5), 8, mode, dtype)

    def formula(x, cos, sin):
        rotated = (
            torch.cat((-x[..., 4:], x[..., :4]), -1)
            if mode == "half"
            else torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        )
        return x * cos + rotated * sin

    gradients(lambda *given: torch_npu.npu_rotary_mul(*given, mode), formula, [x, cos, sin], loose=2.0)


def test_rotary_mul_by_differences():
    _, cos, sin = angles((1, 1, 2), 4, "half", torch.float32)
    gradcheck(lambda x: torch_npu.npu_rotary_mul(x, cos, sin), drawn(1, 2, 2, 4))


def test_rotate_has_no_gradient_and_the_same_numbers():
    x = drawn(2, 3, 5, 8).requires_grad_()
    _, cos, sin = angles((1, 1, 5), 8, "half", torch.float32)
    matrix = torch.zeros(8, 8)
    matrix[4:, :4] = -torch.eye(4)
    matrix[:4, 4:] = torch.eye(4)
    y = torch_npu.npu_rotary_mul(x, cos, sin, "half", matrix)
    torch.testing.assert_close(y, torch_npu.npu_rotary_mul(x, cos, sin, "half").detach())
    assert not y.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_interleave_rope_puts_pairs_into_halves(dtype):
    x = drawn(2, 3, 5, 64, dtype=dtype)
    _, cos, sin = angles((2, 1, 5), 64, "half", dtype)
    sorted_ = torch.cat((x[..., ::2], x[..., 1::2]), -1).double()
    close(torch_npu.npu_interleave_rope(x, cos, sin), turned(sorted_, cos.double(), sin.double(), "half"), loose=4.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_apply_rotary_pos_emb_works_in_place(dtype):
    query, key = drawn(2, 5, 3, 64, dtype=dtype), drawn(2, 5, 1, 64, dtype=dtype, seed=2)
    before_query, before_key = query.double(), key.double()
    _, cos, sin = angles((2, 5, 1), 64, "half", dtype)
    out_query, out_key = torch_npu.npu_apply_rotary_pos_emb(query, key, cos, sin)
    close(out_query, turned(before_query, cos.double(), sin.double(), "half"), loose=4.0)
    close(out_key, turned(before_key, cos.double(), sin.double(), "half"), loose=4.0)
    assert torch.equal(query, out_query) and torch.equal(key, out_key)


def test_apply_rotary_pos_emb_has_no_backward():
    query = (drawn(2, 5, 3, 64) * 1).requires_grad_()
    _, cos, sin = angles((2, 5, 1), 64, "half", torch.float32)
    out, _ = torch_npu.npu_apply_rotary_pos_emb(query * 1, drawn(2, 5, 1, 64), cos, sin)
    with pytest.raises(RuntimeError, match="is not implemented"):
        out.sum().backward()
