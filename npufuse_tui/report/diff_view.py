"""A unified diff side by side, with syntax colours and the words that changed. Data for a template, no HTML yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line: its colour ("" for none) and whether it is part of what changed."""

    text: str
    colour: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """One side of a row. `kind`: "same", "removed", "added", or "moved" for one that only changed its indentation."""

    number: int
    kind: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Row:
    left: Cell | None
    right: Cell | None


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of rows. `title` is what the diff says after the line numbers, most often the function."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    before: str
    after: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    mark: str
    text: str
    left: int
    right: int


def parse(diff: str) -> tuple[FileDiff, ...]:
    """The files of a unified diff; lines that belong to no hunk are left out."""
    files: list[FileDiff] = []
    before = after = title = ""
    hunks: list[Hunk] = []
    lines: list[_Line] = []
    left = right = 0

    def end_hunk() -> None:
        if lines:
            hunks.append(Hunk(title, tuple(_rows(lines))))
            lines.clear()

    def end_file() -> None:
        end_hunk()
        if hunks:
            files.append(FileDiff(before, after, tuple(hunks)))
            hunks.clear()

    counts = [0, 0]
    for text in diff.split("\n"):
        inside = counts[0] > 0 or counts[1] > 0
        if not inside and text.startswith("--- "):
            end_file()
            before = text[4:].split("\t")[0]
        elif not inside and text.startswith("+++ "):
            after = text[4:].split("\t")[0]
        elif not inside and (found := _HUNK.match(text)):
            end_hunk()
            left, right, title = int(found[1]), int(found[2]), found[3]
            counts = _sizes(text)
        elif inside and (text[:1] in (" ", "+", "-") or text == ""):
            mark = text[:1] or " "
            lines.append(_Line(mark, text[1:].rstrip("\r"), left, right))
            if mark != "+":
                left += 1
                counts[0] -= 1
            if mark != "-":
                right += 1
                counts[1] -= 1
    end_file()
    return tuple(files)


def colours(code: str) -> list[list[tuple[str, str]]]:
    """Python code as lines of (text, colour); a file that pygments cannot read comes back without colours."""
    from pygments.lexers.python import PythonLexer
    from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, String, Token

    families = (
        (Comment, "c"),
        (String, "s"),
        (Number, "n"),
        (Keyword, "k"),
        (Operator.Word, "k"),
        (Name.Builtin, "b"),
        (Name.Function, "f"),
        (Name.Class, "f"),
        (Name.Decorator, "f"),
        (Literal, "n"),
    )
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(code):
        colour = next((short for family, short in families if kind in family), "") if kind is not Token.Text else ""
        first, *more = text.split("\n")
        if first:
            lines[-1].append((first, colour))
        for part in more:
            lines.append([(part, colour)] if part else [])
    return lines


def _sizes(header: str) -> list[int]:
    found = re.match(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", header)
    return [int(size) if size is not None else 1 for size in found.groups()] if found else [0, 0]


def _rows(lines: list[_Line]) -> Iterator[Row]:
    """The rows of one hunk: equal lines face each other; what was taken out faces what was put in for it."""
    left_colours = _coloured([one for one in lines if one.mark != "+"], "left")
    right_colours = _coloured([one for one in lines if one.mark != "-"], "right")
    place = 0
    while place < len(lines):
        if lines[place].mark == " ":
            one = lines[place]
            yield Row(
                Cell(one.left, "same", _segments(left_colours[one.left], [])),
                Cell(one.right, "same", _segments(right_colours[one.right], [])),
            )
            place += 1
            continue
        end = place
        while end < len(lines) and lines[end].mark != " ":
            end += 1
        block = lines[place:end]
        yield from _changed(
            [one for one in block if one.mark == "-"],
            [one for one in block if one.mark == "+"],
            left_colours,
            right_colours,
        )
        place = end


def _coloured(lines: list[_Line], side: str) -> dict[int, list[tuple[str, str]]]:
    coloured = _excerpt_colours("\n".join(one.text[:LONGEST_LINE] for one in lines))
    numbers = [one.left if side == "left" else one.right for one in lines]
    return {number: coloured[place] if place < len(coloured) else [] for place, number in enumerate(numbers)}


def _excerpt_colours(code: str) -> list[list[tuple[str, str]]]:
    """As `colours`, for a piece of a file, which may begin inside of a docstring: the reading with less string."""
    readings = [colours(code)]
    for quotes in ('"""', "'''"):
        if code.count(quotes) % 2:
            readings.append(colours(f"{quotes}\n{code}")[1:])
    return min(readings, key=lambda lines: sum(len(text) for line in lines for text, colour in line if colour == "s"))


def _changed(
    removed: list[_Line],
    added: list[_Line],
    left_colours: dict[int, list[tuple[str, str]]],
    right_colours: dict[int, list[tuple[str, str]]],
) -> Iterator[Row]:
    """Pairs by what the lines say without their indentation, so that the kept original faces itself."""

    def left(one: _Line, kind: str, ranges: list[tuple[int, int]]) -> Cell:
        return Cell(one.left, kind, _segments(left_colours[one.left], ranges))

    def right(one: _Line, kind: str, ranges: list[tuple[int, int]]) -> Cell:
        return Cell(one.right, kind, _segments(right_colours[one.right], ranges))

    matcher = SequenceMatcher(
        None, [one.text.strip() for one in removed], [one.text.strip() for one in added], autojunk=False
    )
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for one, other in zip(removed[a:b], added[c:d], strict=True):
                deeper = max(0, _indent(other.text) - _indent(one.text))
                yield Row(left(one, "moved", []), right(other, "moved", [(0, deeper)] if deeper else []))
            continue
        for place in range(max(b - a, d - c)):
            gone = removed[a + place] if a + place < b else None
            come = added[c + place] if c + place < d else None
            old, new = _words(gone.text, come.text) if gone and come else ([], [])
            yield Row(left(gone, "removed", old) if gone else None, right(come, "added", new) if come else None)


def _words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The ranges of characters that differ, word by word; none where the lines have too little in common to compare."""
    old_words, new_words = _WORD.findall(old[:LONGEST_LINE]), _WORD.findall(new[:LONGEST_LINE])
    matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
    if matcher.ratio() < 0.4:
        return [], []
    old_at, new_at = _offsets(old_words), _offsets(new_words)
    old_ranges = [(old_at[a], old_at[b]) for kind, a, b, _, _ in matcher.get_opcodes() if kind != "equal" and a < b]
    new_ranges = [(new_at[c], new_at[d]) for kind, _, _, c, d in matcher.get_opcodes() if kind != "equal" and c < d]
    return old_ranges, new_ranges


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _offsets(words: list[str]) -> list[int]:
    offsets = [0]
    for one in words:
        offsets.append(offsets[-1] + len(one))
    return offsets


def _segments(coloured: list[tuple[str, str]], ranges: list[tuple[int, int]]) -> tuple[Segment, ...]:
    """The coloured pieces of a line, cut where what changed begins and ends."""
    pieces: list[Segment] = []
    at = 0
    for text, colour in coloured:
        cuts = sorted({0, len(text), *(edge - at for pair in ranges for edge in pair if 0 < edge - at < len(text))})
        for start, end in pairwise(cuts):
            changed = any(low <= at + start < high for low, high in ranges)
            pieces.append(Segment(text[start:end], colour, changed))
        at += len(text)
    return tuple(pieces)
