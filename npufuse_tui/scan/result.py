"""What the scan of one file gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from npufuse_tui.dataflow.repository import Dependencies
from npufuse_tui.model import Candidate, SkippedFile


@dataclass(frozen=True, slots=True)
class FileResult:
    """Candidates, or the reason why the file was not looked at.

    `digest` is that of the bytes that were looked at, "" when there were none; `dependencies` are the other files that
    the result rests on.
    """

    file: str
    bytes: int
    parsed: bool
    candidates: tuple[Candidate, ...] = ()
    skipped: SkippedFile | None = None
    cached: bool = False
    digest: str = ""
    dependencies: Dependencies = field(default_factory=Dependencies)
