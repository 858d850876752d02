"""Sessions as the engine leaves them, built in code: a real-looking RMSNorm and SwiGLU, and whatever a test changes."""

from __future__ import annotations

import difflib
import json
import math
import random
from dataclasses import replace
from pathlib import Path

from npufuse_tui.language import Text
from npufuse_tui.model import (
    Approval,
    Backend,
    Baseline,
    Candidate,
    CaseResult,
    Check,
    Conclusion,
    Decision,
    Estimate,
    Gate,
    GateKind,
    Launch,
    LossResult,
    Priority,
    Reuse,
    Risk,
    RuleSummary,
    RunRecord,
    ScanResult,
    Session,
    Severity,
    SkippedFile,
    SpeedResult,
    Stage,
    Step,
    Task,
    TaskState,
    Verdict,
)

NORM = """        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)
"""
NORM_FUSED = """        if NPUFUSE_RMS_NORM and hidden_states.is_npu:
            return torch_npu.npu_rms_norm(hidden_states, self.weight, epsilon=self.variance_epsilon)[0]
        else:
            input_dtype = hidden_states.dtype
            hidden_states = hidden_states.to(torch.float32)
            variance = hidden_states.pow(2).mean(-1, keepdim=True)
            hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
            return self.weight * hidden_states.to(input_dtype)
"""
MLP = "        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))\n"
MLP_FUSED = """        if NPUFUSE_SWIGLU and x.is_npu:
            gate_up = torch.cat((self.gate_proj(x), self.up_proj(x)), dim=-1)
            return self.down_proj(torch_npu.npu_swiglu(gate_up, dim=-1))
        else:
            return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
"""


def unified(file: str, before: str, after: str, head: str, line: int) -> str:
    """A unified diff of a function whose `head` lines stand before the block that begins at `line`."""
    lead = head.splitlines(keepends=True)
    old = [
        *["\n"] * (line - 1 - len(lead)),
        *lead,
        *before.splitlines(keepends=True),
        "\n",
        "    def extra_repr(self):\n",
    ]
    new = [
        *["\n"] * (line - 1 - len(lead)),
        *lead,
        *after.splitlines(keepends=True),
        "\n",
        "    def extra_repr(self):\n",
    ]
    return "".join(difflib.unified_diff(old, new, f"a/{file}", f"b/{file}", n=3))


def case(shape: str, dtype: str, passed: bool = True, **more: float) -> CaseResult:
    values = {"cosine": 0.9999998, "abs_diff": 3.1e-7, "grad_cosine": 0.9999996, "grad_abs_diff": 8.8e-7} | more
    return CaseResult(shape=shape, dtype=dtype, layout="contiguous", dtype_out=dtype, passed=passed, **values)


def check(status: str = "passed", backend: Backend = Backend.EMULATED, **more: object) -> Check:
    cases = (
        case("x(2, 8, 64) weight(64)", "float32"),
        case(
            "x(2, 8, 64) weight(64)",
            "bfloat16",
            abs_diff=0.0078,
            reference_error_original=0.0041,
            reference_error_fused=0.0039,
        ),
        case("x(3, 5, 128) weight(128)", "float16", abs_diff=0.00098),
    )
    values: dict[str, object] = {
        "cases": 18,
        "worst_cosine": 0.9999957,
        "worst_abs_diff": 0.0078,
        "worst_grad_cosine": 0.9999941,
        "dtype_equal": True,
        "per_case": cases,
    }
    return Check(status=status, backend=backend, **(values | more))  # type: ignore[arg-type]


