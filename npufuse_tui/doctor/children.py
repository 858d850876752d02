"""Children of the doctor: each has a time limit, no standard input, its own process group, and is surely ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npufuse_tui.doctor.probe import MARK

_MOST = 4 << 20  # bytes that are read of an output; the rest is left in the file


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child said. `code` is None when it was ended at its time limit or could not be started (`trouble`)."""

    code: int | None
    output: str
    trouble: str | None = None
    timed_out: bool = False

    @property
    def last_line(self) -> str:
        lines = [one.strip() for one in self.output.splitlines() if one.strip()]
        return lines[-1][:300] if lines else ""


def run(command: Sequence[str], limit: float, environ: Mapping[str, str]) -> Answer:
    """Run a command for at most `limit` seconds. What it leaves running in its process group is ended with it."""
    with tempfile.TemporaryDirectory(prefix="npufuse-doctor-") as folder:
        log = Path(folder) / "output"
        with log.open("wb") as stream:
            try:
                child = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=dict(environ),
                    start_new_session=True,
                )
            except OSError as error:
                return Answer(None, "", trouble=f"{command[0]}: {error.strerror or error}")
            try:
                code: int | None = child.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(child)
        with log.open("rb") as stream:
            output = stream.read(_MOST).decode("utf-8", errors="replace")
    return Answer(code, output, timed_out=code is None)


def probe(python: str, name: str, limit: float, environ: Mapping[str, str], device: str = "npu:0") -> dict[str, Any]:
    """Ask one probe under an interpreter. Without an answer there is an "error", and "timed_out" at the time limit."""
    source = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    answer = run([python, "-c", source, name, device], limit, environ)
    for line in reversed(answer.output.splitlines()):
        if line.startswith(MARK):
            with contextlib.suppress(ValueError):
                found: dict[str, Any] = json.loads(line[len(MARK) :])
                return found
    if answer.timed_out:
        return {"error": f"no answer within {limit:g} s", "timed_out": True}
    return {"error": answer.trouble or answer.last_line or f"ended with {answer.code}"}


def _end(child: subprocess.Popen[bytes]) -> None:
    # The group outlives its leader: survivors are ended even when the child is done.
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        if child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(2)
