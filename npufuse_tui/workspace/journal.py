"""What a session did, one line before and one after each step: `journal.jsonl`.

A step that has begun and not ended is what was going on when the process died. A line that was torn by the death is
passed over, and counted.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from npufuse_tui.durable import append_durably

BEGIN, DONE, FAILED, NOTE = "begin", "done", "failed", "note"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. `step` names what was done; `state` is begin, done, failed or note; `details` are JSON values."""

    number: int
    when: str
    step: str
    state: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """The whole journal; `torn` lines could not be read."""

    entries: tuple[Entry, ...]
    torn: int


class Journal:
    """Appends to a journal; may be used from several threads of the process that holds the session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._number = max((entry.number for entry in read(path).entries), default=0)

    def note(self, step: str, **details: Any) -> None:
        """Write down something that has happened at once."""
        self._append(step, NOTE, details)

    @contextmanager
    def step(self, step: str, **details: Any) -> Iterator[dict[str, Any]]:
        """Write `begin` before the block and `done` or `failed` after it.

        What the block puts into the dict is written too.
        """
        self._append(step, BEGIN, details)
        result: dict[str, Any] = {}
        try:
            yield result
        except BaseException as error:
            self._append(step, FAILED, {**details, "error": f"{type(error).__name__}: {error}"[:500]})
            raise
        self._append(step, DONE, {**details, **result})

    def interrupted(self) -> tuple[Entry, ...]:
        """The steps that have begun and neither ended nor been begun again since, the outer ones first."""
        return interrupted(read(self.path).entries)

    def _append(self, step: str, state: str, details: Mapping[str, Any]) -> None:
        with self._guard:
            self._number += 1
            line = {"n": self._number, "when": now(), "step": step, "state": state, **details}
            append_durably(
                self.path, json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
            )


def interrupted(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """As `Journal.interrupted`, for entries at hand. A step is known by its name and its candidate."""
    open_steps: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        key = (entry.step, str(entry.details.get("candidate", "")))
        if entry.state == BEGIN:
            open_steps.pop(key, None)
            open_steps[key] = entry
        elif entry.state in (DONE, FAILED):
            open_steps.pop(key, None)
        elif entry.step == "resumed":
            open_steps.clear()
    return tuple(open_steps.values())


def read(path: Path) -> Read:
    """Every line of a journal that can be read; one that is not there is empty."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Read((), 0)
    entries: list[Entry] = []
    torn = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            found = json.loads(line.decode("utf-8", "surrogatepass"))
            known = ("n", "when", "step", "state")
            rest = {key: value for key, value in found.items() if key not in known}
            entries.append(Entry(int(found["n"]), str(found["when"]), str(found["step"]), str(found["state"]), rest))
        except (ValueError, KeyError, TypeError, AttributeError):
            torn += 1
    return Read(tuple(entries), torn)


def now() -> str:
    """The time as it is written down: ISO 8601, UTC, whole milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
