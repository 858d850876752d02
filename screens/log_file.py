"""A log on disk as lines that can be looked up: the file is the truth, memory holds the line index alone."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from npufuse_tui.screens.clean import clean

_CHUNK = 1 << 20
_LONGEST = 4096  # bytes of one line that are shown
_ERROR = re.compile(
    rb"^\s*Traceback \(most recent call last\)|\b\w*(?:Error|Exception)\b\s*:|\[ERROR\]|^E\d{4} |\bfatal\b|\bERROR\b",
    re.MULTILINE,
)


@dataclass
class LogFile:
    """The lines of a growing file. Eight bytes a line are kept; text is read when it is asked for."""

    path: str
    _starts: array[int] = field(default_factory=lambda: array("Q", [0]))
    _size: int = 0
    _file: BinaryIO | None = None

    def poll(self, limit: int = 8 * _CHUNK) -> bool:
        """Index what was appended since, at most `limit` bytes; True when there was something."""
        try:
            if self._file is None:
                self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115, PTH123
            size = os.fstat(self._file.fileno()).st_size
        except OSError:
            return False
        if size < self._size:  # the run was started again into the same file
            self._starts, self._size = array("Q", [0]), 0
        grown = False
        stop = min(size, self._size + limit)
        while self._size < stop:
            chunk = os.pread(self._file.fileno(), min(_CHUNK, stop - self._size), self._size)
            if not chunk:
                break
            at, base = chunk.find(b"\n"), self._size
            while at != -1:
                self._starts.append(base + at + 1)
                at = chunk.find(b"\n", at + 1)
            self._size += len(chunk)
            grown = True
        return grown

    def __len__(self) -> int:
        return len(self._starts) - (1 if self._starts[-1] == self._size else 0)

    def raw(self, index: int) -> bytes:
        """The bytes of a line, as far as they are shown."""
        if self._file is None or not 0 <= index < len(self):
            return b""
        start = self._starts[index]
        end = self._starts[index + 1] - 1 if index + 1 < len(self._starts) else self._size
        if end - start > _LONGEST:
            # Progress bars rewrite one line for ever: what a terminal shows is its end.
            tail = os.pread(self._file.fileno(), _LONGEST, end - _LONGEST)
            if b"\r" in tail:
                return tail
            end = start + _LONGEST
        return os.pread(self._file.fileno(), end - start, start)

    def line(self, index: int) -> str:
        """A line as it can be shown: the last state of a progress bar, no escapes, no control characters."""
        text = self.raw(index).decode("utf-8", "replace").rstrip("\r\n")
        return clean(text.rsplit("\r", 1)[-1])

    def find(self, word: str, start: int, step: int = 1) -> int | None:
        """The next line that holds `word` (case does not matter), going round; None when there is none."""
        if not word or not len(self):
            return None
        wanted = re.compile(re.escape(word.encode()), re.IGNORECASE)
        hits = [self._line_at(at) for at in self._matches(wanted)]
        if not hits:
            return None
        ahead = [one for one in hits if (one > start if step > 0 else one < start)]
        if step > 0:
            return ahead[0] if ahead else hits[0]
        return ahead[-1] if ahead else hits[-1]

    def first_error(self) -> int | None:
        """The first line that looks like an error."""
        at = next(self._matches(_ERROR), None)
        return None if at is None else self._line_at(at)

    def _matches(self, pattern: re.Pattern[bytes]) -> Iterator[int]:
        """Where the pattern matches, whole lines at a time so that nothing is missed at a border. At most 100,000."""
        if self._file is None:
            return
        position, found = 0, 0
        while position < self._size and found < 100_000:
            chunk = os.pread(self._file.fileno(), 4 * _CHUNK, position)
            if not chunk:
                return
            end = chunk.rfind(b"\n") + 1 if position + len(chunk) < self._size else len(chunk)
            end = end or len(chunk)
            for one in pattern.finditer(chunk, 0, end):
                found += 1
                yield position + one.start()
            position += end

    def _line_at(self, position: int) -> int:
        low, high = 0, len(self._starts)
        while low + 1 < high:
            middle = (low + high) // 2
            if self._starts[middle] <= position:
                low = middle
            else:
                high = middle
        return low

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
