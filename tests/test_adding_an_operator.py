"""The guide, followed: the rule of its page, dropped into an empty folder, goes through all of npufuse unaided."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from npufuse_tui.judgement.rule_help import rule_entries, rules_text
from npufuse_tui.model import Candidate, ScanResult, Verdict
from npufuse_tui.proof.check import ProofOptions, check
from npufuse_tui.report.contract_json import scan_document
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.fallback import prove
from npufuse_tui.rules import load_rules
from npufuse_tui.scan.scanner import ScanOptions, scan

GUIDE = Path(__file__).parent.parent / "docs" / "adding-an-operator.md"

MODEL = """\
import math

import torch
from torch import nn


class NewGelu(nn.Module):
    def forward(self, x):
        inner = (x + 0.044715 * x**3) * math.sqrt(2.0 / math.pi)
        return (torch.tanh(inner) + 1.0) * (x * 0.5)


class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 0.0447
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    [source] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "written_gelu.py").write_text(source, encoding="utf-8")
    return folder


@pytest.fixture
def found(tmp_path: Path, rules: Path) -> ScanResult:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "model.py").write_text(MODEL)
    return scan(repo, ScanOptions(use_cache=False, jobs=1, extra_rules=(str(rules),)))


def only(found: ScanResult) -> Candidate:
    [one] = found.candidates
    return one


def test_it_is_found_with_its_diff_and_its_risk(found: ScanResult) -> None:
    one = only(found)
    assert (one.rule, one.qualname, one.verdict) == ("written_gelu", "NewGelu.forward", Verdict.RECOMMENDED)
    assert one.diff is not None and 'torch_npu.npu_gelu(x, approximate="tanh")' in one.diff
    assert "constants" in [risk.code for risk in one.risks]
    assert one.edit is not None
    before = MODEL.encode()
    prove(before, compose(before, one.edit.files), one.edit.files)


def test_it_is_proven(found: ScanResult, rules: Path) -> None:
    options = ProofOptions(python=Path(sys.executable), backend="emulated", time_limit=300, extra_rules=(rules,))
    [one] = check(found.candidates, options)
    assert one.check is not None
    assert one.check.status == "passed", one.check.reason
    assert one.check.cases >= 3
    assert one.check.worst_grad_cosine is not None and one.check.worst_grad_cosine > 0.999


def test_it_has_a_row_in_the_report(found: ScanResult) -> None:
    [row] = [row for row in found.rules if row.id == "written_gelu"]
    assert (row.found, row.recommended, row.api) == (1, 1, "torch_npu.npu_gelu")
    document = scan_document(found)
    assert "written_gelu" in [rule["id"] for rule in document["rules"]]
    assert [one["rule"] for one in document["candidates"]] == ["written_gelu"]


def test_it_has_an_entry_in_the_help(rules: Path) -> None:
    entries = {one.id: one for one in rule_entries(load_rules([rules]))}
    assert entries["written_gelu"].api == "torch_npu.npu_gelu"
    assert entries["written_gelu"].forms == ("tanh",)
    assert {"rms_norm", "swiglu"} <= set(entries)
    assert "written_gelu  GELU written out → torch_npu.npu_gelu (training and inference)" in rules_text(
        load_rules([rules])
    )


def test_nothing_of_it_is_left_for_the_next_scan(tmp_path: Path, found: ScanResult) -> None:
    again = scan(tmp_path / "repo", ScanOptions(use_cache=False, jobs=1))
    assert "written_gelu" not in [row.id for row in again.rules]
    assert not again.candidates
