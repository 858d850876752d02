"""Hot sequences: what is found, how often, and what holds it back."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import ATTENTION, LEVEL0, OLD, RMS_NORM, ROTARY, SWIGLU, Kernel, kernels, write

from npufuse_tui.profiling.hot import hot_sequences, measured_constants
from npufuse_tui.profiling.kernels import read
from npufuse_tui.profiling.sequences import find_sequences, kind_of


def hot(tmp_path, rows, **more):
    return hot_sequences(read(write(tmp_path / "kernel_details.csv", rows, **more)))


def test_every_chain_of_a_block_is_found_with_its_counts_and_times(tmp_path):
    layer = kernels(RMS_NORM, ("MatMulV3",), ROTARY, ROTARY, ATTENTION, ("MatMulV3",), RMS_NORM, ("MatMulV2",), SWIGLU)
    found = {one.rule: one for one in hot(tmp_path, layer * 4)}
    assert {one: found[one].count for one in found if one} == {
        "rms_norm": 8,
        "rotary": 8,
        "fusion_attention": 4,
        "swiglu": 4,
    }
    norm = found["rms_norm"]
    assert norm.types == ("Cast", "Square", "ReduceMean", "Add", "Rsqrt", "Mul", "Cast", "Mul")
    assert norm.kernels == 64
    assert norm.duration == pytest.approx(64 * 20.0)
    assert norm.wait == pytest.approx(64 * 1.0)
    assert norm.median_occurrence == pytest.approx(8 * 21.0)
    assert norm.shapes == ("1,2048,4096",)
    assert sum(one.share for one in found.values()) <= 1.0


@pytest.mark.parametrize("headers", [OLD, LEVEL0])
def test_old_files_give_the_same_chains(tmp_path, headers):
    found = hot(tmp_path, kernels(RMS_NORM, ATTENTION), headers=headers)
    assert {one.rule for one in found} == {"rms_norm", "fusion_attention"}


@pytest.mark.parametrize(
    ("chain", "rule"),
    [
        (("Cast", "Pow", "ReduceMeanD", "Add", "Rsqrt", "Mul", "Cast", "Mul"), "rms_norm"),
        (("Mul", "ReduceMean", "Adds", "Rsqrt", "Mul", "Mul"), "rms_norm"),
        (("Square", "ReduceMean", "Add", "Sqrt", "Reciprocal", "Mul"), "rms_norm"),
        (("StridedSlice", "StridedSlice", "Sigmoid", "Mul", "Mul"), "swiglu"),
        (("SplitV", "GeluV2", "Mul"), "geglu"),
        (("Mul", "StridedSlice", "Neg", "ConcatV2", "Mul", "Add"), "rotary"),
        (("BatchMatMul", "MaskedFill", "SoftmaxV2", "DropOutDoMask", "BatchMatMul"), "fusion_attention"),
        (("aclnnMul_MulAiCore_Mul", "Neg"), None),
        (("SoftmaxV2", "TopKV2"), None),
        (("Add", "Mul", "Rsqrt"), None),
        (("LayerNormV3",), None),
    ],
)
def test_spellings(chain, rule):
    assert [one.rule for one in find_sequences(chain)] == ([rule] if rule else [])


@given(st.lists(st.sampled_from([*RMS_NORM, *ROTARY, *ATTENTION, *SWIGLU, "Foo", "Transpose"]), max_size=60))
def test_sequences_never_overlap_and_stay_inside(types):
    found = find_sequences(types)
    for one, following in itertools.pairwise(found):
        assert one.end <= following.start
    assert all(0 <= one.start < one.end <= len(types) for one in found)


def test_two_chains_side_by_side_are_two(tmp_path):
    (found,) = hot(tmp_path, kernels(RMS_NORM, RMS_NORM))
    assert found.count == 2


def test_kernels_of_another_stream_or_device_do_not_come_in_between(tmp_path):
    rows = []
    for one in kernels(RMS_NORM):
        rows += [one, Kernel("hcom_allReduce_", stream="9"), Kernel("MatMulV3", device="1")]
    found = hot(tmp_path, rows)
    assert [(one.rule, one.count) for one in found if one.rule] == [("rms_norm", 1)]


@pytest.mark.parametrize(
    ("values", "bound"),
    [
        ({"duration": 3.0, "wait": 12.0}, "launch"),
        ({"duration": 30.0, "wait": 0.5, "vec": 0.2, "mte2": 0.8}, "memory"),
        ({"duration": 30.0, "wait": 0.5, "vec": 0.9, "mte2": 0.3}, "compute"),
        ({"duration": 30.0, "wait": 0.5, "vec": None, "mte2": None}, "unknown"),
        ({"duration": 3.0, "wait": 0.5, "vec": None, "mte2": None}, "launch"),
    ],
)
def test_what_holds_a_chain_back(tmp_path, values, bound):
    (found,) = hot(tmp_path, kernels(RMS_NORM, **values))
    assert found.bound == bound
    assert found.evidence.en and found.evidence.zh != found.evidence.en


def test_matrix_products_are_compute_bound(tmp_path):
    rows = kernels(("BatchMatMulV3", "SoftmaxV2", "BatchMatMulV3"))
    rows[1].duration = 0.5
    (found,) = hot(tmp_path, rows)
    assert found.bound == "compute"


def test_repeated_runs_that_no_rule_knows_are_told(tmp_path):
    odd = ("Exp", "Sign", "Tanh", "Abs")
    found = hot(tmp_path, kernels(odd, ("MatMulV3",), odd, ("MatMulV3",), ("Exp", "Log", "Abs")))
    assert [(one.rule, one.types, one.count) for one in found] == [(None, odd, 2)]


def test_the_longest_time_comes_first(tmp_path):
    found = hot(tmp_path, kernels(SWIGLU, duration=500.0) + kernels(("MatMulV3",), RMS_NORM))
    assert [one.rule for one in found] == ["swiglu", "rms_norm"]


def test_measured_constants(tmp_path):
    frame = read(write(tmp_path / "k.csv", [Kernel("Add", 2.5, 7.0) for _ in range(30)]))
    gap, shortest = measured_constants(frame)
    assert (gap, shortest) == (7.0, 2.5)
    frame = read(write(tmp_path / "few.csv", [Kernel("Add", 2.5, 7.0)]))
    assert measured_constants(frame) == (None, None)


def test_kinds():
    assert kind_of("Muls") == kind_of("aclnnMuls_MulAiCore_Muls") == "Mul"
    assert kind_of("BatchMatMulV3") == "MatMul"
    assert kind_of("SomethingNew") == "SomethingNew"
