"""The files that were approved, as they were:

kept with the session, so that nothing depends on a checkout that goes on changing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from npufuse_tui.durable import write_durably
from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text
from npufuse_tui.model import FileEdit

FOLDER = "originals"


def keep(session_folder: Path, contents: Iterable[bytes]) -> None:
    """Save contents under their digests. What is there already is the same."""
    folder = session_folder / FOLDER
    folder.mkdir(exist_ok=True)
    for data in contents:
        path = folder / hashlib.sha256(data).hexdigest()
        if not path.is_file():
            write_durably(path, data)


def original(session_folder: Path, edit: FileEdit) -> bytes:
    """The content that an edit starts from. Raises KeptSafe when it is not what was kept."""
    try:
        data = (session_folder / FOLDER / edit.sha256).read_bytes()
    except OSError:
        data = b""
    if hashlib.sha256(data).hexdigest() != edit.sha256:
        raise KeptSafe(
            Text(
                "the copy of {file} that was approved is gone from the session folder {folder}: start a new session",
                "会话文件夹 {folder} 中已没有批准时的 {file} 副本：请新建会话",
            ).format(file=edit.file, folder=session_folder)
        )
    return data
