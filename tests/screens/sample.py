"""A small recorded scan: real code, true diffs, for tests of the screens."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import replace

from npufuse_tui.language import Text, same
from npufuse_tui.model import (
    Backend,
    Binding,
    Candidate,
    CaseResult,
    Check,
    Edit,
    Estimate,
    FileEdit,
    Gate,
    GateKind,
    Priority,
    Reuse,
    Risk,
    RuleSummary,
    ScanResult,
    Severity,
    SkippedFile,
    Splice,
    Step,
    Verdict,
)

SOURCE = '''"""Blocks of a small language model."""

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    """Normalises by the root mean square of the last dimension."""

    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class MLP(nn.Module):
    """SwiGLU: 注意 gate 在前, up 在后."""

    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
'''

PRELUDE = """import os

try:
    import torch_npu
except ImportError:
    torch_npu = None

"""
NORM_OLD = SOURCE[SOURCE.index("        input_dtype") : SOURCE.index("\n\nclass MLP")]
NORM_NEW = """        if torch_npu is not None and os.environ.get("FUSED_NORM", "1") == "1" and hidden_states.is_npu:
            weight = self.weight.to(hidden_states.dtype)
            return torch_npu.npu_rms_norm(hidden_states, weight, epsilon=self.variance_epsilon)[0]
        else:
