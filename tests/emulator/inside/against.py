"""How a result is compared with a formula in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

HALF_STEP = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-18}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + 31 * len(shape))
    return (torch.randn(shape, generator=generator) * scale).to(dtype)


def close(got: torch.Tensor, wanted: torch.Tensor, *, loose: float = 1.0) -> None:
    """`got` is `wanted` (float64) rounded once: no further from it than half a step of its dtype, and 2 % of that."""
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    step = HALF_STEP[got.dtype] * loose
    torch.testing.assert_close(got.double(), wanted.double(), rtol=step * 1.02, atol=step * 0.02 + 1e-6 * loose)


def gradients(
    call: Callable[..., Any], formula: Callable[..., Any], inputs: Sequence[torch.Tensor], loose: float = 1.0
) -> None:
    """The gradients of `call` equal those of `formula` in float64, for a weighting of the outputs."""
    ours = [one.detach().clone().requires_grad_() for one in inputs]
    theirs = [one.detach().double().requires_grad_() for one in inputs]
    got, wanted = call(*ours), formula(*theirs)
    weights = torch.linspace(-1.0, 1.0, got.numel(), dtype=torch.float64).reshape(got.shape)
    # What comes back into the call is rounded to its dtype; the formula gets the same rounded weights.
    weights = weights.to(got.dtype)
    got.backward(weights)
    wanted.backward(weights.double())
    for our, their in zip(ours, theirs, strict=True):
        assert our.grad is not None and our.grad.dtype == our.dtype
        close(our.grad, their.grad, loose=loose)


def gradcheck(call: Callable[..., Any], *inputs: torch.Tensor) -> None:
    """torch's own check by differences, as far as float32 allows."""
    given = [one.detach().clone().requires_grad_() for one in inputs]
    assert torch.autograd.gradcheck(call, given, eps=1e-2, atol=2e-2, rtol=2e-2, fast_mode=False, nondet_tol=0.0)
