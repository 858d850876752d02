"""The side-by-side difference."""

from __future__ import annotations

import difflib

import pytest
import report_fixtures as fixtures
from hypothesis import given, settings
from hypothesis import strategies as st

from npufuse_tui.report.diff_view import Cell, colours, parse


def text(cell: Cell) -> str:
    return "".join(one.text for one in cell.segments)


def sides(diff: str) -> tuple[list[str], list[str]]:
    rows = [row for file in parse(diff) for hunk in file.hunks for row in hunk.rows]
    return [text(row.left) for row in rows if row.left], [text(row.right) for row in rows if row.right]


def test_the_kept_original_faces_itself() -> None:
    (file,) = parse(fixtures.norm().diff or "")
    rows = file.hunks[0].rows
    moved = [row for row in rows if row.left and row.left.kind == "moved"]
    assert len(moved) == 5 and all(row.right and row.right.kind == "moved" for row in moved)
    assert all(row.left and row.right and text(row.left).strip() == text(row.right).strip() for row in moved)
    assert moved[0].left and moved[0].right and (moved[0].left.number, moved[0].right.number) == (59, 62)
    assert [one.text for one in moved[0].right.segments if one.changed] == ["    "]
    added = [row for row in rows if row.right and row.right.kind == "added"]
    assert len(added) == 3 and all(row.left is None for row in added)


def test_the_words_that_changed_are_marked() -> None:
    (file,) = parse("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-y = f(alpha, 2)\n+y = f(beta, 2)\n")
    (row,) = file.hunks[0].rows
    assert row.left and row.right
    assert [one.text for one in row.left.segments if one.changed] == ["alpha"]
    assert [one.text for one in row.right.segments if one.changed] == ["beta"]


def test_lines_with_little_in_common_are_not_marked_word_by_word() -> None:
    (file,) = parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-import os, sys, json\n+class Big(Thing):\n")
    (row,) = file.hunks[0].rows
    assert row.left and row.right and not any(one.changed for one in row.left.segments + row.right.segments)


def test_several_files_and_no_newline_at_the_end() -> None:
    first_file = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
    diff = first_file + "--- a/y\n+++ b/y\n@@ -5,2 +5,2 @@ def f():\n c\n-d\n+e\n"
    first, second = parse(diff)
    assert (first.before, second.after) == ("a/x", "b/y")
    assert second.hunks[0].title == "def f():"
    assert sides(diff) == (["a", "c", "d"], ["b", "c", "e"])


def test_lines_that_look_like_headers_are_lines() -> None:
    before, after = "-- old\n@@ x\n", "++ new\n@@ x\n"
    diff = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/q", "b/q"))
    assert "--- old" in diff and "+++ new" in diff
    assert sides(diff) == (["-- old", "@@ x"], ["++ new", "@@ x"])


LINE = st.text(alphabet=st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINE, min_size=1, max_size=12), st.lists(LINE, min_size=1, max_size=12))
def test_no_character_is_lost(before: list[str], after: list[str]) -> None:
    diff = "".join(
        difflib.unified_diff([f"{one}\n" for one in before], [f"{one}\n" for one in after], "a/f", "b/f", n=99)
    )
    assert sides(diff) == ((before, after) if diff else ([], []))


@pytest.mark.parametrize(
    "code", ["", "x = 1", "def f(:\n  '''open", "\tif x:\n\t\ty", "a = '''\n b\n'''\n", "a\x0cb\n"]
)
def test_colours_lose_nothing(code: str) -> None:
    assert "\n".join("".join(piece for piece, _ in line) for line in colours(code)) == code


def test_colours_are_there() -> None:
    (line,) = colours("def f(x): return 'a' + str(1)  # why")
    assert {colour for _, colour in line} >= {"k", "f", "s", "b", "n", "c"}


def colours_of(diff: str, text: str) -> set[str]:
    rows = [row for file in parse(diff) for hunk in file.hunks for row in hunk.rows]
    cells = [cell for row in rows for cell in (row.left, row.right) if cell]
    return {
        one.colour for cell in cells if text in "".join(piece.text for piece in cell.segments) for one in cell.segments
    }


def test_a_piece_that_begins_or_ends_inside_of_a_docstring() -> None:
    ends = (
        '--- a/x\n+++ b/x\n@@ -9,4 +9,4 @@\n     words of it\n     """\n-    return a\n+    return b\n     if done:\n'
    )
    assert "k" in colours_of(ends, "return") and colours_of(ends, "words of it") == {"s"}
    begins = '--- a/x\n+++ b/x\n@@ -9,4 +9,4 @@\n-    return a\n+    return b\n def f():\n     """Words\n     of it\n'
    assert "k" in colours_of(begins, "return") and colours_of(begins, "of it") == {"s"}
