"""RMSNorm against a formula in float64."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from against import DTYPES, close, drawn, gradcheck, gradients

PAIRS = [(dtype, dtype) for dtype in DTYPES] + [(torch.float16, torch.float32), (torch.bfloat16, torch.float32)]


def formula(x, gamma, epsilon=1e-6):
    over = tuple(range(-gamma.dim(), 0))
    return x / torch.sqrt((x * x).mean(over, keepdim=True) + epsilon) * gamma


@pytest.mark.parametrize(("dtype", "gamma_dtype"), PAIRS)
@pytest.mark.parametrize("shape", [(2, 8), (3, 5, 7), (2, 3, 4, 64), (1, 1), (2, 0)])
def test_rms_norm(dtype, gamma_dtype, shape):
    x, gamma = drawn(*shape, dtype=dtype), drawn(shape[-1], dtype=gamma_dtype, seed=1)
    y, rstd = torch_npu.npu_rms_norm(x, gamma, epsilon=1e-5)
    assert y.dtype == dtype and rstd.dtype == torch.float32
    close(y, formula(x.double(), gamma.double(), 1e-5))
    assert rstd.shape == (*shape[:-1], 1) and not rstd.requires_grad
    if shape[-1]:
        close(rstd, 1 / torch.sqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-5))


def test_gamma_over_two_dims():
    x, gamma = drawn(2, 3, 4, 5), drawn(4, 5, seed=1)
    y, rstd = torch_npu.npu_rms_norm(x, gamma)
    assert rstd.shape == (2, 3, 1, 1)
    close(y, formula(x.double(), gamma.double()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm_of_what_is_not_contiguous(dtype):
    x = drawn(6, 4, 8, dtype=dtype).transpose(0, 1)[:, ::2]
    close(torch_npu.npu_rms_norm(x, drawn(8, dtype=dtype))[0], formula(x.double(), drawn(8, dtype=dtype).double()))


@pytest.mark.parametrize(("dtype", "gamma_dtype"), PAIRS)
def test_rms_norm_backward(dtype, gamma_dtype):
    inputs = [drawn(3, 4, 16, dtype=dtype), drawn(16, dtype=gamma_dtype, seed=1)]
    gradients(lambda *given: torch_npu.npu_rms_norm(*given)[0], formula, inputs, loose=2.0)


def test_rms_norm_by_differences():
    gradcheck(lambda x, gamma: torch_npu.npu_rms_norm(x, gamma)[0], drawn(2, 6), drawn(6, seed=1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_rms_norm(dtype):
    x1, x2, gamma = drawn(2, 3, 8, dtype=dtype), drawn(2, 3, 8, dtype=dtype, seed=5), drawn(8, dtype=dtype, seed=1)
    y, rstd, added = torch_npu.npu_add_rms_norm(x1, x2, gamma)
    wanted = x1.double() + x2.double()
    close(added, wanted)
    close(y, formula(wanted, gamma.double()))
    assert rstd.shape == (2, 3, 1) and (y.dtype, added.dtype, rstd.dtype) == (dtype, dtype, torch.float32)


def test_add_rms_norm_has_no_backward():
    x = drawn(2, 8).requires_grad_()
    y, _, _ = torch_npu.npu_add_rms_norm(x, x, drawn(8))
    with pytest.raises(RuntimeError, match="derivative for npu::npu_add_rms_norm is not implemented"):
        y.sum().backward()
    with torch.no_grad():
        assert not torch_npu.npu_add_rms_norm(x, x, drawn(8))[0].requires_grad


def test_gemma_rms_norm():
    x, gamma = drawn(2, 8), drawn(8, seed=1)
    close(torch_npu.npu_gemma_rms_norm(x, gamma)[0], formula(x.double(), 1 + gamma.double()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_layer_norm(dtype):
    x1, x2, gamma, beta = (drawn(2, 3, 8, dtype=dtype, seed=at) for at in range(4))
    gamma, beta = gamma[0, 0].contiguous(), beta[0, 0].contiguous()

    def layer_norm(x1, x2, gamma, beta):
        added = x1 + x2
        centred = added - added.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5) * gamma + beta

    y, mean, rstd, added = torch_npu.npu_add_layer_norm(x1, x2, gamma, beta, additional_output=True)
    close(y, layer_norm(*(one.double() for one in (x1, x2, gamma, beta))), loose=2.0)
    close(mean, (x1.double() + x2.double()).mean(-1, keepdim=True))
    assert added.dtype == dtype and rstd.dtype == torch.float32
    gradients(lambda *given: torch_npu.npu_add_layer_norm(*given)[0], layer_norm, [x1, x2, gamma, beta], loose=4.0)


def test_autocast_does_not_reach_inside():
    x, gamma = drawn(4, 64, scale=200.0), drawn(64, seed=1)
    with torch.autocast("npu", dtype=torch.float16):
        y = torch_npu.npu_rms_norm(x, gamma)[0]
    assert y.dtype == torch.float32
    close(y, formula(x.double(), gamma.double()))
