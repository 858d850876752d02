"""A machine to diagnose: a file system, an npu-smi, and packages on the path of a child."""

from __future__ import annotations

import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from outputs import A2, BOARD
from test_cann import tree

from npufuse_tui import language
from npufuse_tui.doctor import Diagnosis, diagnose
from npufuse_tui.doctor.findings import Findings, gather

SIMULATED = Path(__file__).with_name("simulated_torch_npu.txt")


@dataclass
class Machine:
    """Built up by a test, then diagnosed. `torch` None uses the real one."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    limit: float = 60.0

    @property
    def site(self) -> Path:
        return self.root / "site"

    def package(self, name: str, version: str, source: str) -> None:
        """A package that the child's Python finds first, with the record of its version."""
        (self.site / name).mkdir(parents=True, exist_ok=True)
        (self.site / name / "__init__.py").write_text(source)
        record = self.site / f"{name}-{version}.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    def small_torch(self, version: str = "2.7.1") -> None:
        """A torch that imports at once and can add."""
        self.package(
            "torch",
            version,
            f"__version__ = {version!r}\nclass T:\n    def __add__(self, o): return self\n    def sum(self): return 4\n"
            "def ones(n): return T()\n",
        )

    def smi(self, output: str = A2, board: str = BOARD, script: str | None = None) -> None:
        """An npu-smi that prints this."""
        folder = self.root / "usr/local/bin"
        folder.mkdir(parents=True, exist_ok=True)
        (self.root / "info.txt").write_text(output)
        (self.root / "board.txt").write_text(board)
        tool = folder / "npu-smi"
        tool.write_text(
            script
            or f'#!/bin/sh\nif [ "$2" = -t ]; then cat {self.root}/board.txt; else cat {self.root}/info.txt; fi\n'
        )
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    def cann(self) -> Path:
        home = tree(self.root)
        self.environ |= {"ASCEND_HOME_PATH": str(home), "LD_LIBRARY_PATH": str(home / "lib64")}
        return home

    def driver(self) -> None:
        base = self.root / "usr/local/Ascend/driver"
        base.mkdir(parents=True, exist_ok=True)
        (base / "version.info").write_text("Version=24.1.rc2\n")
        (self.root / "dev").mkdir()
        for name in ("davinci0", "davinci1"):
            (self.root / "dev" / name).touch()

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.root), "PYTHONPATH": str(self.site)} | self.environ

    def diagnose(self, python: str = sys.executable) -> Diagnosis:
        return diagnose(python, environ=self.environment, root=self.root, limit=self.limit)

    def gather(self) -> Findings:
        return gather(sys.executable, self.environment, self.root, self.limit)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(autouse=True)
def english():
    language.set_language("en")
    yield
    language.set_language("en")
