"""Ending a command with everything that it started.

The command has a session and a process group of its own, and a mark in its environment that whatever it starts
inherits. Ending means: TERM to all, a moment, KILL to all, again until none is left. Processes that left the group
(daemons that called setsid) are found by the mark, by their session, or by their parent, in /proc.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

MARK = "NPUFUSE_RUN"
"""The environment variable whose value tells the processes of one run."""

_PROC = Path("/proc")


def members(mark: str, leader: int | None = None) -> set[int]:
    """The processes that run now with the mark in their environment, or in the session or family of the leader.

    A `mark` that ends in "/" stands for every mark that begins with it. Zombies are not counted.
    """
    if not _PROC.is_dir():
        return {leader} if leader is not None and _alive(leader) else set()
    exact = f"\0{MARK}={mark}".encode()
    exact += b"" if mark.endswith("/") else b"\0"
    me = os.getpid()
    found: set[int] = set()
    parents: dict[int, int] = {}
    for pid in _pids():
        stat = _stat(pid)
        if stat is None or pid == me:
            continue
        state, parent, session = stat
        if state in "ZX":
            continue
        parents[pid] = parent
        if (leader is not None and leader in (pid, session)) or _marked(pid, exact):
            found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def end(mark: str, leader: int | None = None, patience: float = 1.0) -> set[int]:
    """End all `members`: asked first, after `patience` seconds without asking. Returns those that could not be ended.

    The caller waits on its own child; here only signals are sent.
    """
    asked = _signal(members(mark, leader), signal.SIGTERM, leader)
    deadline = time.monotonic() + patience
    while asked and time.monotonic() < deadline:
        time.sleep(0.02)
        asked = {pid for pid in asked if _alive(pid)}
    for _ in range(20):  # one that forks while it is being ended is met again
        left = members(mark, leader)
        if not left:
            return set()
        _signal(left, signal.SIGKILL, leader)
        time.sleep(0.02)
    return members(mark, leader)


def _signal(pids: Iterable[int], kind: signal.Signals, leader: int | None) -> set[int]:
    found = set(pids)
    if leader is not None and leader in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, kind)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, kind)
    return found


def _alive(pid: int) -> bool:
    if not _PROC.is_dir():
        with contextlib.suppress(OSError):
            os.kill(pid, 0)
            return True
        return False
    stat = _stat(pid)
    return stat is not None and stat[0] not in "ZX"


def _pids() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(one.name) for one in _PROC.iterdir() if one.name.isdigit()]
    return []


def _stat(pid: int) -> tuple[str, int, int] | None:
    """(state, parent, session) of a process; see proc_pid_stat(5). The name in it may hold any character."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[1]), int(fields[3])
    except (OSError, IndexError, ValueError):
        return None


def _marked(pid: int, exact: bytes) -> bool:
    try:
        return exact in b"\0" + (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
