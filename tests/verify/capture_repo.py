"""A small repo with a model, for tests that record what it is called with."""

from __future__ import annotations

from pathlib import Path

from npufuse_tui.language import same
from npufuse_tui.model import Binding, Candidate, Priority, Verdict

MODEL = '''\
"""A model."""
from __future__ import annotations

import torch
from torch import nn
import torch.nn.functional as F


class Norm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, hidden_states):
        """Normalises."""
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.eps)
        return self.weight * hidden_states.to(input_dtype)


class MLP(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate_proj = nn.Linear(size, 2 * size, bias=False)
        self.up_proj = nn.Linear(size, 2 * size, bias=False)
        self.down_proj = nn.Linear(2 * size, size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Unused(nn.Module):
    def forward(self, x, weight):
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Branch(nn.Module):
    def forward(self, x, weight=None):
        if weight is not None:
            return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        return x


class Model(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.norm = Norm(size)
        self.mlp = MLP(size)
        self.branch = Branch()

    def forward(self, x):
        return self.branch(self.mlp(self.norm(x.transpose(0, 1))))
'''

TRAIN = """\
import torch
from model import Model

def main(steps=6):
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.randn(5 if step % 3 else 7, 2, 16)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, "loss", loss.item(), flush=True)

if __name__ == "__main__":
    main()
"""


def candidate(
    name: str,
    qualname: str,
    lines: tuple[int, int],
    bindings: dict[str, str],
    *,
    file: str = "model.py",
    rule: str = "",
) -> Candidate:
    return Candidate(
        id=name,
        rule="rms_norm",
        variant="weight",
        api="torch_npu.npu_rms_norm",
        file=file,
        qualname=qualname,
        start_line=lines[0],
        end_line=lines[1],
        group="g",
        verdict=Verdict.RECOMMENDED,
        priority=Priority.HIGH,
        reason=same("as written"),
        original="",
        replacement="",
        edit=None,
        diff=None,
        bindings=tuple(Binding(key, source, "tensor") for key, source in bindings.items()),
    )


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def candidates(text: str = MODEL, file: str = "model.py") -> tuple[Candidate, ...]:
    norm = (line_of(text, "input_dtype = hidden"), line_of(text, "return self.weight * hidden"))
    mlp = line_of(text, "return self.down_proj")
    unused, branch = (
        number for number, line in enumerate(text.splitlines(), 1) if "return weight * (x * torch.rsqrt" in line
    )
    free = {"x": "x", "weight": "weight"}
    return (
        candidate(
            "norm1", "Norm.forward", norm, {"x": "hidden_states", "weight": "self.weight", "eps": "self.eps"}, file=file
        ),
        candidate("mlp1", "MLP.forward", (mlp, mlp), {"gate": "self.gate_proj(x)", "up": "self.up_proj(x)"}, file=file),
        candidate("unused1", "Unused.forward", (unused, unused), free, file=file),
        candidate("branch1", "Branch.forward", (branch, branch), free, file=file),
    )


def make(folder: Path, files: dict[str, str] | None = None) -> Path:
    for name, text in {"model.py": MODEL, "train.py": TRAIN, **(files or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
