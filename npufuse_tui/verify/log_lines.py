"""Bytes of a growing log → clean lines, whatever the program prints.

Splits at newlines and at the carriage returns of progress bars, holds partial lines and half characters back until
their rest comes, strips escapes and control characters. Memory is bounded: of a line only the first 64 KiB are kept.
"""

from __future__ import annotations

import codecs
import re

MOST = 1 << 16
"""Characters of one line that are kept."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_ENDS = re.compile(r"\r\n|\n|\r")


class LineReader:
    """`feed` it what was read and get the lines that are whole; `close` gives what is left."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> list[str]:
        text = self._decoder.decode(data)
        if not text:
            return []
        if self._held.endswith("\r"):
            text, self._held = "\r" + text, self._held[:-1]
        *whole, rest = _ENDS.split(text)
        if text.endswith("\r"):  # the newline of a CRLF may come with the next read
            rest = (whole.pop() if whole else "") + "\r"
        if not whole:
            self._hold(rest)
            return []
        first = self._held + whole[0]
        self._held = ""
        self._hold(rest)
        return [line for line in (clean(first), *(clean(one) for one in whole[1:])) if line]

    def close(self) -> list[str]:
        """The last line, that had no end."""
        last = clean(self._held + self._decoder.decode(b"", final=True))
        self._held = ""
        return [last] if last else []

    def _hold(self, text: str) -> None:
        room = MOST - len(self._held)
        self._held += text if len(text) <= room else text[: max(0, room)] + ("\r" if text.endswith("\r") else "")


def clean(line: str) -> str:
    """A line without escapes and control characters (tabs stay), cut to `MOST` characters."""
    line = line[:MOST]
    if line.isascii() and line.isprintable():
        return line.strip()
    return _ESCAPES.sub("", line).strip()