def norm(number: int = 0, **changes: object) -> Candidate:
    file = f"models/qwen3/modeling_qwen3{'' if not number else f'_{number}'}.py"
    candidate = Candidate(
        id=f"9f3a1c{27 + number:02d}",
        rule="rms_norm",
        variant="weight",
        api="torch_npu.npu_rms_norm",
        file=file,
        qualname="Qwen3RMSNorm.forward",
        start_line=59,
        end_line=63,
        group="g-rms-weight",
        verdict=Verdict.RECOMMENDED,
        priority=Priority.HIGH,
        reason=Text(
            "the whole chain is one operator, and the dtype of the output is kept", "整条链是一个算子，输出 dtype 不变"
        ),
        original=NORM,
        replacement=NORM_FUSED,
        edit=None,
        diff=unified(file, NORM, NORM_FUSED, "    def forward(self, hidden_states):\n", 59),
        generated_from="models/qwen3/modular_qwen3.py",
        risks=(
            Risk(
                "dtype_promotion",
                Severity.WARNING,
                Text("a float32 weight makes the output float32", "float32 的 weight 使输出为 float32"),
                63,
            ),
            Risk(
                "use_kernel_forward",
                Severity.INFO,
                Text("a hub kernel may stand in for this class", "该类可能已被 hub 算子替换"),
                50,
            ),
        ),
        gate=Gate(
            GateKind.ENVIRONMENT, "NPUFUSE_RMS_NORM", Text("the repo has no switch of its own", "仓库没有自己的开关")
        ),
        reuse=(Reuse("utils/import_utils.py", 812, "is_torch_npu_available"),),
        chain=(
            Step("to", "hidden_states.to(torch.float32)", 60, "cast"),
            Step("pow", "hidden_states.pow(2)", 61, "compute"),
            Step("mean", ".mean(-1, keepdim=True)", 61, "compute"),
            Step("add", "variance + self.variance_epsilon", 62, "compute"),
            Step("rsqrt", "torch.rsqrt(…)", 62, "compute"),
            Step("mul", "hidden_states * …", 62, "compute", reads=2),
            Step("to", ".to(input_dtype)", 63, "cast"),
            Step("mul", "self.weight * …", 63, "compute", reads=2),
        ),
        estimate=Estimate(8, 1, 15, 2),
        check=check(),
    )
    return replace(candidate, **changes)  # type: ignore[arg-type]


def mlp(**changes: object) -> Candidate:
    file = "models/qwen3/modeling_qwen3.py"
    candidate = Candidate(
        id="b81e44d0",
        rule="swiglu",
        variant="two_linears",
        api="torch_npu.npu_swiglu",
        file=file,
        qualname="Qwen3MLP.forward",
        start_line=81,
        end_line=81,
        group="g-swiglu-linears",
        verdict=Verdict.CAUTION,
        priority=Priority.MEDIUM,
        reason=Text("the activation must be SiLU when it runs", "运行时的激活函数必须是 SiLU"),
        original=MLP,
        replacement=MLP_FUSED,
        edit=None,
        diff=unified(file, MLP, MLP_FUSED, "    def forward(self, x):\n", 81),
        risks=(
            Risk(
                "concat_cost",
                Severity.WARNING,
                Text("the concat copies both halves once", "拼接会把两半各复制一次"),
                81,
            ),
        ),
        gate=Gate(
            GateKind.ENVIRONMENT, "NPUFUSE_SWIGLU", Text("the repo has no switch of its own", "仓库没有自己的开关")
        ),
        estimate=Estimate(2, 2, 5, 6),
        check=check(cases=12, worst_cosine=0.9999989),
    )
    return replace(candidate, **changes)  # type: ignore[arg-type]


def moe() -> Candidate:
    return Candidate(
        id="77aa0001",
        rule="moe_grouped",
        variant="loop",
        api="torch_npu.npu_grouped_matmul",
        file="models/qwen3_moe/modeling_qwen3_moe.py",
        qualname="Qwen3MoeSparseMoeBlock.forward",
        start_line=210,
        end_line=236,
        group="g-moe",
        verdict=Verdict.REFUSED,
        priority=Priority.HIGH,
        reason=Text(
            "the experts hold biases that the grouped operator does not take here", "专家带有偏置，分组算子在此不支持"
        ),
        original="        for expert_idx in expert_hit:\n            current = self.experts[expert_idx](hidden)\n",
        replacement=None,
        edit=None,
        diff=None,
    )


