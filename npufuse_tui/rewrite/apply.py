"""Writes edits into a worktree: read, compare, splice, prove, then replace the file at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text
from npufuse_tui.model import FileEdit
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.fallback import prove


def write_edits(worktree: Path, edits: Sequence[FileEdit]) -> list[Path]:
    """Edit the files of a worktree; returns the paths written. Raises KeptSafe, and then no file has changed."""
    planned: list[tuple[Path, bytes]] = []
    for file in sorted({edit.file for edit in edits}):
        path = worktree / file
        if path.is_symlink() or not path.is_file() or worktree.resolve() not in path.resolve().parents:
            raise KeptSafe(
                Text(
                    "{file} is not a plain file inside of the repo; it is left alone",
                    "{file} 不是仓库内的普通文件，未作修改",
                ).format(file=file)
            )
        own = [edit for edit in edits if edit.file == file]
        before = path.read_bytes()
        after = compose(before, own)
        prove(before, after, own)
        planned.append((path, after))
    for path, after in planned:
        replace_file(path, after)
    return [path for path, _ in planned]


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content at once and durably, its mode kept."""
    mode = path.stat().st_mode
    descriptor, name = tempfile.mkstemp(prefix=".npufuse-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
