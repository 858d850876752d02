"""A rule's own pattern run against its own replacement: the knowledge proves itself. Runs in the child.

A pattern stands for every placement of casts, so the output dtype that is asked for is not the pattern's but that of
the input that `rule.output_dtype` names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from npufuse_tui.language import Text
from npufuse_tui.model import Verdict
from npufuse_tui.proof.cases import Case, cases_of, kinds_of, make
from npufuse_tui.proof.execute import Manner, prepare_rule, run_cases
from npufuse_tui.proof.outcome import Outcome, failed, skipped
from npufuse_tui.rules import Rule

_NO_REPLACEMENT = Text(
    "the rule {rule} has no replacement for its variant {variant}", "规则 {rule} 的变体 {variant} 没有替换代码"
)
_NO_EXAMPLE = Text("the rule {rule} has no example for its variant {variant}", "规则 {rule} 的变体 {variant} 没有示例")


def prove(rule: Rule, variant: str, options: Mapping[str, Any]) -> Outcome:
    """Every case of one variant: each pattern of that name against the replacement for it."""
    patterns = [one for one in rule.patterns if one.variant == variant]
    replacement = rule.replacement_for(variant)
    example = rule.example_for(variant)
    if not patterns or replacement is None:
        return skipped(_NO_REPLACEMENT.format(rule=rule.id, variant=variant))
    if example is None:
        return failed(_NO_EXAMPLE.format(rule=rule.id, variant=variant))
    module = prepare_rule(rule)
    outcomes = []
    for pattern in patterns:
        kinds = kinds_of(pattern)
        cases = [one for one in cases_of(rule, example, kinds, options.get("dtypes") or ()) if one.layout != "autocast"]
        region = _called(pattern.function)
        first = make(module, example, cases[0])
        manner = Manner(
            kinds=kinds,
            outputs=0,
            gradients=rule.training,
            device=options.get("device", "cpu"),
            approximate=pattern.verdict is not Verdict.RECOMMENDED,
            dtype_as=rule.output_dtype if rule.output_dtype in first else None,
        )

        def values_of(case: Case) -> Mapping[str, Any]:
            return make(module, example, case)

        outcomes.append(run_cases(cases, values_of, (region, _called(replacement.function), region), manner))
    worst = [one for one in outcomes if one["status"] != "passed"]
    return (worst or outcomes)[0]


def _called(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    names = tuple(inspect.signature(function).parameters)
    return lambda inputs: function(**{name: inputs[name] for name in names if name in inputs})
