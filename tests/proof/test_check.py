"""The executable proof, on plans written by hand, in a real child with real torch and the emulator."""

from __future__ import annotations

import os
import select
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hand_plans import HALVES, RIGHT, RMS_NORM, WRONG, candidate, function, halves, rms_norm

from npufuse_tui.errors import MachineLacks, WrongInput
from npufuse_tui.events import CandidateChecked, Event
from npufuse_tui.language import Text
from npufuse_tui.model import Backend, Candidate, Verdict
from npufuse_tui.proof.check import ProofOptions, check

PYTHON = Path(sys.executable)
OPTIONS = ProofOptions(python=PYTHON, backend="emulated")


@pytest.fixture(scope="module")
def checked() -> dict[str, Candidate]:
    plans = {**RIGHT, **{name: plan for name, (plan, _) in WRONG.items()}}
    return {one.id: one for one in check([candidate(plan, name) for name, plan in plans.items()], OPTIONS)}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_replacement_passes(checked: dict[str, Candidate], name: str) -> None:
    found = checked[name]
    assert found.check is not None
    assert found.check.status == "passed", found.check.reason
    assert found.verdict is Verdict.RECOMMENDED
    assert found.check.backend is Backend.EMULATED
    assert found.check.dtype_equal is True
    assert found.check.worst_cosine is not None and found.check.worst_cosine > 0.999
    assert found.check.worst_grad_cosine is not None and found.check.worst_grad_cosine > 0.999
    assert len(found.check.per_case) == found.check.cases > 10
    layouts = {case.layout for case in found.check.per_case}
    assert layouts == {"contiguous", "transposed", "sliced", "near zero", "autocast"}
    assert {case.dtype.split(",")[0] for case in found.check.per_case} == {"float16", "bfloat16", "float32"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_replacement_is_caught(checked: dict[str, Candidate], name: str) -> None:
    found = checked[name]
    assert found.check is not None
    assert found.check.status == "failed"
    assert found.verdict is Verdict.REFUSED
    assert found.check.reason is not None and WRONG[name][1] in found.check.reason
    said = found.check.reason_text
    assert said is not None and said.en in found.reason.en and said.zh in found.reason.zh
    assert said.zh != said.en


def test_weight_dtype_is_a_case_of_its_own(checked: dict[str, Candidate]) -> None:
    found = checked["output dtype of the input"].check
    assert found is not None
    failed = {case.dtype for case in found.per_case if not case.passed}
    assert failed == {"float16, parameters float32", "bfloat16, parameters float32"}


def test_a_crash_and_a_time_out_are_blamed_on_the_right_candidate() -> None:
    crash = rms_norm("def region(self, hidden_states):\n    import os\n    os.kill(os.getpid(), 11)\n")
    leaves = rms_norm("def region(self, hidden_states):\n    import os\n    os._exit(7)\n")
    hangs = rms_norm("def region(self, hidden_states):\n    while True:\n        pass\n")
    exits = rms_norm("def region(self, hidden_states):\n    raise SystemExit(0)\n")
    plans = {
        "first": RIGHT["norm"],
        "crash": crash,
        "between": RIGHT["halves"],
        "leaves": leaves,
        "exits": exits,
        "hangs": hangs,
        "last": RIGHT["swiglu"],
    }
    events: list[Event] = []
    options = replace(OPTIONS, time_limit=25.0)
    found = check([candidate(plan, name) for name, plan in plans.items()], options, events.append)
    checks = {one.id: one.check for one in found}
    assert {name: one.status for name, one in checks.items() if one} == {
        "first": "passed",
        "crash": "failed",
        "between": "passed",
        "leaves": "failed",
        "exits": "failed",
        "hangs": "failed",
        "last": "passed",
    }
    assert "SIGSEGV" in (checks["crash"].reason or "")
    assert "exit code 7" in (checks["leaves"].reason or "")
    assert "within 25 s" in (checks["hangs"].reason or "")
    told = [one for one in events if isinstance(one, CandidateChecked)]
    assert [one.candidate.id for one in told] == list(plans)
    assert [(one.done, one.total) for one in told] == [(index + 1, 7) for index in range(7)]


def test_equal_plans_run_once_and_every_place_gets_the_check() -> None:
    marks = "import os\nopen(os.environ['NPUFUSE_TEST_MARK'], 'a').write('x')\n"
    plan = replace(RIGHT["norm"], setup=marks)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        mark = Path(os.environ.get("TMPDIR", "/tmp")) / f"npufuse-mark-{os.getpid()}"
        patch.setenv("NPUFUSE_TEST_MARK", str(mark))
        try:
            found = check([candidate(plan, str(index)) for index in range(20)], OPTIONS)
            written = mark.read_text()
        finally:
            mark.unlink(missing_ok=True)
    assert all(one.check is not None and one.check.status == "passed" for one in found)
    assert len(written) == 3  # original, fused, reference


def test_a_plan_that_cannot_run_says_why_and_is_no_longer_recommended() -> None:
    unknown = rms_norm(function("hidden_states"), RMS_NORM.replace("self.weight", "their_global"))
    nothing = replace(RIGHT["norm"], not_run=Text("the loop cannot be cut out", "该循环无法单独取出"))
    found = check(
        [
            candidate(unknown, "unknown"),
            candidate(nothing, "not run"),
            candidate(None, "no plan"),
            candidate(nothing, "refused before", Verdict.REFUSED),
        ],
        OPTIONS,
    )
    first, second, third, fourth = found
    assert first.check is not None and first.check.status == "skipped" and "their_global" in (first.check.reason or "")
    assert first.verdict is Verdict.CAUTION
    assert second.check is not None and second.check.status == "skipped"
    assert second.verdict is Verdict.CAUTION and "cut out" in second.reason.en
    assert third.check is None and third.verdict is Verdict.RECOMMENDED
    assert fourth.verdict is Verdict.REFUSED


def test_what_runs_in_one_proof_does_not_reach_the_next() -> None:
    spoils = replace(RIGHT["norm"], setup="leaked = 1\nimport builtins\n")
    reads = rms_norm(function("hidden_states"), RMS_NORM.replace("self.weight", "leaked"))
    _, second = check([candidate(spoils, "a"), candidate(reads, "b")], OPTIONS)
    assert second.check is not None and second.check.status == "skipped" and "leaked" in (second.check.reason or "")


def test_a_region_that_changes_its_inputs_does_not_change_the_other_runs() -> None:
    in_place = HALVES.replace("F.silu(a)", "F.silu(a, inplace=True)")
    plan = replace(halves(function("torch_npu.npu_swiglu(hidden.contiguous())", "hidden")), original=in_place)
    (found,) = check([candidate(plan)], OPTIONS)
    assert found.check is not None and found.check.status == "passed", found.check
    assert "without gradients" in (found.check.reason or "")  # torch refuses to write into a chunk that has a gradient
    written_to = HALVES.replace("    a, b", "    hidden.mul_(2)\n    a, b")
    right = "def region(hidden):\n    hidden.mul_(2)\n    return torch_npu.npu_swiglu(hidden.contiguous())\n"
    (found,) = check([candidate(replace(halves(right), original=written_to))], OPTIONS)
    assert found.check is not None and found.check.status == "passed" and found.check.worst_grad_cosine is not None


def test_outputs_of_several_values() -> None:
    start = "def region(hidden):\n    a, b = hidden.chunk(2, dim=-1)\n    return "
    original = start + "(F.silu(a) * b, None, {'n': 3, 'a': a})\n"
    right = start + "(torch_npu.npu_swiglu(hidden.contiguous()), None, {'n': 3, 'a': a})\n"
    base = replace(halves(right), original=original, outputs=0)
    wrong_value = replace(base, fused=right.replace("'n': 3", "'n': 4"))
    wrong_tensor = replace(base, fused=right.replace("'a': a", "'a': b"))
    first_only = replace(wrong_tensor, outputs=2)
    missing = replace(base, fused=right.replace("None", "hidden"))
    found = check(
        [candidate(one, str(i)) for i, one in enumerate((base, wrong_value, wrong_tensor, first_only, missing))],
        OPTIONS,
    )
    assert [one.check.status for one in found if one.check] == ["passed", "failed", "failed", "passed", "failed"]
    assert "4 instead of 3" in (found[1].check.reason or "")  # type: ignore[union-attr]


def test_the_guard_of_the_edit_is_asked_first() -> None:
    raises = RIGHT["norm"].fused.replace("return ", "assert hidden_states.dtype == torch.float32\n    return ")
    half = replace(RIGHT["norm"], fused=raises, guard="hidden_states.dtype == torch.float32")
    never = replace(half, guard="hidden_states.dim() == 7")
    broken = replace(half, guard="hidden_states.no_such_attribute")
    ignored = replace(half, guard="")
    found = check([candidate(plan, str(index)) for index, plan in enumerate((half, never, broken, ignored))], OPTIONS)
    checks = [one.check for one in found if one.check is not None]
    assert [one.status for one in checks] == ["passed", "skipped", "failed", "failed"]
    kept = [case for case in checks[0].per_case if "keeps the original" in (case.reason or "")]
    assert kept and {case.dtype.split(",")[0] for case in kept} == {"float16", "bfloat16"}
    assert all(case.cosine is None for case in kept) and checks[0].worst_cosine is not None
    assert "never runs" in (checks[1].reason or "") and "no_such_attribute" in (checks[2].reason or "")


def test_dtypes_narrow_the_cases() -> None:
    (found,) = check([candidate(RIGHT["norm"])], replace(OPTIONS, dtypes=("float32",)))
    assert found.check is not None
    assert {case.dtype for case in found.check.per_case} == {"float32"}


def test_a_rule_of_the_repo_is_proven_when_it_is_named(tmp_path: Path) -> None:
    rule = tmp_path / "rules" / "double.py"
    rule.parent.mkdir()
    rule.write_text(
        "from npufuse_tui.language import same\n"
        "from npufuse_tui.rules import Rule, Tensor\n"
        "rule = Rule(id='double', family='own', api='torch_npu.own', title=same('x'), training=True,\n"
        "            dtypes=('float32',), since='2.1.0', products=(), docs='', needs=())\n"
        "@rule.pattern('plain')\n"
        "def pattern(x: Tensor):\n    return x + x\n"
        "@rule.example(shapes=[(3, 4)])\n"
        "def inputs(shape, dtype, parameter_dtype):\n    return {'x': torch.randn(shape, dtype=dtype)}\n"
    )
    original, fused = "def region(x):\n    return x + x\n", "def region(x):\n    return 2 * x\n"
    plan = replace(RIGHT["halves"], rule="double", variant="plain", original=original, fused=fused)
    plan = replace(plan, parameters=("x",), values=("x",))
    known, unknown = (
        check([candidate(plan)], options)[0].check
        for options in (replace(OPTIONS, extra_rules=(rule.parent,)), OPTIONS)
    )
    assert known is not None and known.status == "passed"
    assert unknown is not None and unknown.status == "skipped" and "double" in (unknown.reason or "")


def test_cancel_stops_between_results() -> None:
    told: list[Event] = []
    options = replace(OPTIONS, cancelled=lambda: len(told) >= 1)
    plans = [replace(RIGHT["norm"], setup=f"mark = {index}") for index in range(30)]
    found = check([candidate(plan, str(index)) for index, plan in enumerate(plans)], options, told.append)
    assert found[0].check is not None
    assert found[-1].check is None


def test_an_npu_that_is_not_there_cannot_be_demanded() -> None:
    with pytest.raises(MachineLacks, match="--backend emulated"):
        check([candidate(RIGHT["norm"])], replace(OPTIONS, backend="npu"))
    with pytest.raises(WrongInput, match="cuda"):
        check([candidate(RIGHT["norm"])], replace(OPTIONS, backend="cuda"))


def test_the_child_sees_nothing_of_npufuse_and_of_the_folder_it_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('the wrong torch')")
    monkeypatch.chdir(tmp_path)
    looks = "import sys\nassert not {'textual', 'libcst', 'pandas', 'git'} & set(sys.modules)\n"
    looks += "import npufuse_tui\nassert 'bundle' in npufuse_tui.__file__, npufuse_tui.__file__\n"
    (found,) = check([candidate(replace(RIGHT["norm"], setup=looks))], OPTIONS)
    assert found.check is not None and found.check.status == "passed", found.check.reason


def test_no_child_survives(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    leaves_one = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
    )
    plan = replace(RIGHT["halves"], original=leaves_one + HALVES)
    check([candidate(plan)], OPTIONS)
    try:
        ended = os.pidfd_open(int(pid_file.read_text()))
    except ProcessLookupError:
        return
    readable, _, _ = select.select([ended], [], [], 30)
    os.close(ended)
    assert readable, "the child's own child is still there"