""" + "".join(f"    {line}\n" for line in NORM_OLD.splitlines())
MLP_OLD = "        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))\n"
MLP_NEW = """        if torch_npu is not None and os.environ.get("NPUFUSE_SWIGLU", "1") == "1" and x.is_npu:
            return self.down_proj(torch_npu.npu_swiglu(torch.cat((self.gate_proj(x), self.up_proj(x)), dim=-1), dim=-1))
        else:
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
"""
_SHA = hashlib.sha256(SOURCE.encode()).hexdigest()


def diff_of(file: str, old: str, new: str) -> str:
    after = SOURCE.replace(old, new).replace("import torch\n", PRELUDE + "import torch\n", 1)
    return "".join(difflib.unified_diff(SOURCE.splitlines(True), after.splitlines(True), f"a/{file}", f"b/{file}", n=3))


def _lines(text: str) -> tuple[int, int]:
    start = SOURCE[: SOURCE.index(text)].count("\n") + 1
    return start, start + text.rstrip("\n").count("\n")


def _edit(file: str, old: str, new: str) -> Edit:
    start = len(SOURCE[: SOURCE.index(old)].encode())
    files = (FileEdit(file, _SHA, (Splice(start, start + len(old.encode()), new),)),)
    return Edit(files, hashlib.sha256((file + new).encode()).hexdigest())


ENVIRONMENT = Gate(
    GateKind.ENVIRONMENT,
    'os.environ.get("NPUFUSE_RMS_NORM", "1") == "1"',
    Text("the repo has no switch of its own", "仓库里没有现成的开关"),
)
AVAILABILITY = Gate(
    GateKind.AVAILABILITY, "torch_npu is not None", Text("always on where torch_npu is there", "有 torch_npu 就启用")
)
EXISTING = Gate(
    GateKind.EXISTING, "self.config.use_fused", Text("config.py:12 has it already", "config.py:12 已有这个开关")
)


def norm(file: str = "model/blocks.py", id: str = "9f3a1c27") -> Candidate:
    """RMSNorm as Llama writes it."""
    first, last = _lines(NORM_OLD)
    return Candidate(
        id=id,
        rule="rms_norm",
        variant="weight_after_cast",
        api="torch_npu.npu_rms_norm",
        file=file,
        qualname="RMSNorm.forward",
        start_line=first,
        end_line=last,
        group="norm-1",
        verdict=Verdict.RECOMMENDED,
        priority=Priority.HIGH,
        reason=Text("Same numbers, same dtype, one launch instead of eight.", "数值与 dtype 相同, 八次下发变为一次。"),
        original=NORM_OLD,
        replacement=NORM_NEW.splitlines()[1].strip() + "\n",
        edit=_edit(file, NORM_OLD, NORM_NEW),
        diff=diff_of(file, NORM_OLD, NORM_NEW),
        risks=(
            Risk(
                "weight_dtype",
                Severity.INFO,
                Text(
                    "The weight is cast to the input's dtype before the call; the product is then rounded once.",
                    "调用前把权重转成输入的 dtype, 乘积只舍入一次。",
                ),
                last,
            ),
            Risk(
                "hidden_size",
                Severity.WARNING,
                Text(
                    "The last dimension is not known from the code; above 65,536 the operator refuses it.",
                    "从代码看不出最后一维的大小; 超过 65,536 时算子会拒绝。",
                ),
                first + 2,
            ),
        ),
        gate=ENVIRONMENT,
        gates=(ENVIRONMENT, AVAILABILITY),
        reuse=(Reuse("train.py", 14, "is_torch_npu_available"),),
        chain=(
            Step("to", "hidden_states.to(torch.float32)", first + 1, "cast"),
            Step("pow", "hidden_states.pow(2)", first + 2, "compute"),
            Step("mean", ".mean(-1, keepdim=True)", first + 2, "compute"),
            Step("add", "variance + self.variance_epsilon", first + 3, "compute"),
            Step("rsqrt", "torch.rsqrt(...)", first + 3, "compute"),
            Step("mul", "hidden_states * ...", first + 3, "compute", reads=2),
            Step("to", "hidden_states.to(input_dtype)", first + 4, "cast"),
            Step("mul", "self.weight * ...", first + 4, "compute", reads=2),
        ),
        estimate=Estimate(8, 1, 15, 2),
        bindings=(
            Binding("x", "hidden_states", "tensor", first + 1),
            Binding("weight", "self.weight", "parameter", last),
            Binding("eps", "self.variance_epsilon", "scalar", first + 3),
        ),
    )


def swiglu(file: str = "model/blocks.py", id: str = "51be7704") -> Candidate:
    """SwiGLU with two projections."""
    first, last = _lines(MLP_OLD)
    return Candidate(
        id=id,
        rule="swiglu",
        variant="two_projections",
        api="torch_npu.npu_swiglu",
        file=file,
        qualname="MLP.forward",
        start_line=first,
        end_line=last,
        group="mlp-1",
        verdict=Verdict.CAUTION,
        priority=Priority.MEDIUM,
        reason=Text("The concat costs a copy of both halves.", "拼接需要多拷贝两半数据。"),
        original=MLP_OLD,
        replacement=MLP_NEW.splitlines()[1].strip() + "\n",
        edit=_edit(file, MLP_OLD, MLP_NEW),
        diff=diff_of(file, MLP_OLD, MLP_NEW),
        risks=(
            Risk(
                "concat_order",
                Severity.DANGER,
                Text(
                    "gate must come first in the concat; swapped halves pass no check.",
                    "拼接时 gate 必须在前; 前后对调会得出错误结果。",
                ),
                first,
            ),
        ),
        gate=ENVIRONMENT,
        gates=(ENVIRONMENT, EXISTING, AVAILABILITY),
        chain=(
            Step("silu", "F.silu(self.gate_proj(x))", first, "compute"),
            Step("mul", "... * self.up_proj(x)", first, "compute", reads=2),
        ),
        estimate=Estimate(2, 2, 5, 4),
        bindings=(
            Binding("gate", "self.gate_proj(x)", "tensor", first),
            Binding("up", "self.up_proj(x)", "tensor", first),
        ),
    )


def refused(file: str = "model/old.py", id: str = "c0ffee11") -> Candidate:
    """A norm that must stay as it is."""
    return replace(
        norm(file, id),
        qualname="LayerScaleNorm.forward",
        group="norm-2",
        verdict=Verdict.REFUSED,
        priority=Priority.LOW,
        reason=Text("The variance is used again after the chain.", "方差在这串算子之后还要使用。"),
        replacement=None,
        edit=None,
        diff=None,
        gate=None,
        gates=(),
        risks=(),
        estimate=None,
    )


def passed(cases: int = 3) -> Check:
    """A check that went well."""
    per_case = tuple(
        CaseResult(shape, dtype, "contiguous", cosine, diff, 0.9999998, dtype, True)
        for shape, dtype, cosine, diff in (
            ("(2, 16, 64)", "float32", 1.0, 2.4e-7),
            ("(2, 16, 64)", "bfloat16", 0.9999991, 7.8e-3),
            ("(1, 1, 4096)", "float16", 0.9999996, 9.8e-4),
        )[:cases]
    )
    return Check("passed", Backend.EMULATED, cases, 0.9999991, 7.8e-3, 0.9999998, True, None, per_case)


def candidates() -> tuple[Candidate, ...]:
    files = ("model/blocks.py", "model/decoder.py")
    return (
        norm(files[0]),
        swiglu(files[0]),
        norm(files[1], "9f3a1c28"),
        replace(swiglu(files[1], "51be7705"), verdict=Verdict.RECOMMENDED, risks=()),
        refused(),
    )


def many(count: int) -> tuple[Candidate, ...]:
    """That many candidates over many files."""
    kinds = (norm(), swiglu(), refused())
    return tuple(
        replace(
            kinds[index % 3],
            id=f"{index:08x}",
            file=f"models/model_{index // 7:04d}/modeling.py",
            start_line=20 + index % 900,
        )
        for index in range(count)
    )


def scan_result(root: str = "/work/tiny-llm", found: tuple[Candidate, ...] | None = None) -> ScanResult:
    """The result of a scan that found those."""
    found = candidates() if found is None else found
    counts = {
        rule: [one for one in found if one.rule == rule] for rule in ("add_rms_norm", "rms_norm", "rotary", "swiglu")
    }
    return ScanResult(
        root=root,
        commit="4be1f7c2a90d",
        dirty=False,
        files=42,
        parsed=9,
        bytes=183_402,
        seconds=0.31,
        cached=0,
        skipped=(
            SkippedFile("vendor/old.py", Text("does not parse: line 3 is Python 2", "无法解析: 第 3 行是 Python 2")),
        ),
        rules=tuple(
            RuleSummary(
                rule,
                f"torch_npu.npu_{rule}",
                len(members),
                sum(one.verdict is Verdict.RECOMMENDED for one in members),
                sum(one.verdict is Verdict.CAUTION for one in members),
                sum(one.verdict is Verdict.REFUSED for one in members),
                same("") if members else Text("no file holds this chain", "没有文件包含这串算子"),
            )
            for rule, members in counts.items()
        ),
        candidates=found,
    )
