"""The operator check: the region against its replacement, on the shapes, dtypes and strides that the model really uses.

    operator_check(candidate, captured, options) -> Check          one candidate
    operator_checks(candidates, captured, options) -> {id: Check}  several, in one child

Tensors are random, with the mean and spread that was recorded; masks, indices and flags are the recorded ones, and so
are all with `--keep-inputs`. Without a capture (or where it lacks an input) the shapes of the rule's example are used,
and the reason says so.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Check
from npufuse_tui.proof.check import ProofOptions, as_check, not_run, prepare
from npufuse_tui.proof.outcome import joined
from npufuse_tui.proof.plan import as_json
from npufuse_tui.proof.process import outcomes
from npufuse_tui.rules import Rule, load_rules
from npufuse_tui.verify.capture_records import Captured, CapturedCall, CapturedValue

ELEMENTS = 2**24
"""Elements of one input up to which the CPU runs a call whole; above, its first dim is cut. An NPU runs it whole."""


TIME_LIMIT = 300.0
"""Seconds for one candidate at least: real shapes on a CPU take longer than a rule's examples."""

_NO_PLAN = Text("the candidate has no proof plan", "该候选没有验证计划")
_EXAMPLE = Text("run on the shapes of the rule's example: {why}", "使用规则示例中的形状：{why}")


def operator_check(candidate: Candidate, captured: Captured | None, options: ProofOptions) -> Check:
    """The check of one candidate; see the module. Raises what `npufuse_tui.proof.check.check` raises."""
    return operator_checks([candidate], {candidate.id: captured} if captured else {}, options)[candidate.id]


def operator_checks(
    candidates: Sequence[Candidate], captured: Mapping[str, Captured], options: ProofOptions
) -> dict[str, Check]:
    """The check of each candidate, by id. "skipped" when its plan could not be made or run, with the reason."""
    backend, children = prepare(replace(options, time_limit=max(options.time_limit, TIME_LIMIT)))
    rules = {rule.id: rule for rule in load_rules(options.extra_rules)}
    found: dict[str, Check] = {}
    jobs: list[dict[str, Any]] = []
    notes: list[tuple[str, Text | None]] = []
    for candidate in candidates:
        plan = candidate.proof
        if plan is None or plan.not_run is not None:
            why = plan.not_run if plan is not None else None
            found[candidate.id] = not_run(why or _NO_PLAN, backend)
            continue
        calls, note = _calls(
            candidate, captured.get(candidate.id), _inputs(rules, candidate), cut=children.device == "cpu"
        )
        jobs.append({"kind": "plan", "rule": plan.rule, "plan": as_json(plan), "captured": calls})
        notes.append((candidate.id, note))
    for index, outcome in outcomes(jobs, children) if jobs else ():
        identity, note = notes[index]
        check = as_check(outcome, backend)
        said = joined([one for one in (check.reason_text, note) if one is not None])
        found[identity] = replace(check, reason=said.en, reason_zh=said.zh) if said is not None else check
    for identity, _ in notes:
        found.setdefault(identity, not_run(Text("cancelled", "已取消"), backend))
    return found


def _calls(
    candidate: Candidate, captured: Captured | None, inputs: set[str], *, cut: bool
) -> tuple[list[dict[str, Any]], Text | None]:
    """The captured calls as the child takes them, and what is to be said about them."""
    if captured is None:
        return [], _EXAMPLE.format(why=Text("nothing was captured", "没有捕获到数据"))
    if not captured.examples:
        return [], _EXAMPLE.format(why=captured.reason)
    assert candidate.proof is not None
    wanted = _names(candidate.proof.values) & inputs
    usable = [one for one in captured.examples if wanted <= _known(one)]
    if not usable:
        lacking = sorted(wanted - _known(captured.examples[0]))
        lacks = Text("the capture lacks {names}", "捕获的数据缺少 {names}").format(names=", ".join(lacking))
        return [], _EXAMPLE.format(why=lacks)
    calls, notes = [], []
    for call in usable:
        values, shortened = _shortened(dict(call.values)) if cut else (dict(call.values), None)
        notes.append(shortened)
        calls.append(_as_job(call, values))
    return calls, next(filter(None, notes), None)


def _known(call: CapturedCall) -> set[str]:
    return {name for name, value in call.values if value.kind != "other"}


def _inputs(rules: Mapping[str, Rule], candidate: Candidate) -> set[str]:
    """The names that the rule gives to the inputs of the candidate's variant."""
    rule = rules.get(candidate.rule)
    patterns = [one for one in rule.patterns if one.variant == candidate.variant] if rule is not None else []
    return {name for one in patterns for name in one.parameters} | {one.name for one in candidate.bindings}


def _names(expressions: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for expression in expressions:
        found |= {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}
    return found


def _as_job(call: CapturedCall, values: Mapping[str, CapturedValue]) -> dict[str, Any]:
    tensors = {name: value for name, value in values.items() if value.kind == "tensor"}
    floating = [value.dtype for value in tensors.values() if "float" in value.dtype]
    shapes = ", ".join(f"{name} {'×'.join(map(str, value.shape)) or 'scalar'}" for name, value in tensors.items())
    dtypes = dict.fromkeys(floating)
    return {
        "label": shapes or "no tensors",
        "dtype": floating[0] if floating else "float32",
        "parameter_dtype": list(dtypes)[1] if len(dtypes) > 1 else (floating[0] if floating else "float32"),
        "autocast": call.autocast,
        "gradients": any(value.requires_grad for value in tensors.values()) and call.grad_enabled is not False,
        "values": {name: _as_spec(value) for name, value in values.items() if value.kind != "other"},
    }


def _as_spec(value: CapturedValue) -> dict[str, Any]:
    if value.kind == "value":
        return {"kind": "value", "value": value.value}
    return {
        "kind": "tensor",
        "shape": list(value.shape),
        "dtype": value.dtype,
        "stride": list(value.stride),
        "requires_grad": value.requires_grad,
        "mean": value.mean,
        "std": value.std,
        "low": value.low,
        "high": value.high,
        "file": value.file,
        "key": value.key,
    }


def _shortened(values: dict[str, CapturedValue]) -> tuple[dict[str, CapturedValue], Text | None]:
    """Cut the first dim of calls too large for a CPU, the same way in every input that shares it."""
    largest = max(
        (value for value in values.values() if value.kind == "tensor"), key=lambda one: prod(one.shape), default=None
    )
    if largest is None or prod(largest.shape) <= ELEMENTS or not largest.shape:
        return values, None
    length = largest.shape[0]
    kept = max(1, length * ELEMENTS // prod(largest.shape))
    cut = {
        name: replace(value, shape=(kept, *value.shape[1:]))
        if value.kind == "tensor" and value.shape and value.shape[0] == length and value.shape != (length,)
        else value
        for name, value in values.items()
    }
    return cut, Text(
        "the first dim was cut from {length} to {kept}, for the emulation on a CPU",
        "为在 CPU 上模拟，第一维由 {length} 截短为 {kept}",
    ).format(length=length, kept=kept)
