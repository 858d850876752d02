"""What is said of the ways in which public code writes this: inputs/moe, one file a row of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from variants_table import cases


@pytest.mark.parametrize("source", cases("moe"))
def test_the_scan_says_what_the_marks_say(source: Path, agrees: Callable[[Path], None]) -> None:
    agrees(source)
