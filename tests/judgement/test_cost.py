"""The time model, and the textbook case that it must give."""

from __future__ import annotations

import math

import pytest
from candidates import RMS_NORM

from npufuse_tui.errors import WrongInput
from npufuse_tui.judgement.cost import WholeModel, chain_model, given_model, item_size, step_costs
from npufuse_tui.judgement.devices import Constant, Device, device, devices
from npufuse_tui.language import Text, same
from npufuse_tui.model import Step

T = same("a test's own constant")
ROUND = Device("t", "A2", T, Constant(1e9, T), Constant(1.0, T), Constant(1e-3, T), Constant(1e-9, T))


def test_the_textbook_case():
    """RMSNorm on (B, S, 1536): 0.84 ms + 5 gaps of 0.1 ms = 1.34 ms against 0.84 ms, 1.6 times."""
    told = given_model(RMS_NORM, passes_after=2, kernel_seconds=0.84e-3, gap_seconds=0.1e-3)
    assert told.before.launches == 8
    assert sum(one.kind == "compute" for one in RMS_NORM) == 6
    assert (told.before.memory_passes, told.after.memory_passes) == (11, 2)
    assert told.before.gap_count == 5
    assert told.before.total == pytest.approx(1.34e-3)
    assert told.after.total == pytest.approx(0.84e-3)
    assert round(told.high, 1) == 1.6
    assert told.low == 1.0


def test_the_textbook_whole_model():
    """57 norms of 6 launches: 342 become 57."""
    whole = WholeModel(instances=57, calls_per_step=1, launches_before=6, launches_after=1)
    assert (whole.total_before, whole.total_after) == (342, 57)


def test_bytes_follow_the_casts():
    # 1000 elements: bf16 has 2000 bytes, float32 4000.
    costs = step_costs(RMS_NORM, (10, 100), "bfloat16", ROUND)
    assert [(one.bytes_read, one.bytes_written) for one in costs] == [
        (2000, 4000),
        (4000, 4000),
        (4000, 0),
        (0, 0),
        (0, 0),
        (4000, 4000),
        (4000, 2000),
        (2000, 2000),
    ]
    assert costs[0].seconds == pytest.approx(6e-6)


@pytest.mark.parametrize(
    ("source", "width"),
    [
        ("x.float()", 4),
        ("x.to(torch.float32)", 4),
        ("x.half()", 2),
        ("x.to(dtype=torch.bfloat16)", 2),
        ("x.double()", 8),
        ("x.type_as(h)", 2),
        ("x.to(h.dtype)", 2),
    ],
)
def test_where_a_cast_goes(source, width):
    (cost,) = step_costs((Step("cast", source, 1, "cast"),), (1,), "float16", ROUND)
    assert cost.bytes_written == width


def test_a_chain_against_its_fused_operator():
    costs = step_costs(RMS_NORM, (1000,), "float32", ROUND)
    told = chain_model(costs, launches_after=1, passes_after=2, shape=(1000,), dtype="float32", device=ROUND)
    assert told.before.bytes == 11 * 4000
    assert told.after.bytes == 8000
    assert told.before.gaps == pytest.approx(8e-3)
    assert told.after.gaps == pytest.approx(1e-3)
    assert told.low == pytest.approx(5.5, rel=1e-3)
    assert told.high == pytest.approx((44e-6 + 8e-3) / (8e-6 + 1e-3), rel=1e-3)


def test_a_tiny_tensor_gains_at_most_the_launches_saved():
    costs = step_costs(RMS_NORM, (1, 1, 64), "bfloat16", device())
    told = chain_model(costs, launches_after=1, passes_after=2, shape=(1, 1, 64), dtype="bfloat16", device=device())
    assert told.low == pytest.approx(8) and told.high == pytest.approx(8)


def test_nothing_is_divided_by_nothing():
    told = chain_model((), 0, 0, (1,), "float32", ROUND)
    assert math.isnan(told.low) and math.isnan(told.high)


def test_wrong_dtype_and_device_are_named():
    with pytest.raises(WrongInput, match="complex64"):
        item_size("complex64")
    assert item_size("torch.bfloat16") == 2
    with pytest.raises(WrongInput, match="H100"):
        device("H100")


def test_every_constant_has_a_source():
    assert {one.product for one in devices()} >= {"A2", "A3", "950", "310P", "910A"}
    for one in devices():
        for constant in (one.bandwidth, one.reached, one.launch_gap, one.shortest):
            assert constant.value > 0 and len(constant.source.en) > 20 and not constant.source.zh.isascii()
        assert 0 < one.reached.value <= 1
        assert isinstance(one.title, Text) and one.title.zh != one.title.en


def test_devices_by_id_product_and_the_names_of_the_tools():
    assert device("a3").id == "A3"
    assert device("Ascend910B2").id == "A2"
    assert device("950").product == "950"
    assert device().with_gap(1e-6, T).launch_gap == Constant(1e-6, T)
    assert device("310P").served_by(("A2", "inference")) and not device("A2").served_by(("A3",))
