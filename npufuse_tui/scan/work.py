"""What a worker process of the scan does with its files."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from npufuse_tui.dataflow.repository import Repository
from npufuse_tui.dataflow.syntax import forget
from npufuse_tui.language import Text
from npufuse_tui.model import SkippedFile
from npufuse_tui.scan.discover import Found
from npufuse_tui.scan.file import scan_file, worker_rules
from npufuse_tui.scan.result import FileResult

STRICT = "NPUFUSE_STRICT"
"""Set in tests: a fault of npufuse itself then ends the scan, where it otherwise costs one file."""

_scans = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Work:
    """What is the same for every file of a scan. `scan` tells one scan of this process from the next."""

    root: str
    rules: tuple[str, ...]
    extra_rules: tuple[str, ...]
    scan: tuple[int, int]

    @classmethod
    def of(cls, root: Path, rules: tuple[str, ...], extra_rules: tuple[str, ...]) -> Work:
        return cls(str(root), rules, extra_rules, (os.getpid(), next(_scans)))


def run_chunk(work: Work, files: Sequence[Found]) -> list[FileResult]:
    """Look at some files."""
    with _rare_collections():
        return [_result(work, found) for found in files]


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Garbage is collected once, at the end: a parse makes millions of objects, and looking at them again and again
    costs a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        forget()
        gc.collect()
        if was_on:
            gc.enable()


def _result(work: Work, found: Found) -> FileResult:
    try:
        return scan_file(_repository(work), found.name, found.path, worker_rules(work.rules, work.extra_rules))
    except Exception as error:
        if os.environ.get(STRICT):
            raise
        why = Text(
            "npufuse failed on it: {kind}: {error}; please report this with the file",
            "npufuse 处理该文件时出错：{kind}：{error}；请附上该文件报告此问题",
        ).format(kind=type(error).__name__, error=str(error)[:200])
        return FileResult(found.name, 0, False, skipped=SkippedFile(found.name, why))


@lru_cache(maxsize=1)
def _repository(work: Work) -> Repository:
    """One for a scan: what is read for one file is there for the next, and the next scan reads anew."""
    return Repository(Path(work.root))
