"""What there is to say of a rule before anything is scanned: one entry a rule, made from the rule itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npufuse_tui.language import Text
from npufuse_tui.rules import Rule

_DIRECTIONS = {
    (True, True): Text("training and inference", "训练与推理"),
    (True, False): Text("training", "训练"),
    (False, True): Text("inference", "推理"),
    (False, False): Text("neither training nor inference", "均不适用"),
}


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule as a person reads it: `forms` are the ways of writing that it knows."""

    id: str
    title: Text
    api: str
    directions: Text
    dtypes: tuple[str, ...]
    products: tuple[str, ...]
    forms: tuple[str, ...]


def rule_entries(rules: Iterable[Rule]) -> tuple[RuleEntry, ...]:
    """An entry for each rule, in the order given."""
    return tuple(
        RuleEntry(
            rule.id,
            rule.title,
            rule.api,
            _DIRECTIONS[rule.training, rule.inference],
            rule.dtypes,
            rule.products,
            tuple(dict.fromkeys(pattern.variant for pattern in rule.patterns)),
        )
        for rule in rules
    )


def rules_text(rules: Iterable[Rule]) -> str:
    """The entries as plain text, in the current language, two lines a rule."""
    lines = []
    for one in rule_entries(rules):
        lines.append(f"{one.id}  {one.title} → {one.api} ({one.directions})")
        lines.append(f"    {', '.join(one.dtypes)}; {', '.join(one.products) or '-'}; {', '.join(one.forms)}")
    return "\n".join(lines)
