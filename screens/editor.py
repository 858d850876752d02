"""The person's own editor: npufuse steps aside while it runs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from npufuse_tui.i18n import tr

if TYPE_CHECKING:
    from npufuse_tui.app import NpufuseApp

NO_EDITOR = object()
_TAKES_LINE = {"vi", "vim", "nvim", "nano", "emacs", "micro", "kak", "hx", "ne", "joe", "mg", "view"}


def command() -> list[str]:
    """The command of the person's editor, or an empty list."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(chosen)
    except ValueError:
        return []
    return words if words and shutil.which(words[0]) else []


def _run(app: NpufuseApp, words: list[str]) -> bool:
    try:
        with app.suspend():
            subprocess.run(words, check=False)
    except (SuspendNotSupported, OSError):
        return False
    app.refresh()
    return True


async def open_at(app: NpufuseApp, file: str, line: int) -> None:
    """Open a file of the repo at a line; without an editor, say where it is."""
    words, session = command(), app.session
    if session is None:
        return
    path = Path(session.root) / file
    place = f"{path}:{line}"
    if not words:
        app.copy_to_clipboard(place)
        app._say(tr("$EDITOR is not set; {place} is copied.", place=place), "warn")
        return
    name = Path(words[0]).name
    at = [f"+{line}"] if name in _TAKES_LINE else []
    target = ["--goto", place] if name in ("code", "codium", "cursor") else [*at, str(path)]
    if not _run(app, [*words, *target]):
        app._say(tr("{editor} could not be started here.", editor=name), "warn")


async def edit_text(app: NpufuseApp, text: str, suffix: str) -> object:
    """`text` as it comes back from the editor; NO_EDITOR when there is none that can be used."""
    words = command()
    if not words:
        return NO_EDITOR
    with tempfile.TemporaryDirectory(prefix="npufuse-") as folder:
        path = Path(folder) / f"replacement{suffix}"
        path.write_text(text, "utf-8")
        if not _run(app, [*words, str(path)]):
            return NO_EDITOR
        return path.read_text("utf-8", "replace")
