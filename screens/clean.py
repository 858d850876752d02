"""Text from repos and logs made safe for a terminal: no escapes, no control characters, no markup, cells counted."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size
from textual.content import Content

# CSI … final byte; OSC, DCS, SOS, PM, APC … until ST or BEL; the two- and three-character escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# C0 but for tab, DEL and C1; bidirectional controls reorder what a person reads; zero-width ones hide in it.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_ELLIPSIS = ".."


def clean(text: str) -> str:
    """`text` as one line without escapes and control characters; tabs become spaces, other controls a `?`."""
    if not text:
        return ""
    text = _ESCAPES.sub("", text)
    text = text.replace("\r", " ").replace("\n", " ").expandtabs(4)
    return _CONTROLS.sub("?", text)


def clean_lines(text: str) -> list[str]:
    """The lines of `text`, each clean; after a carriage return within a line only what follows it stays."""
    return [clean(line.rstrip("\r").rsplit("\r", 1)[-1]) for line in text.split("\n")]


def plain(text: object, style: str = "") -> Content:
    """Content that shows `text` as it is: nothing in it is read as markup."""
    return Content.styled(clean(str(text)), style) if style else Content(clean(str(text)))


def crop(text: str, cells: int) -> str:
    """`text` in at most `cells` cells, its end cut off with `..`."""
    if cells <= 0:
        return ""
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 2).rstrip() + _ELLIPSIS if cells > 3 else set_cell_size(text, cells)


def crop_start(text: str, cells: int) -> str:
    """`text` in at most `cells` cells, its beginning cut off: of a path the end matters most."""
    if cells <= 0:
        return ""
    if cell_len(text) <= cells:
        return text
    kept = text
    while kept and cell_len(kept) > cells - 2:
        kept = kept[1:]
    return _ELLIPSIS + kept if cells > 3 else set_cell_size(text, cells)


def fit(text: str, cells: int) -> str:
    """`text` in exactly `cells` cells, cropped or filled up with spaces."""
    return set_cell_size(crop(text, cells), max(cells, 0))


def fit_start(text: str, cells: int) -> str:
    return set_cell_size(crop_start(text, cells), max(cells, 0))


def width(text: str) -> int:
    """Terminal cells that `text` takes."""
    return cell_len(text)
