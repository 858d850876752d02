"""The parts without a screen: diffs, logs, wrapping, cleaning, filtering, numbers."""

from __future__ import annotations

import math
from pathlib import Path

import sample
from hypothesis import given
from hypothesis import strategies as st
from npufuse_tui.screens import clean, series, syntax
from npufuse_tui.screens.candidate_list import CandidateList
from npufuse_tui.screens.clean import clean_lines, crop, crop_start, fit, width
from npufuse_tui.screens.diff_lines import changed_words, pair, parse, side_by_side, with_context
from npufuse_tui.screens.log_file import LogFile
from npufuse_tui.screens.page import wrap
from textual.content import Content

from npufuse_tui.model import Metric

DIFF = sample.diff_of("model/blocks.py", sample.MLP_OLD, sample.MLP_NEW)


def test_parse_keeps_every_line_and_its_number() -> None:
    lines = parse(DIFF)
    source = sample.SOURCE.splitlines()
    for one in lines:
        if one.kind in "- " and one.old is not None:
            assert source[one.old - 1] == one.text
    added = [raw[1:] for raw in DIFF.splitlines() if raw.startswith("+") and not raw.startswith("+++")]
    assert [one.text for one in lines if one.kind == "+"] == added


def test_a_removed_line_that_looks_like_a_header_is_a_line() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- not a header\n context\n"
    assert [one.text for one in parse(diff) if one.kind == "-"] == ["-- not a header"]


def test_verbatim_else_branch_pairs_with_the_original() -> None:
    removed = ["    a = 1", "    b = 2"]
    added = ["    if npu:", "        c()", "    else:", "        a = 1", "        b = 2"]
    assert pair(removed, added) == [(0, 3), (1, 4)]


def test_words_that_changed() -> None:
    gone, come = changed_words("return foo(x)", "return bar(x)")
    assert gone == ((7, 10),) and come == ((7, 10),)
    assert changed_words("  same", "same") == ((), ())


def test_side_by_side_loses_nothing() -> None:
    lines = parse(DIFF)
    rows = side_by_side(lines)
    assert [one for left, _ in rows if (one := left) is not None and one.kind == "-"] == [
        one for one in lines if one.kind == "-"
    ]
    assert [one for _, right in rows if (one := right) is not None and one.kind == "+"] == [
        one for one in lines if one.kind == "+"
    ]


def test_context_grows_to_the_whole_file() -> None:
    lines = parse(DIFF)
    source = sample.SOURCE.splitlines()
    wide = with_context(lines, {"model/blocks.py": source}, 1000)
    olds = [one.old for one in wide if one.kind in "- "]
    assert olds == list(range(1, len(source) + 1))
    news = [one.new for one in wide if one.kind in "+ "]
    assert news == list(range(1, len(news) + 1))


def test_log_lines_as_they_grow(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    log = LogFile(str(path))
    assert not log.poll() and len(log) == 0
    with path.open("wb") as file:
        file.write(b"one\ntwo\xff\npart")
        file.flush()
        assert log.poll() and len(log) == 3
        assert [log.line(index) for index in range(3)] == ["one", "two\ufffd", "part"]
        file.write(b"ial\n10%\r50%\r100%\n")
        file.flush()
        log.poll()
    assert [log.line(index) for index in range(2, 4)] == ["partial", "100%"]
    assert log.find("TWO", -1) == 1 and log.find("two", 1) == 1 and log.find("none", 0) is None
    assert log.find("o", 0, -1) == 1
    path.write_bytes(b"new\n")
    log.poll()
    assert len(log) == 1 and log.line(0) == "new"
    log.close()


def test_first_error(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("no error here\nstep 1\nTraceback (most recent call last):\n  x\nValueError: no\n")
    log = LogFile(str(path))
    log.poll()
    assert log.first_error() == 2


def test_a_million_lines_cost_eight_bytes_each(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"step 1 loss 2.5\n" * 1_000_000)
    log = LogFile(str(path))
    while log.poll():
        pass
    assert len(log) == 1_000_000
    assert log._starts.itemsize * len(log._starts) <= 8_000_016
    assert log.line(999_999) == "step 1 loss 2.5"


def test_one_endless_line_is_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"x" * 5_000_000)
    log = LogFile(str(path))
    while log.poll():
        pass
    assert len(log) == 1 and len(log.line(0)) <= 4096


@given(st.text(max_size=200))
def test_clean_text_holds_no_escape_and_one_line(text: str) -> None:
    said = clean.clean(text)
    assert not any(ord(one) < 32 or 0x7F <= ord(one) <= 0x9F for one in said)
    assert "\u202e" not in said


def test_escapes_go_and_what_they_wrap_stays() -> None:
    assert clean.clean("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x9b31mc1") == "red link c1"
    assert clean_lines("a\r\nb\rc\n") == ["a", "c", ""]


@given(st.text(alphabet="ab 中文，。(", max_size=80), st.integers(1, 40))
def test_fitting_counts_cells(text: str, cells: int) -> None:
    assert width(fit(text, cells)) == cells
    assert width(crop(text, cells)) <= cells and width(crop_start(text, cells)) <= cells


@given(st.text(alphabet="ab 中文，。xyz", max_size=200), st.integers(4, 60))
def test_wrapping_loses_no_character_and_fits(text: str, cells: int) -> None:
    lines = wrap(Content(text), cells)
    assert all(width(line.plain) <= cells for line in lines)
    assert "".join(line.plain for line in lines).replace(" ", "") == text.replace(" ", "")


def test_colours_do_not_move_text() -> None:
    lines = ['x = """a', 'b"""  # no', "def f(): return 1.5"]
    spans = syntax.block_spans(lines)
    assert spans is not None and len(spans) == 3
    for line, found in zip(lines, spans, strict=True):
        assert all(0 <= start < end <= len(line) for start, end, _ in found)
    assert any(style == "$code-string" for _, _, style in spans[1])


def test_relative_difference_of_the_loss() -> None:
    base = [Metric(0, 2.0, 0.1), Metric(1, 1.0, 0.1), Metric(2, 0.0, 0.1)]
    steps = [Metric(0, 2.02, 0.1), Metric(1, math.nan, None), Metric(2, 0.0, 0.1), Metric(9, 1.0, 0.1)]
    xs, ys = series.relative(base, steps)
    assert xs == [0] and abs(ys[0] - 1.0) < 1e-9


def test_metrics_files_with_broken_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "loss": 2.5, "step_time": 0.1}\nnot json\n{"loss": 1}\n{"step": 1, "loss": 2.4}\n')
    assert [one.step for one in series.read_metrics(str(path))] == [0, 1]
    assert series.read_metrics(str(tmp_path / "gone")) == ()


def test_next_undecided_goes_round() -> None:
    from npufuse_tui.model import Decision

    listing = CandidateList()
    listing.load(sample.candidates())
    listing.decisions = {"51be7704": Decision.APPROVED}
    assert listing.undecided(0, 1) == 2
    assert listing.undecided(3, 1) == 0
    assert listing.undecided(0, -1) == 3
