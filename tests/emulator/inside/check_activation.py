"""Activations against formulas in float64."""

from __future__ import annotations

import math

import pytest
import torch
import torch_npu
from against import DTYPES, close, drawn, gradcheck, gradients


def silu(x):
    return x / (1 + torch.exp(-x))


def erf_gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def tanh_gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def halves(x, dim):
    half = x.shape[dim] // 2
    return x.narrow(dim, 0, half), x.narrow(dim, half, half)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((2, 8), -1), ((4, 3, 5), 0), ((2, 6, 3), 1), ((2,), 0), ((1, 2), -1)])
def test_swiglu(dtype, shape, dim):
    def formula(x):
        first, second = halves(x, dim)
        return silu(first) * second

    x = drawn(*shape, dtype=dtype)
    close(torch_npu.npu_swiglu(x, dim=dim), formula(x.double()))
    gradients(lambda given: torch_npu.npu_swiglu(given, dim), formula, [x])


def test_swiglu_by_differences():
    gradcheck(torch_npu.npu_swiglu, drawn(2, 8))


def test_swiglu_puts_the_first_half_inside_silu():
    x = torch.tensor([[1.0, 2.0]])
    assert torch_npu.npu_swiglu(x).item() == pytest.approx(2.0 / (1 + math.exp(-1.0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("approximate", "gelu"), [(0, erf_gelu), (1, tanh_gelu)])
@pytest.mark.parametrize("left", [False, True])
def test_geglu(dtype, approximate, gelu, left):
    def formula(x):
        first, second = halves(x, -1)
        return gelu(first) * second if left else gelu(second) * first

    x = drawn(3, 8, dtype=dtype)
    y, inside = torch_npu.npu_geglu(x, -1, approximate, left)
    close(y, formula(x.double()), loose=2.0)
    close(inside, gelu(halves(x.double(), -1)[0 if left else 1]), loose=2.0)
    gradients(lambda given: torch_npu.npu_geglu(given, -1, approximate, left)[0], formula, [x], loose=2.0)


def test_geglu_takes_the_right_half_and_tanh_by_default():
    x = drawn(2, 4)
    close(torch_npu.npu_geglu(x)[0], tanh_gelu(x.double()[:, 2:]) * x.double()[:, :2], loose=2.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("approximate", "gelu"), [("none", erf_gelu), ("tanh", tanh_gelu)])
def test_gelu(dtype, approximate, gelu):
    x = drawn(4, 9, dtype=dtype)
    close(torch_npu.npu_gelu(x, approximate=approximate), gelu(x.double()), loose=2.0)
    gradients(lambda given: torch_npu.npu_gelu(given, approximate=approximate), gelu, [x], loose=2.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", ["fast_gelu", "npu_fast_gelu"])
def test_fast_gelu_is_not_gelu(dtype, operator):
    x = drawn(4, 9, dtype=dtype)
    call = getattr(torch_npu, operator)
    close(call(x), x.double() / (1 + torch.exp(-1.702 * x.double())))
    gradients(call, lambda given: given / (1 + torch.exp(-1.702 * given)), [x])
    if dtype == torch.float32:
        assert (call(x) - erf_gelu(x)).abs().max() > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interleaved", [True, False])
def test_clipped_swiglu(dtype, interleaved):
    x = drawn(5, 8, dtype=dtype, scale=6.0)
    gate, up = (x[:, ::2], x[:, 1::2]) if interleaved else (x[:, :4], x[:, 4:])
    gate, up = gate.double().clamp(max=7.0), up.double().clamp(-7.0, 7.0)
    wanted = gate / (1 + torch.exp(-1.702 * gate)) * (up + 1)
    close(torch_npu.npu_clipped_swiglu(x, interleaved=interleaved), wanted)
    grouped = torch_npu.npu_clipped_swiglu(x, group_index=torch.tensor([1, 2]), interleaved=interleaved)
    close(grouped[:3], wanted[:3])


def test_clipped_swiglu_over_another_dim_pairs_what_lies_side_by_side():
    x = drawn(2, 4, 3)
    flat = x.double().reshape(2, 12)
    gate, up = flat[:, ::2].clamp(max=7.0), flat[:, 1::2].clamp(-7.0, 7.0)
    wanted = (gate / (1 + torch.exp(-1.702 * gate)) * (up + 1)).reshape(2, 2, 3)
    close(torch_npu.npu_clipped_swiglu(x, dim=1), wanted)


def test_gelu_mul():
    x = drawn(3, 8)
    close(torch_npu.npu_gelu_mul(x), erf_gelu(x.double()[:, :4]) * x.double()[:, 4:], loose=2.0)


@pytest.mark.parametrize("operator", ["npu_gelu", "fast_gelu", "npu_silu"])
def test_empty(operator):
    assert getattr(torch_npu, operator)(torch.empty(0, 4)).shape == (0, 4)
