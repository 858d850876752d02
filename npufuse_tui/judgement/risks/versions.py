"""version_too_old, deprecated_api, product_support: what is installed or named here does not have the operator.

The version is the one that the repo pins; without a pin there is no evidence, and nothing is said but what holds for
the newest version (a deprecated operator).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from npufuse_tui.errors import NpufuseError
from npufuse_tui.judgement.api_call import check_replacement
from npufuse_tui.judgement.devices import devices
from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.judgement.surroundings import pinned_torch_npu
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity
from npufuse_tui.rules import Rule

_TOO_OLD = Text(
    "the repo asks for torch_npu {version}, which does not take this call: {fault}",
    "仓库要求 torch_npu {version}，该版本不支持此调用：{fault}",
)
_PRODUCT = Text(
    "the repo speaks of {name}, and {api} is known to serve {products} only",
    "仓库提到 {name}，而已知 {api} 仅支持 {products}",
)


def check(around: Around) -> Iterator[Risk]:
    repository = around.module.repository
    if not around.replacement or repository is None:
        return
    source = _source(around.rule, around.match.variant)
    pin = pinned_torch_npu(repository)
    for fault in _faults(source, pin[0] if pin else None):
        if "deprecated" in fault.en:
            yield Risk("deprecated_api", Severity.WARNING, fault, around.line)
        elif pin is not None:
            message = _TOO_OLD.format(version=pin[0], fault=fault)
            yield Risk("version_too_old", Severity.DANGER, message, pin[1].line, pin[1].file)
    yield from _products(around)


def _source(rule: Rule, variant: str) -> str:
    replacement = rule.replacement_for(variant)
    return "\n".join([replacement.source if replacement else "", *rule.helpers.values()])


@lru_cache(maxsize=256)
def _faults(source: str, version: str | None) -> tuple[Text, ...]:
    try:
        return check_replacement(source, version or "newest")
    except (NpufuseError, OSError, ValueError):
        return ()  # a version that nobody knows is no evidence


_NAMED = re.compile(rb"\b(?:Ascend[ -]?)?(310P\d?|910A|910B\d?|910C|910_93\d\d|950PR|950DT)\b")


def _products(around: Around) -> Iterator[Risk]:
    """A product that scripts or images of the repo name, when it is the only one and the rule does not serve it."""
    named = _named_products(around)
    if len(named) != 1:
        return
    (name, (file, line)) = next(iter(named.items()))
    device = next((one for one in devices() if any(re.fullmatch(pattern, name) for pattern in one.names)), None)
    if device is not None and not device.served_by(around.rule.products):
        message = _PRODUCT.format(name=name, api=around.rule.api, products=", ".join(around.rule.products))
        yield Risk("product_support", Severity.WARNING, message, line, file)


def _named_products(around: Around) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for file, data in around.repo.files.items():
        if file.endswith(".py"):
            continue
        for match in _NAMED.finditer(data):
            name = match.group(1).decode()
            found.setdefault(name, (file, data.count(b"\n", 0, match.start()) + 1))
    return found
