"""quantised_weights, tensor_parallel: weights that are not what the plain code takes them for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_QUANTISED = Text(
    "{name} on this line holds quantised weights, and the fused call reads {parameter} as plain numbers",
    "此行的 {name} 保存量化权重，而融合调用把 {parameter} 当作普通数值读取",
)
_PARALLEL = Text(
    "{name} on this line splits the projection over ranks: the fused call works on this rank's share, so verify with"
    " the same number of ranks",
    "此行的 {name} 将投影切分到多个 rank：融合调用只处理本 rank 的部分，请用相同的 rank 数验证",
)
_QUANTISED_NAMES = re.compile(
    r"Linear4bit|Linear8bitLt|QuantLinear|W8A8\w*Linear|FP8Linear|Int8Params|Params4bit|qweight|weight_scale_inv|WQLinear\w*"
)
_PARALLEL_NAMES = re.compile(
    r"(?:Merged|QKV|Tensor)?(?:Column|Row)ParallelLinear|MergedColumnParallelLinear|QKVParallelLinear|"
    r"TE(?:LayerNorm)?ColumnParallelLinear|TERowParallelLinear|(?:Column|Row)wiseParallel"
)


def check(around: Around) -> Iterator[Risk]:
    if not around.replacement or around.owner is None:
        return
    parameter = _weight_read(around)
    if parameter is not None:
        found = _name_in(around.owner.node, _QUANTISED_NAMES)
        if found is not None:
            message = _QUANTISED.format(name=found[0], parameter=parameter)
            yield Risk("quantised_weights", Severity.DANGER, message, found[1])
    constructor = around.owner.methods.get("__init__")
    if around.rule.family != "norm" and constructor is not None:
        found = _name_in(constructor, _PARALLEL_NAMES)
        if found is not None:
            yield Risk("tensor_parallel", Severity.INFO, _PARALLEL.format(name=found[0]), found[1])


def _weight_read(around: Around) -> str | None:
    """A projection's weight that the fused branch hands to an operator itself; a norm's weight is never quantised."""
    if around.rule.family == "norm":
        return None
    found = re.search(r"\bself(?:\.\w+)*\.(?:\w*weight\w*|\w*_proj|w[123])\b(?!\()", around.replacement)
    return found.group(0) if found is not None else None


def _name_in(node: ast.AST, pattern: re.Pattern[str]) -> tuple[str, int] | None:
    for inner in walk(node):
        name = inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else None
        if name is not None and pattern.fullmatch(name):
            return name, inner.lineno  # type: ignore[attr-defined]
    return None
