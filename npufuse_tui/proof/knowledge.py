"""The knowledge proves itself: every variant of every rule, its pattern against its replacement.

for proof in prove(load_rules(), options): proof.rule, proof.variant, proof.check
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npufuse_tui.model import Check, Verdict
from npufuse_tui.proof.check import ProofOptions, as_check, prepare
from npufuse_tui.proof.process import outcomes
from npufuse_tui.rules import Rule


@dataclass(frozen=True, slots=True)
class KnowledgeProof:
    """One variant of a rule, proven or not."""

    rule: str
    variant: str
    check: Check


def provable(rules: Sequence[Rule]) -> tuple[tuple[str, str], ...]:
    """(rule, variant) of everything that is offered for replacement by a pattern, in order."""
    found: dict[tuple[str, str], None] = {}
    for rule in rules:
        for pattern in rule.patterns:
            if pattern.verdict is not Verdict.REFUSED and rule.replacement_for(pattern.variant) is not None:
                found[(rule.id, pattern.variant)] = None
    return tuple(found)


def prove(rules: Sequence[Rule], options: ProofOptions) -> Iterator[KnowledgeProof]:
    """Run every provable variant, forward and backward, for every shape, dtype and layout of its example.

    A variant without an example fails. Raises what `npufuse_tui.proof.check.check` raises.
    """
    pairs = provable(rules)
    backend, children = prepare(options)
    jobs = [{"kind": "pattern", "rule": rule, "variant": variant} for rule, variant in pairs]
    for index, outcome in outcomes(jobs, children):
        rule, variant = pairs[index]
        yield KnowledgeProof(rule, variant, as_check(outcome, backend))
