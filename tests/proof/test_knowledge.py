"""Each rule's patterns against its own replacements. A rule that is wrong cannot be merged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from npufuse_tui.proof.check import ProofOptions
from npufuse_tui.proof.knowledge import KnowledgeProof, provable, prove
from npufuse_tui.rules import load_rules

OPTIONS = ProofOptions(python=Path(sys.executable), backend="emulated", time_limit=300)
PAIRS = provable(load_rules())


@pytest.fixture(scope="module")
def proofs() -> dict[tuple[str, str], KnowledgeProof]:
    return {(one.rule, one.variant): one for one in prove(load_rules(), OPTIONS)}


def test_there_is_knowledge_to_prove() -> None:
    assert {"rms_norm", "swiglu"} <= {rule for rule, _ in PAIRS}


@pytest.mark.parametrize(("rule", "variant"), PAIRS)
def test_pattern_and_replacement_compute_the_same(
    proofs: dict[tuple[str, str], KnowledgeProof], rule: str, variant: str
) -> None:
    check = proofs[(rule, variant)].check
    assert check.status == "passed", check.reason
    assert check.cases >= 3
    trains = next(one.training for one in load_rules() if one.id == rule)
    assert (check.worst_grad_cosine is not None) == trains


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.id)
def test_what_is_offered_has_an_example(rule) -> None:  # type: ignore[no-untyped-def]
    lacking = [variant for _, variant in provable([rule]) if rule.example_for(variant) is None]
    assert not lacking, f"{rule.id}: no example for {', '.join(lacking)}"


WRONG_RULE = """
from npufuse_tui.language import same
from npufuse_tui.rules import Parameter, Rule, Scalar, Tensor
rule = Rule(id="wrong", family="own", api="torch_npu.npu_swiglu", title=same("x"), training=True,
            dtypes=("float32", "bfloat16"), since="2.1.0", products=(), docs="", needs=())

@rule.pattern("swapped")
def swapped(gate: Tensor, up: Tensor):
    return torch.nn.functional.silu(gate) * up

@rule.pattern("no_example")
def bare(gate: Tensor, up: Tensor, more: Tensor):
    return torch.nn.functional.silu(gate) * up

@rule.pattern("right")
def right(gate: Tensor, up: Tensor):
    return up * torch.nn.functional.silu(gate)

@rule.replacement
def fused(gate, up):
    return torch_npu.npu_swiglu(torch.cat([up, gate], dim=-1))

@rule.replacement(variants=("right",))
def fused_right(gate, up):
    return torch_npu.npu_swiglu(torch.cat([gate, up], dim=-1))

@rule.example(shapes=[(2, 3, 8)], variants=("swapped", "right"))
def inputs(shape, dtype, parameter_dtype):
    return {"gate": torch.randn(shape).to(dtype), "up": torch.randn(shape).to(dtype)}
"""


def test_a_wrong_rule_fails(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG_RULE)
    (rule,) = [one for one in load_rules([tmp_path]) if one.id == "wrong"]
    options = ProofOptions(python=Path(sys.executable), backend="emulated", extra_rules=(tmp_path,))
    found = {one.variant: one.check for one in prove([rule], options)}
    assert {variant: one.status for variant, one in found.items()} == {
        "swapped": "failed",
        "no_example": "failed",
        "right": "passed",
    }
    assert "no example" in (found["no_example"].reason or "")
