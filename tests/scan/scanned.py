"""Small repos to scan."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from npufuse_tui.model import ScanResult
from npufuse_tui.scan.scanner import ScanOptions, scan

IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"

NORM = """

class Norm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x.to(dtype)
"""

MLP = """

class Mlp(nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up
"""


def write(root: Path, **files: str) -> Path:
    """Files by name, with __ for a slash and without the suffix."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def look(root: Path, **options: object) -> ScanResult:
    """A scan without a cache, in this process."""
    return scan(root, ScanOptions(**{"use_cache": False, "jobs": 1, **options}))  # type: ignore[arg-type]


def git(root: Path, *arguments: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always", *arguments],
        cwd=root,
        env=environment,
        check=True,
        capture_output=True,
    )
