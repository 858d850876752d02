"""Files that hold either the old content or the new one, whatever happens in between."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_durably(path: Path, data: bytes, *, keep_previous: Path | None = None) -> None:
    """Replace the content of `path` at once: a temporary file, synced, renamed, the folder synced.

    `keep_previous` gets the content that was there before, also at once. Raises OSError; the old content then stands.
    """
    descriptor, name = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if keep_previous is not None and path.exists():
            _link_over(path, keep_previous)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _link_over(path: Path, other: Path) -> None:
    """Make `other` a second name of the file that `path` is now; where links cannot be made there is no copy."""
    beside = other.with_name(f".linking-{os.getpid()}-{other.name}")
    with suppress(OSError):
        beside.unlink(missing_ok=True)
        os.link(path, beside)
        beside.replace(other)


def append_durably(path: Path, line: bytes) -> None:
    """Add one line to a file and sync it. A line that an earlier writer left torn is ended first."""
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        torn = False
        if end:
            file.seek(end - 1)
            torn = file.read(1) != b"\n"
        file.write((b"\n" if torn else b"") + line.rstrip(b"\n") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; a file system that cannot is left at that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
