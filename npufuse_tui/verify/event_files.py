"""Scalars out of TensorBoard's event files, where a run prints no steps but writes those.

The files are records of: length (8 bytes), its CRC (4), data, its CRC (4); the data is the protocol buffer `Event` of
tensorflow/core/util/event.proto. Only the fields that a scalar needs are read, nothing but the standard library.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from npufuse_tui.model import Metric

_TAGS = ("loss", "train/loss", "train_loss", "loss/train", "train/train_loss", "lm loss", "lm-loss", "training_loss")
_MOST = 1 << 20  # bytes of one record that could be a scalar's


def newer_than(folder: Path, when: float, most: int = 20_000) -> list[Path]:
    """Event files below a folder, changed since `when` (seconds since the epoch). Links to folders are not followed."""
    found: list[Path] = []
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", "node_modules")]
        for name in files:
            seen += 1
            path = Path(place, name)
            if "tfevents" in name and path.stat().st_mtime >= when:
                found.append(path)
        if seen > most:
            break
    return sorted(found)


def read_scalars(path: Path) -> Iterator[tuple[str, int, float, float]]:
    """(tag, step, value, time in seconds) of every scalar; ends where the file is torn."""
    with path.open("rb") as file:
        while len(header := file.read(12)) == 12:
            length = int.from_bytes(header[:8], "little")
            if length > _MOST:
                file.seek(length + 4, os.SEEK_CUR)
                continue
            data = file.read(length)
            if len(data) < length or len(file.read(4)) < 4:
                return
            try:
                yield from _event(data)
            except (ValueError, IndexError, struct.error):
                continue


def metrics_of(paths: list[Path]) -> list[Metric]:
    """The loss of each step; times are the differences of the events' clocks."""
    losses: dict[int, tuple[float, float]] = {}
    for path in paths:
        tags: dict[str, dict[int, tuple[float, float]]] = {}
        for tag, step, value, when in read_scalars(path):
            tags.setdefault(tag, {})[step] = (value, when)
        named = {tag.lower(): tag for tag in tags}
        chosen = next((named[one] for one in _TAGS if one in named), None)
        if chosen is None:
            chosen = next((tag for tag in tags if tag.lower().endswith(("loss", "loss_step"))), None)
        if chosen is not None:
            losses |= {step: found for step, found in tags[chosen].items() if step not in losses}
    found: list[Metric] = []
    before: tuple[int, float] | None = None
    for step in sorted(losses):
        value, when = losses[step]
        time = (when - before[1]) / (step - before[0]) if before is not None else None
        found.append(Metric(step, value, time))
        before = (step, when)
    return found


def _event(data: bytes) -> Iterator[tuple[str, int, float, float]]:
    when, step, summary = 0.0, 0, []
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            when = struct.unpack("<d", value)[0]
        elif field == 2 and isinstance(value, int):
            step = value
        elif field == 5 and isinstance(value, bytes):
            summary.append(value)
    for one in summary:
        for field, value in _fields(one):
            if field == 1 and isinstance(value, bytes):
                tag, number = _value(value)
                if number is not None:
                    yield tag, step, number, when


def _value(data: bytes) -> tuple[str, float | None]:
    """Summary.Value: tag = 1, simple_value = 2, tensor = 8 (float_val = 5, tensor_content = 4)."""
    tag, number = "", None
    for field, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if field == 1:
            tag = value.decode("utf-8", "replace")
        elif field == 2:
            number = struct.unpack("<f", value)[0]
        elif field == 8:
            for inner, content in _fields(value):
                if inner in (4, 5) and isinstance(content, bytes) and len(content) == 4:
                    number = struct.unpack("<f", content)[0]
    return tag, number


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field on the wire: varints as int, everything else as its bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if kind == 2:
            size, place = _varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if place + size > len(data):
            raise ValueError("torn field")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")
