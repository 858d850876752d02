"""What a worker process of the scan does with its files: the cache first, then the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from npufuse_tui.dataflow.repository import Repository
from npufuse_tui.scan.discover import Found
from npufuse_tui.scan.file import FileResult, scan_file, worker_rules


@dataclass(frozen=True, slots=True)
class Work:
    """What is the same for every file of a scan."""

    root: str
    rules: tuple[str, ...]
    extra_rules: tuple[str, ...]
    use_cache: bool
    target: str


def run_chunk(work: Work, files: Sequence[Found]) -> list[FileResult]:
    """Look at some files."""
    repository = _repository(work.root)
    rules = worker_rules(work.rules, work.extra_rules)
    return [scan_file(repository, found.name, found.path, rules) for found in files]


@lru_cache(maxsize=1)
def _repository(root: str) -> Repository:
    return Repository(Path(root))
