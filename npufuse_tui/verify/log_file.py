"""The log of a run on disk: the child writes into it directly, and it stays bounded.

When more has been written than the limit, the middle (what has been read already) is given back to the file system
while the child goes on writing; at the end the file is put together from its head and its tail. So the first lines
(versions, configuration) and the last ones (the error) are always kept. Where the file system cannot do that, the
run has to be ended instead: `full` says so.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_KEEP_SIZE_AND_PUNCH = 0x03  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, linux/falloc.h


class BoundedLog:
    """Reads what a child appends to `path`, and keeps the file below about `limit` bytes of disk.

    `path` is made anew; `descriptor` is what the child gets as standard output and error. Raises OSError.
    """

    def __init__(self, path: Path, limit: int = 256 * 2**20, chunk: int = 1 << 16) -> None:
        self.path, self.limit, self._chunk = path, limit, chunk
        path.parent.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._reader = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._read = 0
        self._punched = 0  # end of what was given back; 0: nothing was
        self.skipped = 0
        self.full = False

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return os.fstat(self._reader).st_size

    def read(self) -> bytes:
        """The next piece of what was written, empty when there is none now."""
        behind = self.size - self._read
        if behind > self.limit:  # written faster than it can be read: go on near the end
            skip = behind - self.limit // 4
            self.skipped += skip
            self._read += skip
        data = os.pread(self._reader, self._chunk, self._read)
        self._read += len(data)
        return data

    def trim(self) -> None:
        """Give back the middle, when the file has grown beyond the limit."""
        head, tail = self.limit // 8, self.limit // 2
        begin, end = max(head, self._punched), self._read - tail
        if self.size - (self._punched - head if self._punched else 0) <= self.limit or end <= begin:
            return
        if _punch(self._reader, begin, end - begin):
            self._punched = end
        else:
            self.full = True

    def close(self) -> None:
        """Put head and tail together where the middle was given back; the descriptors are closed."""
        try:
            if self._punched or self.size > self.limit:
                self._join()
        finally:
            os.close(self.descriptor)
            os.close(self._reader)

    def _join(self) -> None:
        head = self.limit // 8
        tail = max(head, self._punched, self.size - self.limit // 2)
        left_out = tail - head
        note = f"\n[… {left_out} bytes left out …]\n".encode()
        whole = self.path.with_name(self.path.name + ".joining")
        with whole.open("wb") as out:
            for begin, end in ((0, head), (tail, self.size)):
                if begin:
                    out.write(note)
                place = begin
                while place < end:
                    data = os.pread(self._reader, min(1 << 20, end - place), place)
                    if not data:
                        break
                    out.write(data)
                    place += len(data)
        whole.replace(self.path)


def _punch(descriptor: int, offset: int, length: int) -> bool:
    """fallocate(2) with a hole, for bytes [offset, offset + length); False where that does not work."""
    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (AttributeError, OSError):
        return False
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return bool(function(descriptor, _KEEP_SIZE_AND_PUNCH, offset, length) == 0)


def last_lines(path: Path, count: int = 20, most: int = 8192) -> str:
    """The last lines of a log, without escapes; empty where it cannot be read."""
    from npufuse_tui.verify.log_lines import LineReader

    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - most))
            reader = LineReader()
            lines = [*reader.feed(file.read(most)), *reader.close()]
    except OSError:
        return ""
    return "\n".join(lines[-count:])
