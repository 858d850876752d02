"""Who has a session: a file that names the process. A dead owner's lock is taken over, a live one's is respected.

A process is known by host, boot, process-id namespace, process id and start time, so that a number used again by
another process, or the same number in another container, is not taken for the owner.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text
from npufuse_tui.workspace.journal import now

NAME = "lock"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, and who started it. `started` is in clock ticks since boot on Linux, else what `ps` says."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: str
    user: str = ""
    since: str = ""

    def is_dead(self) -> bool:
        """Whether it is certain that this process is no more; False also where it cannot be told from here."""
        here = this_process()
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return True
        if self.namespace != here.namespace:
            return False
        return _start_time(self.pid) != self.started


class SessionLock:
    """The lock of one session folder, while this process holds it."""

    def __init__(self, path: Path, owner: Owner) -> None:
        self._path, self._owner = path, owner

    @classmethod
    def take(cls, folder: Path) -> SessionLock:
        """Take the lock.

        Raises KeptSafe when it belongs to a process that lives, or that cannot be looked at from here.
        """
        path = folder / NAME
        me = this_process()
        with _one_at_a_time(folder):
            holder = owner_of(folder)
            if holder is not None and not holder.is_dead():
                raise KeptSafe(_held(folder, path, holder))
            path.unlink(missing_ok=True)
            _create_whole(path, me)
        return cls(path, me)

    def give_back(self) -> None:
        """Remove the lock if it is still this process's. May be called twice."""
        with suppress(OSError), _one_at_a_time(self._path.parent):
            if owner_of(self._path.parent) == self._owner:
                self._path.unlink(missing_ok=True)


def owner_of(folder: Path) -> Owner | None:
    """Who holds the session in `folder`; None when nobody does, or what the file says cannot be understood."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return Owner(**{**found, "pid": int(found["pid"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def this_process() -> Owner:
    pid = os.getpid()
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = str(os.getuid())
    return Owner(platform.node(), _boot(), _namespace(), pid, _start_time(pid) or "", user, now())


def _create_whole(path: Path, owner: Owner) -> None:
    """The file appears with its content or not at all; FileExistsError when another was faster."""
    descriptor, name = tempfile.mkstemp(prefix=".locking-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(owner), file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError as error:
        holder = owner_of(path.parent)
        raise KeptSafe(_held(path.parent, path, holder or owner)) from error
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Two processes that find the same dead owner take over one after the other. Without file locks: best effort."""
    descriptor = os.open(folder / ".lock-guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with suppress(OSError):  # a file system without locks: creating the file by link decides alone
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _held(folder: Path, path: Path, holder: Owner) -> Text:
    return Text(
        "session {id} is open in process {pid} on {host} (user {user}, since {since}): close it there, or, "
        "if that process is no more, remove {path}",
        "会话 {id} 正由 {host} 上的进程 {pid} 使用（用户 {user}，自 {since}）：请先在那里关闭；"
        "如该进程已不存在，请删除 {path}",
    ).format(id=folder.name, pid=holder.pid, host=holder.host, user=holder.user, since=holder.since, path=path)


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ["sysctl", "-n", "kern.boottime"], capture_output=True, text=True, timeout=10, check=False
        ).stdout.strip()
    return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _start_time(pid: int) -> str | None:
    """When the process started; None when there is no such process (a zombie counts as none)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _start_time_by_ps(pid) if not Path("/proc/self").exists() else None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold blanks and brackets
    return None if fields[0] in ("Z", "X") else fields[19]


def _start_time_by_ps(pid: int) -> str | None:
    try:
        done = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
