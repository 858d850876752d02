"""What the probes said: asked once, read by the layers."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npufuse_tui.doctor.cann import Cann, find_cann
from npufuse_tui.doctor.children import probe, run
from npufuse_tui.doctor.smi import Smi, board_values, parse_smi

EMULATED = "npufuse.emulated"
_SMI_LIMIT = 30.0  # seconds; npu-smi answers in one or two, and hangs when the driver does


@dataclass
class Findings:
    """One machine as one interpreter sees it. `limit` is the most seconds that one child may take."""

    python: str
    environ: dict[str, str]
    root: Path
    limit: float
    versions: dict[str, Any] = field(default_factory=dict)
    torch: dict[str, Any] = field(default_factory=dict)
    framework: dict[str, Any] = field(default_factory=dict)
    cann: Cann | None = None
    smi: Smi | None = None
    smi_trouble: str | None = None
    board: dict[str, str] = field(default_factory=dict)

    @property
    def device(self) -> bool:
        """Whether torch reaches an NPU: only then do the probes of the device run."""
        return bool(self.framework.get("available")) and self.framework.get("round_trip") is True

    def ask(self, name: str) -> dict[str, Any]:
        return probe(self.python, name, self.limit, self.environ)


def gather(python: str, environ: dict[str, str], root: Path, limit: float) -> Findings:
    """Ask everything that does not need a device."""
    found = Findings(python, environ, root, limit)
    found.cann = find_cann(environ, root)
    found.versions = found.ask("versions")
    if found.versions.get("torch"):
        # With torch_npu installed and its libraries out of reach, plain `import torch` fails: the probes import
        # torch_npu themselves, after torch.
        environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        if is_real(found.versions.get("torch_npu")):
            found.framework = found.ask("framework")
        works = "torch" in found.framework and "error" not in found.framework
        found.torch = {"works": True} if works else found.ask("torch_alone")
    _ask_smi(found)
    return found


def is_real(version: object) -> bool:
    """Whether an installed torch_npu is the library and not npufuse's stand-in."""
    return bool(version) and EMULATED not in str(version)


def torch_number(version: str) -> str:
    """The torch version that a version belongs to: 2.7.1.post2 and 2.7.1+cpu are both of 2.7.1."""
    found = re.match(r"\d+\.\d+\.\d+", version)
    return found[0] if found else "?"


def _ask_smi(found: Findings) -> None:
    tool = shutil.which("npu-smi", path=found.environ.get("PATH", os.defpath))
    for place in ("usr/local/bin/npu-smi", "usr/local/sbin/npu-smi"):
        tool = tool or (str(found.root / place) if os.access(found.root / place, os.X_OK) else None)
    if tool is None:
        return
    limit = min(found.limit, _SMI_LIMIT)
    answer = run([tool, "info"], limit, found.environ)
    if answer.timed_out or answer.trouble:
        found.smi_trouble = answer.trouble or f"npu-smi info: no answer within {limit:g} s"
        return
    found.smi = parse_smi(answer.output)
    if found.smi.chips:
        first = found.smi.chips[0].npu
        found.board = board_values(run([tool, "info", "-t", "board", "-i", str(first)], limit, found.environ).output)
