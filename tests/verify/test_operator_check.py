"""The operator check on what a run was called with."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from capture_repo import MODEL, TRAIN, candidates, make

from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Check, Launch, ProofPlan
from npufuse_tui.proof.check import ProofOptions
from npufuse_tui.verify.capture import CaptureOptions, capture
from npufuse_tui.verify.capture_records import Captured, CapturedCall, CapturedValue
from npufuse_tui.verify.operator_check import ELEMENTS, operator_check, operator_checks

OPTIONS = ProofOptions(python=Path(sys.executable), backend="emulated")
NORM = (
    "def original(self, hidden_states):\n"
    "    input_dtype = hidden_states.dtype\n"
    "    hidden_states = hidden_states.to(torch.float32)\n"
    "    variance = hidden_states.pow(2).mean(-1, keepdim=True)\n"
    "    hidden_states = hidden_states * torch.rsqrt(variance + self.eps)\n"
    "    return self.weight * hidden_states.to(input_dtype)\n"
)
FUSED_NORM = (
    "def fused(self, hidden_states):\n"
    "    y = torch_npu.npu_rms_norm(hidden_states, self.weight, epsilon=self.eps)[0]\n"
    "    return y.to(torch.promote_types(hidden_states.dtype, self.weight.dtype))\n"
)
MLP = "def original(self, x):\n    return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))\n"
FUSED_MLP = (
    "def fused(self, x):\n"
    "    return self.down_proj(torch_npu.npu_swiglu(torch.cat([self.gate_proj(x), self.up_proj(x)], dim=-1)))\n"
)


def plan_norm(fused: str = FUSED_NORM) -> ProofPlan:
    values = ("Stub(weight=weight, eps=eps)", "x")
    return ProofPlan("rms_norm", "weight", NORM, fused, "", ("self", "hidden_states"), values, 1)


def plan_mlp(fused: str = FUSED_MLP) -> ProofPlan:
    values = ("Stub(gate_proj=Returns(gate), up_proj=Returns(up))", "gate")
    return ProofPlan("swiglu", "two_inputs", MLP, fused, "", ("self", "x"), values, 1)


def with_plans(**plans: ProofPlan) -> list[Candidate]:
    found = {one.id: one for one in candidates()}
    return [
        replace(found[name], proof=plan, rule=plan.rule, variant=plan.variant) if plan else found[name]
        for name, plan in plans.items()
    ]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Captured]:
    folder = tmp_path_factory.mktemp("operator")
    repo = make(folder / "repo")
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    options = CaptureOptions(time_limit=300)
    return capture(Launch(f"{sys.executable} train.py"), repo, candidates(), folder / "captured", environ, options)


def test_passes_on_exactly_the_captured_shapes(captured: dict[str, Captured]) -> None:
    found = operator_checks(with_plans(norm1=plan_norm(), mlp1=plan_mlp()), captured, OPTIONS)
    norm, mlp = found["norm1"], found["mlp1"]
    assert norm.status == "passed" and mlp.status == "passed", (norm.reason, mlp.reason)
    assert [case.shape for case in norm.per_case] == ["x 2×7×16, weight 16", "x 2×5×16, weight 16"]
    assert {case.layout for case in norm.per_case} == {"as captured"}
    assert norm.worst_grad_cosine is not None and norm.dtype_equal is True
    assert [case.shape for case in mlp.per_case] == ["gate 2×7×32, up 2×7×32", "gate 2×5×32, up 2×5×32"]


def test_strides_are_the_captured_ones(captured: dict[str, Captured]) -> None:
    """The captured input is a transposed view; code that needs it dense fails here."""
    needs_dense = FUSED_NORM.replace("    y =", "    assert hidden_states.is_contiguous()\n    y =")
    says_stride = FUSED_NORM.replace("    y =", "    assert hidden_states.stride() == (16, 32, 1)\n    y =")
    (dense, stride) = (
        operator_check(with_plans(norm1=plan_norm(fused))[0], captured["norm1"], OPTIONS)
        for fused in (needs_dense, says_stride)
    )
    assert dense.status == "failed" and "AssertionError" in (dense.reason or "")
    assert stride.status == "passed", stride.reason


def test_a_weight_of_ones_does_not_hide_that_it_is_forgotten(captured: dict[str, Captured]) -> None:
    forgets = FUSED_NORM.replace("self.weight, epsilon", "torch.ones_like(self.weight), epsilon")
    found = operator_check(with_plans(norm1=plan_norm(forgets))[0], captured["norm1"], OPTIONS)
    assert found.status == "failed", found


def test_swapped_halves_fail(captured: dict[str, Captured]) -> None:
    swapped = FUSED_MLP.replace("self.gate_proj(x), self.up_proj(x)", "self.up_proj(x), self.gate_proj(x)")
    found = operator_check(with_plans(mlp1=plan_mlp(swapped))[0], captured["mlp1"], OPTIONS)
    assert found.status == "failed" and "cosine" in (found.reason or "")


def test_without_a_capture_the_examples_shapes_are_used_and_it_says_so(captured: dict[str, Captured]) -> None:
    (norm,) = with_plans(norm1=plan_norm())
    nothing = operator_check(norm, None, OPTIONS)
    assert nothing.status == "passed" and nothing.cases > 10 and "nothing was captured" in (nothing.reason or "")
    never = operator_check(norm, captured["unused1"], OPTIONS)
    assert never.status == "passed" and "not on the path" in (never.reason or "")
    (example, *rest) = captured["norm1"].examples
    without_x = replace(example, values=tuple(pair for pair in example.values if pair[0] != "x"))
    lacks = operator_check(norm, replace(captured["norm1"], examples=(without_x,)), OPTIONS)
    assert lacks.status == "passed" and "lacks x" in (lacks.reason or "") and rest


def test_a_plan_that_was_not_made_is_skipped_with_its_reason(captured: dict[str, Captured]) -> None:
    none = replace(plan_norm(), not_run=Text("the loop cannot be cut out", "无法取出"))
    found = operator_check(with_plans(norm1=none)[0], captured["norm1"], OPTIONS)
    assert found.status == "skipped" and "cut out" in (found.reason or "")


def tensor(shape: tuple[int, ...], dtype: str = "bfloat16", **more: object) -> CapturedValue:
    stride, step = [], 1
    for size in reversed(shape):
        stride.insert(0, step)
        step *= size
    return CapturedValue("tensor", shape, dtype, tuple(stride), "npu:0", True, 0.0, 1.0, **more)  # type: ignore[arg-type]


def one_call(autocast: str | None = None, **values: CapturedValue) -> Captured:
    call = CapturedCall(tuple(values.items()), True, True, autocast, 1)
    return Captured("norm1", "called", Text("called", "被调用"), 1, 1, 1, 1, (call,))


def check_one(found: Captured, plan: ProofPlan | None = None) -> Check:
    return operator_check(with_plans(norm1=plan or plan_norm())[0], found, OPTIONS)


def test_a_call_too_large_for_a_cpu_is_cut_and_says_so() -> None:
    large = one_call(x=tensor((64, ELEMENTS // 1024, 64)), weight=tensor((64,)), eps=CapturedValue("value", value=1e-6))
    found = check_one(large)
    assert found.status == "passed", found.reason
    assert "first dim was cut from 64 to 16" in (found.reason or "")


def test_autocast_and_mixed_dtypes_are_as_captured() -> None:
    eps = CapturedValue("value", value=1e-6)
    found = check_one(one_call("bfloat16", x=tensor((2, 3, 32)), weight=tensor((32,), "float32"), eps=eps))
    assert found.status == "passed" and found.per_case[0].dtype == "bfloat16, parameters float32"
    assert found.per_case[0].dtype_out == "float32"
    without_cast = plan_norm(FUSED_NORM.replace(".to(torch.promote_types(hidden_states.dtype, self.weight.dtype))", ""))
    wrong = check_one(one_call(x=tensor((2, 3, 32)), weight=tensor((32,), "float32"), eps=eps), without_cast)
    assert wrong.status == "failed" and wrong.dtype_equal is False


def test_inference_takes_no_gradients() -> None:
    values = {"x": tensor((2, 3, 32)), "weight": tensor((32,)), "eps": CapturedValue("value", value=1e-6)}
    found = one_call(**values)
    (call,) = found.examples
    check = check_one(replace(found, examples=(replace(call, grad_enabled=False),)))
    assert check.status == "passed" and check.worst_grad_cosine is None


def test_recorded_inputs_are_used_when_they_were_kept(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo", {"train.py": TRAIN.replace("steps=6", "steps=1")})
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    options = CaptureOptions(keep_inputs=True, time_limit=300)
    found = capture(Launch(f"{sys.executable} train.py"), repo, candidates(), tmp_path / "captured", environ, options)
    probes = FUSED_NORM.replace("    y =", "    assert (self.weight == 1).all(), 'random'\n    y =")
    kept = operator_check(with_plans(norm1=plan_norm(probes))[0], found["norm1"], OPTIONS)
    assert kept.status == "passed", kept.reason
    assert MODEL
