"""Runs each file of `inside/` as a test run of its own, in a child that sees the emulator and nothing of npufuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from npufuse_tui.emulator.environment import emulated

INSIDE = Path(__file__).with_name("inside")


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(INSIDE.glob("check_*.py")), ids=lambda path: path.stem)
def test_inside(file: Path, tmp_path: Path) -> None:
    environment = emulated(os.environ, version="2.14.0", folder=tmp_path / "emulator")
    environment |= {"OMP_NUM_THREADS": "1", "NPUFUSE_LANG": "en"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=short"]
    command += ["-c", str(INSIDE / "pytest.ini"), "--rootdir", str(INSIDE), "-W", "ignore::UserWarning", str(file)]
    result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-3000:]
    assert " passed" in result.stdout
