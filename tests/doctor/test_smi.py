"""`npu-smi info` of several versions read into data."""

from __future__ import annotations

import pytest
from outputs import A2, A3, BOARD, BROKEN, INFERENCE, OLD

from npufuse_tui.doctor.smi import board_values, parse_smi
from npufuse_tui.judgement.devices import recognise


def test_atlas_a2():
    found = parse_smi(A2)
    assert found.version == "24.1.rc2"
    first, second = found.chips
    assert (first.npu, first.chip, first.name, first.health, first.bus) == (0, 0, "910B3", "OK", "0000:C1:00.0")
    assert (first.power, first.temperature, first.utilisation) == (94.1, 39.0, 12.0)
    assert (first.memory_used, first.memory_total) == (33400, 65536)
    assert second.npu == 1
    (process,) = found.processes
    assert (process.npu, process.pid, process.name, process.memory) == (0, 41721, "python3.11", 30012)


def test_atlas_a3_with_two_dies_a_module():
    found = parse_smi(A3)
    assert [(one.npu, one.chip) for one in found.chips] == [(0, 0), (0, 1)]
    assert found.chips[1].power is None
    assert not found.chips[1].healthy
    assert found.chips[0].memory_total == 65536
    assert found.processes[0].memory == 197


def test_an_inference_card_shows_its_memory_in_the_other_column():
    found = parse_smi(INFERENCE)
    assert [(one.memory_used, one.memory_total) for one in found.chips] == [(1529, 44280), (1412, 43693)]
    assert found.chips[0].power is None
    assert found.chips[0].utilisation == 3.0
    assert found.processes == ()


def test_an_old_version_without_hugepages():
    found = parse_smi(OLD)
    assert [one.health for one in found.chips] == ["OK", "Critical"]
    assert found.chips[0].memory_used == 1
    assert found.version == "21.0.4"


def test_trouble_is_what_the_tool_itself_says():
    found = parse_smi(BROKEN)
    assert found.chips == ()
    assert found.trouble == "dcmi module initialize failed. ret is -8005"


@pytest.mark.parametrize("sample", [A2, A3, INFERENCE, OLD], ids=["A2", "A3", "inference", "old"])
def test_cut_off_anywhere_it_never_raises_and_invents_no_chip(sample):
    whole = parse_smi(sample).chips
    for place in range(0, len(sample), 7):
        found = parse_smi(sample[:place]).chips
        assert len(found) <= len(whole)
        assert [one.bus for one in found[:-1]] == [one.bus for one in whole[: max(len(found) - 1, 0)]]


def test_board():
    assert board_values(BOARD)["Firmware Version"] == "7.5.0.1.129"


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("910B3", "A2"),
        ("910B4-1", "A2"),
        ("Ascend910B2C", "A2"),
        ("Ascend910", "A3"),
        ("Ascend910_9382", "A3"),
        ("310P3", "310P"),
        ("910ProA", "910A"),
        ("Ascend950PR", "950"),
    ],
)
def test_products(name, product):
    device = recognise(name)
    assert device is not None and device.product == product


def test_a_product_that_nobody_knows_is_not_guessed():
    assert recognise("A100-SXM4-80GB") is None
