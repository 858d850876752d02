"""`kernel_details.csv` read by name, whatever wrote it."""

from __future__ import annotations

import os

import pytest
from samples import ATTENTION, LEVEL0, NEW, OLD, RMS_NORM, Kernel, kernels, write

from npufuse_tui.errors import WrongInput
from npufuse_tui.profiling.kernels import COLUMNS, find, read


@pytest.mark.parametrize("headers", [NEW, OLD, LEVEL0, list(reversed(NEW))], ids=["new", "old", "level0", "reversed"])
def test_every_version_gives_the_same_table(tmp_path, headers):
    path = write(tmp_path / "kernel_details.csv", kernels(RMS_NORM, ATTENTION), headers)
    frame = read(path)
    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["type"]) == [*RMS_NORM, *ATTENTION]
    assert frame["duration"].sum() == pytest.approx(13 * 20)
    assert frame["wait"].sum() == pytest.approx(13)
    assert frame["start"].iloc[0] == pytest.approx(0.75, abs=1)
    assert frame["start"].is_monotonic_increasing


def test_padding_and_na_are_nothing(tmp_path):
    frame = read(write(tmp_path / "k.csv", kernels(RMS_NORM)))
    assert frame["mac"].isna().all()
    assert frame["vec"].notna().all()
    assert set(frame["input_shapes"]) == {"1,2048,4096"}


def test_a_byte_order_mark_and_spaces_in_headers(tmp_path):
    path = write(
        tmp_path / "k.csv",
        kernels(RMS_NORM),
        ["Step Id ", " Type", "Duration (us)", "cube_utilization( %)", "Name"],
        bom=True,
    )
    text = path.read_text(encoding="utf-8-sig").replace("N/A", "5")
    path.write_text(text, encoding="utf-8-sig")
    frame = read(path)
    assert frame["duration"].tolist() == [5.0] * 8


def test_start_times_keep_their_fractions(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("Type,Start Time(us),Duration(us)\nA,1717575960208020.125\t,1.0\nB,1717575960208022.375,1.0\n")
    frame = read(path)
    assert frame["start"].tolist() == [0.125, 2.375]
    assert frame["wait"].tolist()[1] == pytest.approx(1.25)  # no column: from the end of the one before


def test_the_newest_profile_of_a_folder(tmp_path):
    old = write(tmp_path / "a_1_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", kernels(RMS_NORM))
    new = write(tmp_path / "a_2_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv", kernels(ATTENTION))
    os.utime(old, (1, 1))
    assert find(tmp_path) == new
    assert len(read(tmp_path)) == 5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "cannot be read"),
        ("a,b\n1,2\n", "no column"),
        ("Type,Duration(us)\n", "no kernel"),
        ("Type,Duration(us)\nAdd,N/A\n", "no kernel"),
        ("Duration(us)\n1\n", "no column"),
        ("\x00\x01\x02", "no column|cannot be read"),
    ],
)
def test_another_file_is_refused_with_its_name(tmp_path, content, reason):
    path = tmp_path / "other.csv"
    path.write_text(content)
    with pytest.raises(WrongInput, match=reason) as caught:
        read(path)
    assert "other.csv" in str(caught.value)


def test_a_path_without_a_profile(tmp_path):
    with pytest.raises(WrongInput, match="_ascend_pt"):
        find(tmp_path)
    with pytest.raises(WrongInput, match="does not exist"):
        find(tmp_path / "no")


def test_rows_are_put_in_order_by_their_start(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("Type,Start Time(us),Duration(us),Device_id\nB,20,1,0\nA,10,1,0\nC,5,1,1\n")
    assert read(path)["type"].tolist() == ["A", "B", "C"]


def test_a_large_profile_is_read(tmp_path):
    path = write(tmp_path / "k.csv", [Kernel("Add") for _ in range(20_000)])
    assert len(read(path)) == 20_000