def scan(*candidates: Candidate, **changes: object) -> ScanResult:
    found = candidates or (norm(), norm(1), norm(2), mlp(), moe())

    def row(rule: str, api: str, none: Text) -> RuleSummary:
        own = [one for one in found if one.rule == rule]
        count = [sum(one.verdict is verdict for one in own) for verdict in Verdict]
        return RuleSummary(rule, api, len(own), *count, Text("found", "已找到") if own else none)

    nothing = Text("no file holds this chain", "没有文件含有该算子链")
    result = ScanResult(
        root="/home/lin/work/qwen3",
        commit="4f0c1c2f2a6be0b7f0c3f5e1a8de90cbd1a2b3c4",
        dirty=True,
        files=2860,
        parsed=812,
        bytes=52829506,
        seconds=3.1,
        cached=0,
        skipped=(
            SkippedFile(
                "legacy/py2.py",
                Text("does not parse: line 3: Missing parentheses", "无法解析：第 3 行：Missing parentheses"),
            ),
            SkippedFile("gen/huge.py", Text("larger than 5 MB", "大于 5 MB")),
        ),
        rules=(
            row("rms_norm", "torch_npu.npu_rms_norm", nothing),
            row("swiglu", "torch_npu.npu_swiglu", nothing),
            row("rotary", "torch_npu.npu_rotary_mul", nothing),
            row("moe_grouped", "torch_npu.npu_grouped_matmul", nothing),
        ),
        candidates=found,
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def write_metrics(
    path: Path, steps: int, seed: int, shift: float = 0.0, step_time: float = 2.9, nan_at: int | None = None
) -> None:
    """A loss that falls from 12 as a small language model's does, and step times with a slow first step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shape, noise = random.Random(1), random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        for step in range(steps):
            wave = shape.gauss(0, 0.05)
            loss = 2.4 + 10.1 * math.exp(-step / 14) + wave * (1 + 3 * math.exp(-step / 9))
            loss *= 1 + noise.gauss(0, 1.5e-5) + shift * step
            if nan_at is not None and step >= nan_at:
                loss = math.nan
            time = step_time * (2.4 if step == 0 else 1) * (1 + abs(noise.gauss(0, 0.03)))
            out.write(
                json.dumps({"step": step, "loss": loss, "step_time": time, "phase": "warmup" if step < 5 else "steady"})
                + "\n"
            )


def run(label: str, task: str | None, steps: int = 60, **changes: object) -> RunRecord:
    where = f"runs/{task or 'baseline'}/{label}"
    record = RunRecord(
        label=label,
        command="torchrun --nproc_per_node 1 train.py --steps 60 --seed 0 --hf-token=hf_abcdefghijklmnopqrstuv",
        commit="4f0c1c2f2a6be0b7f0c3f5e1a8de90cbd1a2b3c4",
        started="2026-11-30T09:14:03Z",
        seconds=181.2,
        exit_code=0,
        ended="finished",
        log=f"{where}.log",
        metrics=f"{where}.jsonl",
        steps=steps,
        parser="hf_trainer",
        step_time_source="log",
        last_lines="{'loss': 2.4312, 'grad_norm': 0.91, 'epoch': 1.0}\n100%|##########| 60/60 [03:01<00:00,  3.02s/it]",
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def session(folder: Path, backend: Backend = Backend.EMULATED, steps: int = 60) -> Session:
    """A whole session: one adopted, one rejected at the loss, one at the operator check, one blocked; files written."""
    first, second, third, fourth = norm(), mlp(), norm(1), norm(2)
    for number in (1, 2):
        write_metrics(folder / f"runs/baseline/baseline-{number}.jsonl", steps, seed=number)
    write_metrics(folder / f"runs/{first.id}/candidate.jsonl", steps, seed=7, step_time=2.55)
    write_metrics(folder / f"runs/{second.id}/candidate.jsonl", steps, seed=8, shift=9e-4)
    noise = LossResult(
        steps, 0.000072, None, 0.01, 0.000066, True, Text("within the limit at every step", "每一步都在限值之内")
    )
    emulated = SpeedResult("not measured", Text("emulated", "CPU 仿真"))
    measured = SpeedResult(
        "faster", Text("the whole interval is below 1", "整个区间小于 1"), 2.952, 2.588, 0.8767, 0.8702, 0.8836
    )
    tasks = (
        Task(
            first.id,
            first.rule,
            TaskState.CONCLUDED,
            check(backend=backend),
            noise,
            emulated if backend is Backend.EMULATED else measured,
            (run("candidate", first.id, steps),),
            Conclusion.ADOPT,
            Text("all checks that could run here passed", "此处能运行的校验全部通过"),
            "c0ffee1234567890c0ffee1234567890c0ffee12",
            "2026-11-30T09:12:00Z",
            "2026-11-30T09:21:44Z",
        ),
        Task(
            second.id,
            second.rule,
            TaskState.LOSS_FAILED,
            check(backend=backend),
            LossResult(
                steps, 0.0531, 12, 0.01, 0.000066, False, Text("beyond 1% from step 12 on", "自第 12 步起超过 1%")
            ),
            None,
            (run("candidate", second.id, steps),),
            Conclusion.REJECT,
            Text("the loss leaves the limit of 1% at step 12", "loss 在第 12 步超出 1% 限值"),
        ),
        Task(
            third.id,
            third.rule,
            TaskState.OP_FAILED,
            check(
                "failed",
                backend,
                worst_cosine=0.0312,
                worst_abs_diff=5.9,
                reason="the halves are swapped",
                reason_zh="两半颠倒",
                per_case=(
                    case("x(2, 8, 64)", "float32", False, cosine=0.0312, abs_diff=5.9),
                    case("x(4, 32)", "float32", False, cosine=math.nan),
                ),
            ),
            conclusion=Conclusion.REJECT,
        ),
        Task(
            fourth.id,
            fourth.rule,
            TaskState.BLOCKED,
            reason=Text("the function was not called by this command", "该命令没有调用此函数"),
        ),
    )
    approvals = tuple(
        Approval(
            one.id, Decision.APPROVED, "Lin Wei <lin@example.com>", "2026-11-30T09:10:00Z", "sha256:5d41402abc4b2a76"
        )
        for one in (first, second, third, fourth)
    )
    return Session(
        id="20261130-0909-7c1d",
        created="2026-11-30T09:09:12Z",
        root="/home/lin/work/qwen3",
        repository="/home/lin/work/qwen3",
        base="4f0c1c2f2a6be0b7f0c3f5e1a8de90cbd1a2b3c4",
        branch="npufuse/20261130-0909-7c1d",
        stage=Stage.REPORT,
        scan=scan(),
        approvals=approvals,
        launch=Launch(
            "torchrun --nproc_per_node 1 train.py --steps 60 --seed 0 --hf-token=hf_abcdefghijklmnopqrstuv",
            "/home/lin/venv/bin/python",
            steps,
            environment=(("WANDB_API_KEY", "w4ndb5ecret"), ("PYTHONHASHSEED", "0")),
        ),
        backend=backend,
        baseline=Baseline("passed", steps, 0.000066, (run("baseline-1", None, steps), run("baseline-2", None, steps))),
        tasks=tasks,
        notes={
            "environment.torch": "2.13.0",
            "environment.torch_npu": "2.13.0 (emulated)" if backend is Backend.EMULATED else "2.13.0",
            "environment.device": "cpu" if backend is Backend.EMULATED else "Ascend 910B3",
            "environment.python": "3.11.7",
        },
    )
