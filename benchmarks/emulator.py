"""What the emulator costs: its import on top of torch's, and a call against the plain torch formula.

    python benchmarks/emulator.py

Times are CPU times of child processes with one thread, medians; the limits are 0.3 s for the import, and 3× for a call
on a (4, 512, 1024) input. Ends with 1 where a limit is passed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from npufuse_tui.emulator.environment import emulated

IMPORT_LIMIT = 0.3  # seconds
CALL_LIMIT = 3.0  # times the plain formula

IMPORT = """
import os, time
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
before = time.process_time()
import torch_npu
print(time.process_time() - before)
"""

CALLS = """
import json, statistics, time
import torch, torch_npu
from torch.nn import functional

torch.set_num_threads(1)
x = torch.randn(4, 512, 1024)
weight = torch.randn(1024)
residual = torch.randn(4, 512, 1024)
heads = x.view(4, 512, 16, 64)
cos, sin = torch.cos(torch.randn(1, 512, 1, 64)), torch.sin(torch.randn(1, 512, 1, 64))
qkv = [torch.randn(4, 16, 512, 64) for _ in range(3)]
triangle = torch.ones(2048, 2048).triu(1).bool()
causal = torch.ones(512, 512).triu(1).bool()
tokens, experts = x.reshape(2048, 1024), torch.randint(0, 8, (2048, 2))


def rms_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def swiglu(x):
    gate, up = x.chunk(2, -1)
    return functional.silu(gate) * up


def rotary(x):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def attention(query, key, value):
    scores = query @ key.transpose(-1, -2) * 0.125
    return torch.softmax(scores.masked_fill(causal, float("-inf")), -1) @ value


def permute(tokens, experts):
    order = torch.argsort(experts.flatten(), stable=True)
    return tokens[order // 2], torch.argsort(order)


CASES = {
    "npu_rms_norm": (lambda: torch_npu.npu_rms_norm(x, weight), lambda: rms_norm(x)),
    "npu_add_rms_norm": (lambda: torch_npu.npu_add_rms_norm(x, residual, weight), lambda: rms_norm(x + residual)),
    "npu_swiglu": (lambda: torch_npu.npu_swiglu(x), lambda: swiglu(x)),
    "npu_gelu": (lambda: torch_npu.npu_gelu(x), lambda: functional.gelu(x)),
    "npu_rotary_mul": (lambda: torch_npu.npu_rotary_mul(heads, cos, sin), lambda: rotary(heads)),
    "npu_fusion_attention": (
        lambda: torch_npu.npu_fusion_attention(*qkv, 16, "BNSD", atten_mask=triangle, scale=0.125, sparse_mode=2),
        lambda: attention(*qkv),
    ),
    "npu_moe_token_permute": (
        lambda: torch_npu.npu_moe_token_permute(tokens, experts),
        lambda: permute(tokens, experts),
    ),
}


def seconds(call):
    times = []
    for _ in range(9):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return statistics.median(times[2:])


print(json.dumps({name: [seconds(fused), seconds(plain)] for name, (fused, plain) in CASES.items()}))
"""


def child(code: str, folder: Path) -> str:
    environment = emulated(os.environ, version="2.14.0", folder=folder) | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        imports = [float(child(IMPORT, folder)) for _ in range(5)]
        calls: dict[str, list[float]] = json.loads(child(CALLS, folder))
    taken = statistics.median(imports)
    worst = taken > IMPORT_LIMIT
    print(f"import torch_npu, on top of torch: {taken:.3f} s (limit {IMPORT_LIMIT} s)")
    for name, (fused, plain) in calls.items():
        worst |= fused > CALL_LIMIT * plain
        print(f"{name}: {fused * 1e3:.2f} ms, plain {plain * 1e3:.2f} ms, {fused / plain:.2f}x (limit {CALL_LIMIT}x)")
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
