"""Where sessions lie: beside the repository's own data, or in the user's state folder where that is not possible."""

from __future__ import annotations

import hashlib
import os
import secrets
from datetime import datetime, timezone
from pathlib import Path

from npufuse_tui.workspace.repository import Repository

STATE_FILE = "state.json"


def folders_of(path: Path, repository: Repository | None) -> list[Path]:
    """The folders that hold the sessions of a path, the preferred one first. They need not be there."""
    in_state = _state_folder(repository.top if repository else path)
    return [repository.common_dir / "npufuse", in_state] if repository else [in_state]


def new_session_folder(path: Path, repository: Repository | None) -> Path:
    """Make the folder of a new session: in the git folder where that can be written, else in the user's state folder.

    Raises OSError when neither can.
    """
    problem: OSError | None = None
    for folder in folders_of(path, repository):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return _new_in(folder)
        except OSError as error:
            problem = error
    raise problem or FileNotFoundError(path)


def _new_in(folder: Path) -> Path:
    while True:
        made = folder / f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(1)}"
        try:
            made.mkdir()
        except FileExistsError:
            continue
        return made


def session_folders(path: Path, repository: Repository | None) -> list[Path]:
    """The sessions of a path, the newest first.

    A folder without a state file is one that died before it was a session.
    """
    found = [
        entry
        for folder in folders_of(path, repository)
        if folder.is_dir()
        for entry in folder.iterdir()
        if (entry / STATE_FILE).is_file()
    ]
    return sorted(found, key=lambda one: (one.name[:15], (one / STATE_FILE).stat().st_mtime_ns), reverse=True)


def _state_folder(root: Path) -> Path:
    """One folder for each root: named so that a person finds it, and told apart by a digest of the whole path."""
    from platformdirs import user_state_path

    whole = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in root.name)[:40] or "root"
    return user_state_path("npufuse") / "sessions" / f"{name}-{whole}"
