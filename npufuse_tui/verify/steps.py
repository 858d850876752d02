"""Training steps out of a growing log: finds the format by itself, numbers the steps, and times them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from npufuse_tui.model import Metric
from npufuse_tui.verify.log_lines import LineReader
from npufuse_tui.verify.parsers import all_parsers
from npufuse_tui.verify.reading import Parser, Reading, without_rank

_CLUES = ("oss", "iteration", '"step"')
_GLUED = re.compile(r"(?<=\S)(?=\[(?:rank|default)\d+\]:|\brank \d+:|(?<=\d)rank ?\d+:)", re.I)
_LATE = 3  # steps by which a rank may print behind another
_MOST_KEPT = 64  # readings of a format that is not settled yet


@dataclass(frozen=True, slots=True)
class _Seen:
    rank: int | None
    reading: Reading
    when: float


class StepStream:
    """`feed` it the bytes of a log with the time they were read at; it gives the steps that became whole.

    Where several ranks print, the first that prints a step is the one that is read. A step that is printed twice counts
    once; numbers that begin again (a new epoch) are numbered on. Times are those of the log where it has them and they
    fit the clock, else the clock's between two steps.
    """

    def __init__(self, parser: Parser | None = None) -> None:
        self.parser: Parser | None = parser
        self.sample: str | None = None
        self._given = parser is not None
        self._lines = LineReader()
        self._kept: dict[str, list[_Seen]] = {}
        self._rank: int | None = None
        self._rank_known = False
        self._held: _Seen | None = None
        self._first_raw: int | None = None
        self._last_raw: int | None = None
        self._offset = 0
        self._count = 0
        self._last: int | None = None
        self._last_when = 0.0
        self._first_when = 0.0
        self._told = 0.0
        self._trusted = True
        self.sources: set[str] = set()

    @property
    def step_time_source(self) -> str | None:
        """Where the times come from: "log", "clock", or None when there are none."""
        if not self.sources:
            return None
        return "log" if self._trusted and "log" in self.sources else "clock"

    def feed(self, data: bytes, now: float) -> list[Metric]:
        return self._metrics([seen for line in self._lines.feed(data) for seen in self._read_glued(line, now)])

    def close(self, now: float) -> list[Metric]:
        """The log has ended: what was held back."""
        found = [seen for line in self._lines.close() for seen in self._read_glued(line, now)]
        if self.parser is None:
            best = next((one for one in all_parsers() if self._kept.get(one.name)), None)
            if best is not None:
                found += self._choose(best)
        metrics = self._metrics(found)
        if self._held is not None:
            held, self._held = self._held, None
            metrics += self._timed([held])
        return metrics

    def _read_glued(self, line: str, now: float) -> list[_Seen]:
        """A line, or several: an unbuffered print writes its newline by itself, and another rank may come between."""
        if not self._given and not any(clue in line for clue in _CLUES):
            return []
        return [seen for part in _GLUED.split(line) for seen in self._read(part, now)]

    def _read(self, line: str, now: float) -> list[_Seen]:
        if self.parser is not None:
            seen = _seen(self.parser, line, now)
            if seen is None:
                return []
            self.sample = self.sample or line[:300]
            return [seen]
        for parser in all_parsers():
            seen = _seen(parser, line, now)
            if seen is None:
                continue
            self.sample = self.sample or line[:300]
            kept = self._kept.setdefault(parser.name, [])
            kept.append(seen)
            if len(kept) >= parser.evidence:
                return self._choose(parser)
            del kept[:-_MOST_KEPT]
        return []

    def _choose(self, parser: Parser) -> list[_Seen]:
        self.parser = parser
        found, self._kept = self._kept.get(parser.name, []), {}
        return found

    def _metrics(self, found: Sequence[_Seen]) -> list[Metric]:
        """Readings of one rank, each step once."""
        chosen = []
        for seen in found:
            if not self._rank_known:
                self._rank, self._rank_known = seen.rank, True
            if seen.rank != self._rank:
                continue
            if self.parser is not None and self.parser.redraws:
                held, self._held = self._held, seen
                if held is None or held.reading.step == seen.reading.step:
                    continue
                seen = held
            chosen.append(seen)
        return self._timed(chosen)

    def _timed(self, chosen: Sequence[_Seen]) -> list[Metric]:
        numbered = [(step, seen) for seen in chosen if (step := self._number(seen.reading.step)) is not None]
        found: list[Metric] = []
        while numbered:
            when = numbered[0][1].when
            together = [one for one in numbered if one[1].when == when]
            numbered = numbered[len(together) :]
            first = self._last is None
            before = self._last if self._last is not None else together[0][0]
            span = together[-1][0] - before
            each = (when - self._last_when) / span if not first and span > 0 else None
            if first:
                self._first_when = when
            for step, seen in together:
                found.append(self._metric(step, seen, each, step - (self._last if self._last is not None else step)))
                self._last = step
            self._last_when = when
        return found

    def _metric(self, step: int, seen: _Seen, clock: float | None, gap: int) -> Metric:
        reading = seen.reading
        time, source = clock, "clock"
        if reading.step_time is not None and self._trusted:
            self._told += reading.step_time * gap
            if self._told > 2 * (seen.when - self._first_when) + 5 or not math.isfinite(reading.step_time):
                self._trusted = False  # a sum since the start, or another unit: no time of one step
            else:
                time, source = reading.step_time, "log"
        if time is not None:
            self.sources.add(source)
        return Metric(step, reading.loss, time, tokens_per_second=reading.tokens_per_second)

    def _number(self, raw: int | None) -> int | None:
        """The step's number in this run; None for a step that was counted already."""
        if raw is None:
            if self._last_raw is not None:
                return None  # a line without a number among lines that have one says nothing about a step
            self._count += 1
            return self._count
        if self._last_raw is None or self._first_raw is None:
            self._first_raw = self._last_raw = raw
            return self._offset + raw
        if raw == self._last_raw or self._first_raw < raw < self._last_raw <= raw + _LATE:
            return None  # printed by another rank too, now or a little later
        if raw < self._last_raw:  # a new epoch: numbered on
            self._offset += self._last_raw + 1 - self._first_raw
        self._last_raw = raw
        return self._offset + raw


def _seen(parser: Parser, line: str, now: float) -> _Seen | None:
    """What a parser reads in a line. A number before a colon is the rank, or the step where the rest names none."""
    rank, text = without_rank(line)
    reading = parser.read(text)
    if rank is not None and (reading is None or reading.step is None):
        whole = parser.read(line)
        if whole is not None and (reading is None or whole.step is not None):
            return _Seen(None, whole, now)
    return _Seen(rank, reading, now) if reading is not None else None


def with_phases(metrics: Sequence[Metric], warmup: int) -> list[Metric]:
    """The metrics with the first `warmup` of them marked as such."""
    return [replace(one, phase="warmup" if index < warmup else "steady") for index, one in enumerate(metrics)]
