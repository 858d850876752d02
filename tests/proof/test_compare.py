"""When two tensors are the same, and which of two is the better one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from npufuse_tui.language import same
from npufuse_tui.proof.compare import Difference, difference

OUTPUT = same("output")


def compared(old: torch.Tensor, new: torch.Tensor, exact: torch.Tensor | None = None, **more: object) -> Difference:
    options = {"working": str(old.dtype).removeprefix("torch."), "gradient": False, "on_npu": False, **more}
    return difference(old, new, exact, what=OUTPUT, **options)  # type: ignore[arg-type]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rounding_is_no_difference(dtype: torch.dtype) -> None:
    exact = random(64, 64)
    once = exact.to(dtype)
    again = (exact * 3).to(dtype) / 3
    assert compared(once, again, exact).reason is None
    assert compared(once, again, None).reason is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_scale_is_seen_though_the_cosine_is_one(dtype: torch.dtype) -> None:
    exact = random(64, 64)
    found = compared(exact.to(dtype), (exact * 1.1).to(dtype), exact)
    assert found.cosine > 0.999 and found.reason is not None


def test_one_wrong_element_of_many_is_seen() -> None:
    exact = random(256, 256).float()
    wrong = exact.clone()
    wrong[100, 100] += 0.01
    found = compared(exact, wrong, exact.double())
    assert found.cosine > 0.999999 and found.reason is not None


def test_a_better_result_is_not_called_worse() -> None:
    exact = random(64, 64)
    poor = (exact * (1 + 0.05 * random(64, 64, seed=1))).to(torch.bfloat16)
    assert compared(poor, exact.to(torch.bfloat16), exact).reason is None
    assert compared(exact.to(torch.bfloat16), poor, exact).reason is not None


def test_shape_and_dtype() -> None:
    exact = random(4, 6)
    assert "shape 6×4" in (compared(exact, exact.T.contiguous()).reason or same("")).en
    assert "dtype float32" in (compared(exact, exact.float()).reason or same("")).en


def test_what_is_not_finite() -> None:
    old = random(8, 8).float()
    lost = old.clone()
    lost[0, 0] = torch.nan
    assert "no longer finite" in (compared(old, lost).reason or same("")).en
    overflowed = old.clone()
    overflowed[0, 0] = torch.inf
    assert compared(overflowed, old, old.double()).reason is None  # finite where the exact result is: better
    assert "finite that were not" in (compared(overflowed, old).reason or same("")).en
    assert compared(overflowed, overflowed.clone(), None).reason is None


def test_integers_and_booleans_are_compared_exactly() -> None:
    old = torch.arange(10)
    assert compared(old, old.clone()).reason is None
    assert "1 of 10" in (compared(old, old.clone().index_fill(0, torch.tensor([3]), 7)).reason or same("")).en
    assert compared(old > 3, old > 4).reason is not None


def test_nothing_and_zero_and_complex() -> None:
    assert compared(torch.zeros(0, 4), torch.zeros(0, 4)).reason is None
    assert compared(torch.zeros(4), torch.zeros(4)).cosine == 1.0
    assert compared(torch.zeros(4), torch.ones(4)).reason is not None
    turned = torch.polar(torch.ones(4), torch.arange(4.0))
    assert compared(turned, turned.clone()).reason is None
    assert compared(turned, turned.conj()).reason is not None


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]), rows=st.integers(1, 9))
def test_the_unit_of_measure_does_not_matter(seed: int, scale: float, rows: int) -> None:
    """A relative error of one in a hundred is seen in float32 at any magnitude; none is seen where there is none."""
    exact = random(rows, 16, seed=seed) * scale
    old = exact.float()
    assert compared(old, old.clone(), exact).reason is None
    found = compared(old, old * 1.01, exact)
    assert found.reason is not None
