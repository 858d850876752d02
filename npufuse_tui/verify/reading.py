"""What a parser is, and the numbers that all of them read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from npufuse_tui.language import Text

NUMBER = r"[+-]?(?:\d[\d,]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf(?:inity)?)"
"""A number as programs print it; case is ignored by the patterns that use it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one line says. Seconds; `step` is None in formats that do not number their lines."""

    step: int | None
    loss: float | None
    step_time: float | None = None
    tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Parser:
    """A log format.

    Attributes:
        name, title: of the format, for records and for people.
        rank: lower is asked first; more particular formats have lower ranks.
        read: the reading of one clean line, None when the line is no step.
        evidence: lines that must read as steps before the format is taken for found.
        redraws: the format writes a step several times and the last one counts (progress bars).
    """

    name: str
    title: Text
    rank: int
    read: Callable[[str], Reading | None]
    evidence: int = 1
    redraws: bool = False


def number(text: str | None) -> float | None:
    """A printed number; thousands separators are taken out. None for what is none."""
    if text is None:
        return None
    try:
        return float(text.replace(",", "").strip().strip("'\""))
    except ValueError:
        return None


_SECONDS = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "m": 60.0, "min": 60.0}


def seconds(text: str | None, unit: str | None) -> float | None:
    """A printed duration in seconds; without a unit it is one already."""
    value = number(text)
    return None if value is None else value * _SECONDS.get((unit or "s").lower(), 1.0)


_RANK = re.compile(
    r"^\s*(?:\[(?:rank|default|worker|node\d+:)?\s*(\d+)\]|rank\s*(\d+)|(\d+))\s*[:|>]\s*(.*)$", re.I | re.S
)


def without_rank(line: str) -> tuple[int | None, str]:
    """The rank that a launcher put before a line (`[rank0]:`, `[default0]:`, `0:`), and the line without it."""
    match = _RANK.match(line)
    if match is None:
        return None, line
    rank = next(one for one in match.groups()[:3] if one is not None)
    return int(rank), match[4]
