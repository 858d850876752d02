"""A chain on the device over time, drawn to scale with its idle gaps."""

from __future__ import annotations

from collections.abc import Sequence

IDLE = "."
_NAMES = "123456789abcdefghijklmnopqrstuvwxyz"


def label(place: int) -> str:
    """The character that stands for the operator at `place` (from 0) in a drawing."""
    return _NAMES[place] if place < len(_NAMES) else "+"


def draw(kernels: Sequence[float], gap: float, scale: float, labels: Sequence[str] | None = None) -> str:
    """One row: every kernel as its label, the gap before each as dots; `scale` in cells a second.

    Edges are rounded, not lengths, so the row as a whole is true to scale; what is shorter than half a cell can vanish.
    """
    row, time, drawn = "", 0.0, 0
    for place, seconds in enumerate(kernels):
        time += gap
        row, drawn = row + IDLE * (round(time * scale) - drawn), round(time * scale)
        time += seconds
        end = round(time * scale)
        row, drawn = row + (labels[place] if labels else label(place)) * (end - drawn), end
    return row


def scale_for(longest: float, cells: int) -> float:
    """Cells a second so that `longest` seconds take `cells`."""
    return cells / longest if longest > 0 else 0.0
