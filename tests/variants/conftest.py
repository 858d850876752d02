"""The one check of the tables: scan an input through the public door and compare it with its marks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from variants_table import Expected, lay_out, same

from npufuse_tui.scan.scanner import ScanOptions, scan


@pytest.fixture
def agrees(tmp_path: Path) -> Callable[[Path], None]:
    """Asserts that a scan of the input finds what its marks say: rule, verdict, lines, nothing else."""

    def check(source: Path) -> None:
        expected = lay_out(source, tmp_path / "repo")
        result = scan(tmp_path / "repo", ScanOptions(jobs=1, use_cache=False))
        found = sorted(
            Expected(one.file, one.start_line, one.end_line, one.rule, one.verdict.value) for one in result.candidates
        )
        told = "\n".join(f"{one.file}:{one.start_line} {one.rule} {one.reason.en}" for one in result.candidates)
        assert same(found, expected), f"{found}\n{expected}\n{told}"
        for one in result.candidates:
            assert (one.diff is not None) == (one.verdict.value != "refused"), one.reason.en

    return check
