"""Text measured in terminal cells: a Chinese character takes two."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """How many cells a line takes. Marks that combine take none; characters of ambiguous width are counted as one."""
    return sum(
        0 if unicodedata.combining(one) or one == "\u200b" else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


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


def table(rows: list[tuple[str, ...]], right: frozenset[int] = frozenset(), gap: int = 2) -> list[str]:
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
