"""Risks against a labelled set: what is there is found, and what is not there is not said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from risk_cases import Case, cases

from npufuse_tui.dataflow.repository import Repository
from npufuse_tui.judgement.risks.registry import checks
from npufuse_tui.model import Candidate, Severity, Verdict
from npufuse_tui.rules import load_rules
from npufuse_tui.scan.file import scan_file

CASES = cases()
RULES = {rule.id: rule for rule in load_rules()}
LABELS = {code for case in CASES for code in case.expected}
MOST_FALSE_ALARMS = 0.05
MOST_MISSED = 0.05


def candidates_of(root: Path, case: Case) -> list[Candidate]:
    for name, text in case.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    path = root / "model.py"
    path.write_text(case.source)
    result = scan_file(Repository(root), "model.py", path, [RULES[case.rule]])
    assert result.skipped is None, result.skipped
    return list(result.candidates)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Case, Candidate]]:
    """What the checks say of each case."""
    found = {}
    for case in CASES:
        [one] = candidates_of(tmp_path_factory.mktemp("case"), case)
        found[case.name] = (case, one)
    return found


def test_the_set_is_large_and_every_name_is_told_once() -> None:
    assert len(CASES) >= 60
    assert max(Counter(case.name for case in CASES).values()) == 1


def test_false_alarms_and_misses_are_rare(told: dict[str, tuple[Case, Candidate]]) -> None:
    false, missed, said, there = [], [], 0, 0
    for case, one in told.values():
        # what a rule says of itself is its own business unless the set labels it
        unlabelled = {check.code for check in RULES[case.rule].risks} - LABELS
        codes = {risk.code for risk in one.risks} - unlabelled
        said += len(codes)
        there += len(case.expected)
        false += [(case.name, code) for code in codes - case.expected]
        missed += [(case.name, code) for code in case.expected - codes]
    assert len(false) <= MOST_FALSE_ALARMS * said, false
    assert len(missed) <= MOST_MISSED * there, missed


def test_every_general_risk_is_seen_in_the_set(told: dict[str, tuple[Case, Candidate]]) -> None:
    seen = {risk.code for _, one in told.values() for risk in one.risks}
    assert seen >= {
        "dynamic_shape",
        "non_contiguous",
        "dtype",
        "layout",
        "causal_implicit",
        "dropout",
        "returned_weights",
        "training_only",
        "inference_only",
        "no_backward",
        "product_support",
        "size_limits",
        "concat_cost",
        "memory_rise",
        "torch_compile",
        "jit_script",
        "checkpointing",
        "hooks",
        "tensor_parallel",
        "generated_file",
        "hub_kernel",
    }


def test_each_risk_points_at_a_line_and_speaks_both_languages(told: dict[str, tuple[Case, Candidate]]) -> None:
    for case, one in told.values():
        lines = case.source.splitlines()
        for risk in one.risks:
            assert risk.message.en and risk.message.zh and risk.message.en != risk.message.zh
            assert "{" not in risk.message.en + risk.message.zh, risk
            if risk.file is None and risk.line is not None:
                assert 1 <= risk.line <= len(lines)


def test_every_file_of_the_folder_is_a_check() -> None:
    from npufuse_tui.judgement import risks

    helpers = {"__init__", "already_fused", "context", "registry"}
    files = {path.stem for path in Path(next(iter(risks.__path__))).glob("*.py")} - helpers
    assert {check.__module__.rpartition(".")[2] for check in checks()} == files


def test_danger_is_no_bulk_approval(told: dict[str, tuple[Case, Candidate]]) -> None:
    for case, one in told.values():
        if any(risk.severity is Severity.DANGER for risk in one.risks):
            assert one.verdict is not Verdict.RECOMMENDED, case.name


def test_weights_that_can_be_asked_for_are_asked_about(told: dict[str, tuple[Case, Candidate]]) -> None:
    asked = told["an attention that is asked for its weights"][1]
    assert asked.diff is not None and " and not output_attentions" in asked.diff
    assert asked.verdict is Verdict.RECOMMENDED
    by_options = told["an attention function of a model library"][1]
    assert by_options.diff is not None and "not _weights_asked_for(kwargs, module)" in by_options.diff
    assert "def _weights_asked_for(options, module):" in by_options.diff
    unasked = told["an attention that returns its weights"][1]
    assert unasked.verdict is Verdict.CAUTION


def test_what_is_scripted_is_refused(told: dict[str, tuple[Case, Candidate]]) -> None:
    one = told["a scripted norm"][1]
    assert one.verdict is Verdict.REFUSED and one.edit is None


def test_an_old_pin_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    case = next(one for one in CASES if one.name == "a plain attention")
    pinned = Case(
        "", "fused_infer_attention", case.source, frozenset(), {"requirements.txt": "numpy\ntorch-npu==2.1.0\n"}
    )
    [one] = candidates_of(tmp_path, pinned)
    old = [risk for risk in one.risks if risk.code == "version_too_old"]
    from npufuse_tui.judgement.api_call import check_replacement

    replacement = RULES["fused_infer_attention"].replacement_for(one.variant)
    assert replacement is not None
    expected = bool(check_replacement(replacement.source, "2.1.0"))
    assert bool(old) is expected
    for risk in old:
        assert (risk.file, risk.line, risk.severity) == ("requirements.txt", 2, Severity.DANGER)
