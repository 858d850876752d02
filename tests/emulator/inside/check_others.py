"""Masked softmax, group norms, layouts and the fused optimizers."""

from __future__ import annotations

import math

import pytest
import torch
import torch_npu
from against import DTYPES, close, drawn, gradients


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3, 32, 64), (2, 1, 32, 64), (1, 1, 32, 64)])
def test_scaled_masked_softmax(dtype, shape):
    x = drawn(2, 3, 32, 64, dtype=dtype)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.5
    mask[..., 0] = False

    def formula(x):
        return torch.softmax((x * 0.5).masked_fill(mask, -math.inf), -1)

    close(torch_npu.npu_scaled_masked_softmax(x, mask, 0.5), formula(x.double()), loose=2.0)
    gradients(lambda given: torch_npu.npu_scaled_masked_softmax(given, mask, 0.5), formula, [x], loose=2.0)


def norm(x, groups, weight, bias, eps=1e-5):
    grouped = x.reshape(x.shape[0], groups, -1)
    centred = grouped - grouped.mean(-1, keepdim=True)
    y = (centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps)).reshape(x.shape)
    each = [1, -1] + [1] * (x.dim() - 2)
    return y * weight.reshape(each) + bias.reshape(each)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (1, 6), (3, 6, 2)])
def test_group_norm_swish(dtype, shape):
    x, weight, bias = drawn(*shape, dtype=dtype), drawn(6, dtype=dtype, seed=1), drawn(6, dtype=dtype, seed=2)

    def formula(x, weight, bias):
        y = norm(x, 3, weight, bias)
        return y / (1 + torch.exp(-2.0 * y))

    y, mean, rstd = torch_npu.npu_group_norm_swish(x, 3, weight, bias, eps=1e-5, swish_scale=2.0)
    close(y, formula(x.double(), weight.double(), bias.double()), loose=4.0)
    close(mean, x.double().reshape(shape[0], 3, -1).mean(-1), loose=4.0)
    assert rstd.shape == (shape[0], 3)
    if len(shape) > 2:
        gradients(
            lambda *given: torch_npu.npu_group_norm_swish(given[0], 3, *given[1:], swish_scale=2.0)[0],
            formula,
            [x, weight, bias],
            loose=16.0,
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_group_norm_silu(dtype):
    x, weight, bias = drawn(2, 6, 4, dtype=dtype), drawn(6, dtype=dtype, seed=1), drawn(6, dtype=dtype, seed=2)
    y, _, _ = torch_npu.npu_group_norm_silu(x, weight, bias, 2, 1e-5)
    wanted = norm(x.double(), 2, weight.double(), bias.double())
    close(y, wanted / (1 + torch.exp(-wanted)), loose=4.0)
    x.requires_grad_()
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        torch_npu.npu_group_norm_silu(x, weight, bias, 2, 1e-5)[0].sum().backward()
    assert x.grad is None


def test_confusion_transpose():
    x = drawn(2, 3, 4, 6)
    first = torch_npu.npu_confusion_transpose(x, (0, 2, 1, 3), (2, 4, 18), True)
    assert torch.equal(first, x.transpose(1, 2).reshape(2, 4, 18))
    second = torch_npu.npu_confusion_transpose(x, (0, 2, 1), (2, 12, 6), False)
    assert torch.equal(second, x.reshape(2, 12, 6).transpose(1, 2)) and second.is_contiguous()


def test_formats_change_nothing():
    x = drawn(2, 3)
    assert torch.equal(torch_npu.npu_format_cast(x, 29), x)
    assert torch_npu.npu_format_cast_(x, 2) is x or torch.equal(torch_npu.npu_format_cast_(x, 2), x)
    assert torch_npu.get_npu_format(x) == 2


TWINS = [
    ("NpuFusedAdamW", torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.3}),
    ("NpuFusedAdam", torch.optim.Adam, {"lr": 0.1}),
    ("NpuFusedSGD", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    ("NpuFusedAdadelta", torch.optim.Adadelta, {}),
    ("NpuFusedRMSprop", torch.optim.RMSprop, {"lr": 0.1}),
]


@pytest.mark.parametrize(("name", "twin", "options"), TWINS)
def test_optimizers_step_as_their_twins(name, twin, options):
    def trained(kind):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        optimizer = kind(model.parameters(), **options)
        for at in range(4):
            optimizer.zero_grad()
            model(drawn(5, 4, seed=at)).square().mean().backward()
            optimizer.step()
        return model.weight.detach()

    assert torch.equal(trained(getattr(torch_npu.optim, name)), trained(twin))


def test_optimizers_refuse_what_the_fused_ones_refuse():
    half = torch.nn.Parameter(drawn(3, dtype=torch.bfloat16))
    half.grad = torch.ones_like(half)
    with pytest.raises(TypeError, match="bfloat16"):
        torch_npu.optim.NpuFusedAdamW([half]).step()
    with pytest.raises(ValueError, match="set_to_none"):
        torch_npu.optim.NpuFusedAdamW([half]).zero_grad(set_to_none=True)
    with pytest.raises(torch_npu.NotEmulated, match="NpuFusedLamb"):
        torch_npu.optim.NpuFusedLamb([half])


@pytest.mark.parametrize("norm_type", [2.0, 1.0, math.inf])
def test_clip_grad_norm_fused(norm_type):
    def model():
        torch.manual_seed(0)
        made = torch.nn.Linear(4, 3)
        (made(drawn(5, 4)).square().sum() * 10).backward()
        return made

    ours, theirs = model(), model()
    total = torch_npu.optim.NpuFusedAdamW(ours.parameters()).clip_grad_norm_fused_(1.0, norm_type)
    wanted = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0, norm_type)
    torch.testing.assert_close(total, wanted)
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
