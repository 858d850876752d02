"""The unified diff of an edit, as a person reads it and `git apply` takes it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from npufuse_tui.model import FileEdit
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.text import SourceText

CONTEXT = 3


def unified(file: str, before: bytes, after: bytes, context: int = CONTEXT) -> str:
    """The diff of one file; lines end as the file's do."""
    encoding = SourceText(before).encoding
    return "".join(
        _with_end(line)
        for line in difflib.unified_diff(
            before.decode(encoding).splitlines(keepends=True),
            after.decode(encoding).splitlines(keepends=True),
            f"a/{file}",
            f"b/{file}",
            n=context,
        )
    )


def _with_end(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def edits_diff(sources: Mapping[str, bytes], edits: Sequence[FileEdit], context: int = CONTEXT) -> str:
    """The diff of all the edits; `sources` holds the files' bytes by name."""
    files = sorted({edit.file for edit in edits})
    parts = []
    for file in files:
        before = sources[file]
        parts.append(unified(file, before, compose(before, [edit for edit in edits if edit.file == file]), context))
    return "".join(parts)
