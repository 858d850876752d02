"""A record of what the emulator did, for who started the process: JSON lines, each with `backend: emulated`.

Written only where NPUFUSE_EMULATED_LOG names a file: a line when the emulator is loaded, a line at the first call of
each operator, and a line with the number of calls when the process ends.
"""

from __future__ import annotations

import atexit
import json
import os
from collections import Counter

calls: Counter[str] = Counter()
_log = os.environ.get("NPUFUSE_EMULATED_LOG")


def write(**entry: object) -> None:
    """Add one line. A log that cannot be written must not end the user's program."""
    if not _log:
        return
    line = json.dumps({"backend": "emulated", "pid": os.getpid(), **entry}) + "\n"
    try:
        with open(_log, "a", encoding="utf-8") as file:  # noqa: PTH123 (append of one line is atomic enough; pathlib has no append)
            file.write(line)
    except OSError:
        pass


def called(operator: str) -> None:
    """Count one call."""
    calls[operator] += 1
    if calls[operator] == 1:
        write(event="first call", operator=operator)


def start(version: str, strict: bool) -> None:
    write(event="loaded", torch_npu=version, strict=strict)
    if _log:
        atexit.register(lambda: write(event="ended", calls=dict(calls)))
