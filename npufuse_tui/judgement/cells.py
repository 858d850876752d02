"""Text measured in terminal cells: a Chinese character takes two."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence


def width(text: str) -> int:
    """How many cells a line takes. Marks that combine take none; characters of ambiguous width are counted as one."""
    return sum(
        0 if unicodedata.combining(one) or one == "\u200b" else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def printable(text: str) -> str:
    """`text` without what a terminal obeys: escape sequences lose their escape, control characters become spaces."""
    return "".join(one if one.isprintable() else " " for one in text)


def pad(text: str, cells: int, right: bool = False) -> str:
    """`text` filled up with spaces to `cells`, on the left side when `right` is set."""
    space = " " * max(cells - width(text), 0)
    return space + text if right else text + space


def shorten(text: str, cells: int) -> str:
    """`text` cut to `cells`, the last three of them dots when something was cut."""
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for one in text:
        used += width(one)
        if used > cells - 3:
            break
        kept += one
    return kept + "..."


def wrap(text: str, columns: int, first: str = "", rest: str = "") -> list[str]:
    """`text` as lines of at most `columns` cells, `first` before the first and `rest` before the others."""
    if width(text) == len(text):
        wrapped = textwrap.wrap(text, columns, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
        return wrapped or [first.rstrip()]
    lines, current, words = [], first, _words(text)
    for word in words:
        if width(current) + width(word.rstrip()) > columns and current not in (first, rest):
            lines.append(current.rstrip())
            current, word = rest, word.lstrip()
        current += word
    return [*lines, current.rstrip()]


def _words(text: str) -> list[str]:
    """Where a line may break: after a space, and before and after every Chinese character; never before punctuation."""
    words: list[str] = []
    for one in text:
        wide = width(one) == 2
        joins = words and not words[-1].endswith(" ") and not wide and width(words[-1][-1]) == 1
        if words and (joins or one == " " or one in "，。；：、！？）》”]).,;:"):
            words[-1] += one
        else:
            words.append(one)
    return words


def table(rows: Sequence[tuple[str, ...]], right: frozenset[int] = frozenset(), gap: int = 2) -> list[str]:
    """Rows as lines with aligned columns; the columns in `right` are aligned on their right side."""
    if not rows:
        return []
    widths = [max(width(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        (" " * gap)
        .join(pad(cell, size, place in right) for place, (cell, size) in enumerate(zip(row, widths, strict=True)))
        .rstrip()
        for row in rows
    ]
