"""The edited function gives the dtype that the original gave, whatever the dtypes of its inputs: run, on the emulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rewritten import IMPORTS, applied

from npufuse_tui.emulator.environment import emulated

RETURNS = {
    "cast back, then the weight": "self.weight * h.to(dtype)",
    "the weight, then cast back": "(self.weight * h).to(dtype)",
    "the weight in float32": "self.weight.float() * h",
    "never cast back": "self.weight * h",
    "as the weight": "self.weight * h.to(self.weight.dtype)",
}

CLASS = """

class Norm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        h = x.float()
        variance = h.pow(2).mean(-1, keepdim=True)
        h = h * torch.rsqrt(variance + self.eps)
        return RETURNS
"""

CHILD = """
import importlib.util, json, sys
import torch

def load(path):
    spec = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

rows = []
for x_dtype in (torch.float16, torch.bfloat16, torch.float32):
    for weight_dtype in dict.fromkeys((x_dtype, torch.float32)):
        outputs = []
        for path in sys.argv[1:]:
            torch.manual_seed(0)
            model = load(path).Norm(64).to(weight_dtype).to("npu")
            outputs.append(model(torch.randn(2, 3, 64).to(x_dtype).to("npu")))
        rows.append((str(x_dtype), str(weight_dtype), *(str(one.dtype) for one in outputs),
                     float((outputs[0].float() - outputs[1].float()).abs().max())))
print(json.dumps(rows))
"""


@pytest.mark.parametrize("name", RETURNS)
def test_dtypes_agree(name: str, tmp_path: Path) -> None:
    source = (IMPORTS + CLASS.replace("RETURNS", RETURNS[name])).encode()
    after = applied(tmp_path, source, ("rms_norm",))
    original, edited, log = tmp_path / "original.py", tmp_path / "edited.py", tmp_path / "log.jsonl"
    original.write_bytes(source)
    edited.write_bytes(after)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(original), str(edited)],
        env=emulated({**os.environ, "OMP_NUM_THREADS": "1"}, log=log, folder=tmp_path / "emulator"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(done.stdout)
    assert len(rows) == 5
    for x_dtype, weight_dtype, before, now, difference in rows:
        assert now == before, (x_dtype, weight_dtype)
        assert difference < 2e-2
    assert '"operator": "npu_rms_norm"' in log.read_text()  # the fused branch ran, not the original twice
