from __future__ import annotations

from pathlib import Path

import pytest
import qwen3
from program import Program

from npufuse_tui import demo


@pytest.fixture
def in_qwen3(tmp_path: Path) -> Program:
    pytest.importorskip("transformers")
    return Program(qwen3.make(tmp_path / "repo"), tmp_path / "home")


@pytest.fixture
def in_demo(tmp_path: Path) -> Program:
    return Program(demo.create(tmp_path / "demo"), tmp_path / "home")
