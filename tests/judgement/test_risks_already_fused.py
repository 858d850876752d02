"""A block whose fused twin stands beside it is no candidate any more, and the scan says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from npufuse_tui.model import Verdict
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.scan.scanner import ScanOptions, scan

NORM = """\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x.to(dtype)
"""

MLP = """\
import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.w1 = nn.Linear(size, inner)
        self.w2 = nn.Linear(inner, size)
        self.w3 = nn.Linear(size, inner)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))
"""

HEAD = """\
import torch
import torch_npu
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps
        self.fused = True

    def forward(self, x):
"""

CHAIN = "self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))"

BY_HAND = {
    "the other branch": f"""\
        if x.is_npu:
            return torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]
        else:
            return {CHAIN}
""",
    "the first branch": f"""\
        if x.device.type != "npu":
            y = {CHAIN}
        else:
            y = torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]
        return y
""",
    "an early return": f"""\
        if self.fused:
            return torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]
        return {CHAIN}
""",
    "an attempt": f"""\
        try:
            return torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]
        except RuntimeError:
            return {CHAIN}
""",
    "a conditional expression": f"""\
        return torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0] if x.is_npu else {CHAIN}
""",
    "torch.ops": f"""\
        if self.training:
            y = {CHAIN}
        else:
            y = torch.ops.npu.npu_rms_norm(x, self.weight, self.eps)[0]
        return y
""",
}

STILL_OPEN = {
    "another operator elsewhere": f"""\
        if self.training:
            x = torch_npu.npu_format_cast(x, 2)
            return x
        return {CHAIN}
""",
    "a branch that does not leave": f"""\
        if x.is_npu:
            torch_npu.npu.synchronize()
        return {CHAIN}
""",
    "both run": f"""\
        x = torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]
        return {CHAIN}
""",
}


def found(root: Path, text: str, name: str = "model.py", rules: tuple[str, ...] = ()) -> list:
    (root / name).write_text(text)
    return list(scan(root, ScanOptions(use_cache=False, jobs=1, rules=rules)).candidates)


@pytest.mark.parametrize("text", [NORM, MLP], ids=["rms_norm", "swiglu"])
def test_what_was_applied_is_told_as_fused_and_offers_no_edit(tmp_path: Path, text: str) -> None:
    [first] = found(tmp_path, text)
    assert first.edit is not None
    edited = compose(text.encode(), first.edit.files).decode()
    [second] = found(tmp_path, edited)
    assert second.id == first.id
    assert second.verdict is Verdict.REFUSED
    assert second.edit is None and second.diff is None
    [risk] = second.risks
    assert risk.code == "already_fused"
    assert risk.line is not None and "torch_npu." in edited.splitlines()[risk.line - 1]
    assert second.reason == risk.message


@pytest.mark.parametrize("case", BY_HAND)
def test_what_people_fused_by_hand_is_told_as_fused(tmp_path: Path, case: str) -> None:
    [one] = found(tmp_path, HEAD + BY_HAND[case])
    assert [risk.code for risk in one.risks] == ["already_fused"]
    assert one.verdict is Verdict.REFUSED


@pytest.mark.parametrize("case", STILL_OPEN)
def test_a_block_that_runs_on_the_npu_too_stays_open(tmp_path: Path, case: str) -> None:
    [one] = found(tmp_path, HEAD + STILL_OPEN[case])
    assert one.verdict is not Verdict.REFUSED
    assert "already_fused" not in [risk.code for risk in one.risks]
