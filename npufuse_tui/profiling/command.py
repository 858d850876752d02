"""`npufuse profile`: read a profile, scan the repo when one is given, and say what was found."""

from __future__ import annotations

import json
from pathlib import Path

from npufuse_tui.events import Listener, ignore
from npufuse_tui.model import Candidate
from npufuse_tui.profiling.profile import profile as read_profile
from npufuse_tui.profiling.report import to_json, to_markdown, to_table


def profile(path: Path, repo: Path | None, format: str, columns: int = 100, listen: Listener = ignore) -> str:
    """The answer as text in `format` ("table", "json" or "md"). Raises WrongInput for a path without a profile."""
    found: tuple[Candidate, ...] = ()
    if repo is not None:
        from npufuse_tui.scan.scanner import scan

        found = scan(repo, None, listen).candidates
    told = read_profile(path, found)
    if format == "json":
        return json.dumps(to_json(told), ensure_ascii=False, indent=2)
    return to_markdown(told) if format == "md" else to_table(told, columns)
