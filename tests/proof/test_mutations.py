"""Right plans made wrong by machine: every change of the fused code that changes what it computes must be caught.

The plans are those that the scan makes for the demo's model; each mutant differs from its plan in one place.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hand_plans import candidate

import npufuse_tui
from npufuse_tui.model import Candidate, Verdict
from npufuse_tui.proof.check import ProofOptions, check
from npufuse_tui.scan.scanner import ScanOptions, scan

DEMO = Path(npufuse_tui.__file__).parent / "demo" / "project"
OPTIONS = ProofOptions(python=Path(sys.executable), backend="emulated")

# What computes the same after all: (rule, words of the mutant's description).
EQUIVALENT = {
    ("rms_norm", "without keyword epsilon"),  # the default is the 1e-6 of the example
    ("fusion_attention", "keyword keep_prob"),  # no dropout outside of training
    ("fusion_attention", "without keyword keep_prob"),
    ("fusion_attention", "keyword inner_precise"),  # no row of the example is wholly masked, and the CPU is exact
    ("fusion_attention", "without keyword inner_precise"),
    ("swiglu", "without keyword dim"),  # the default is the last dim
    ("rms_norm", "promote_types swapped"),
    ("rotary", "promote_types swapped"),
    ("fusion_attention", "1 and 2 of _masked_out swapped"),  # as long as query and key have one length
}


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """(what was changed, the changed source), one change each."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            change(list(ast.walk(changed))[number])
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text != ast.unparse(tree):
                yield f"line {getattr(node, 'lineno', 0)}: {what}", text


def _changes(node: ast.AST):  # type: ignore[no-untyped-def]
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        for first in range(len(node.args) - 1):
            yield f"arguments {first} and {first + 1} of {called} swapped", lambda one, at=first: _swap(one.args, at)
        for place, keyword in enumerate(node.keywords):
            yield f"without keyword {keyword.arg}", lambda one, at=place: one.keywords.pop(at)
            if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, (int, float)):
                yield f"keyword {keyword.arg} doubled and one more", lambda one, at=place: _more(one.keywords[at].value)
        if isinstance(node.func, ast.Attribute) and called in ("contiguous", "to", "float", "transpose", "type_as"):
            yield f"without .{called}()", lambda one: _become(one, one.func.value)
        if called.startswith("npu_"):
            for place in range(len(node.args)):
                if isinstance(node.args[place], (ast.Name, ast.Attribute)):
                    yield f"argument {place} of {called} halved", lambda one, at=place: _half(one.args, at)
                    yield f"argument {place} of {called} without gradient", lambda one, at=place: _detach(one.args, at)
    if isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield "elements swapped", lambda one: _swap(one.elts, 0)
    if isinstance(node, ast.Return) and node.value is not None:
        yield "result detached", lambda one: setattr(one, "value", _method(one.value, "detach"))
        yield "result slightly larger", lambda one: setattr(one, "value", _times(one.value, 1.001))
        yield "result in float64", lambda one: setattr(one, "value", _method(one.value, "double"))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0:
        yield "another element of the tuple", lambda one: setattr(one.slice, "value", 1)


def _swap(values: list[ast.expr], at: int) -> None:
    values[at], values[at + 1] = values[at + 1], values[at]


def _more(value: ast.Constant) -> None:
    value.value = value.value * 2 + 1


def _become(node: ast.Call, other: ast.expr) -> None:
    node.func, node.args, node.keywords = ast.Name("Identity", ast.Load()), [], []
    node.func = ast.Call(ast.Name("Returns", ast.Load()), [other], [])


def _half(values: list[ast.expr], at: int) -> None:
    values[at] = _times(values[at], 0.5)


def _detach(values: list[ast.expr], at: int) -> None:
    values[at] = _method(values[at], "detach")


def _times(value: ast.expr, factor: float) -> ast.expr:
    return ast.BinOp(value, ast.Mult(), ast.Constant(factor))


def _method(value: ast.expr, name: str) -> ast.expr:
    return ast.Call(ast.Attribute(value, name, ast.Load()), [], [])


@pytest.fixture(scope="module")
def found() -> tuple[Candidate, ...]:
    return tuple(one for one in scan(DEMO, ScanOptions(use_cache=False)).candidates if one.proof is not None)


@pytest.mark.slow
def test_every_mutant_is_caught(found: tuple[Candidate, ...]) -> None:
    assert {one.rule for one in found} >= {"rms_norm", "swiglu", "rotary", "fusion_attention"}
    assert all(one.check is not None and one.check.status == "passed" for one in check(found, OPTIONS))
    made = [
        candidate(replace(one.proof, fused=text), f"{one.rule}: {what}")
        for one in found
        if one.proof is not None
        for what, text in mutants(one.proof.fused)
    ]
    assert len(made) >= 40
    survivors = [one for one in check(made, OPTIONS) if one.verdict is not Verdict.REFUSED]
    unexpected = [
        one.id for one in survivors if not any(one.rule == rule and words in one.id for rule, words in EQUIVALENT)
    ]
    assert not unexpected, "\n".join(unexpected)
