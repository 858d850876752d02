"""A file → what the scan finds in it, and the file with everything applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npufuse_tui.model import Candidate, FileEdit, Verdict
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.fallback import prove
from npufuse_tui.scan.scanner import ScanOptions, scan

NORM = """\
class Norm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        h = x.float()
        # the mean of the squares
        variance = h.pow(2).mean(-1, keepdim=True)

        h = h * torch.rsqrt(variance + self.eps)
        return self.weight * h.to(dtype)
"""

MLP = """\
class Mlp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate = nn.Linear(size, size)
        self.up = nn.Linear(size, size)
        self.down = nn.Linear(size, size)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""

IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def candidates(folder: Path, source: bytes, rules: Sequence[str] = ()) -> list[Candidate]:
    (folder / "model.py").write_bytes(source)
    result = scan(folder / "model.py", ScanOptions(rules=tuple(rules), use_cache=False, jobs=1))
    assert not result.skipped, result.skipped
    return list(result.candidates)


def edits(found: Sequence[Candidate]) -> list[FileEdit]:
    return [file for one in found if one.edit is not None for file in one.edit.files]


def applied(folder: Path, source: bytes, rules: Sequence[str] = ()) -> bytes:
    """The file with every candidate in it; each edit is proven, alone and together."""
    found = [one for one in candidates(folder, source, rules) if one.verdict is not Verdict.REFUSED]
    assert found, "nothing was found to apply"
    for one in found:
        alone = edits([one])
        prove(source, compose(source, alone), alone)
    every = edits(found)
    after = compose(source, every)
    prove(source, after, every)
    return after
