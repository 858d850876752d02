"""dtype: what decides in which precision the block computes and what dtype it gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npufuse_tui.dataflow.graph import strip_casts
from npufuse_tui.judgement.risks.context import Around, line_of
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_DOUBLE = Text(
    "the chain computes in float64 here; {api} takes {dtypes}, so the fused branch is less precise",
    "此处计算链使用 float64；{api} 仅支持 {dtypes}，融合分支精度更低",
)
_AUTOCAST = Text(
    "the block runs in an autocast region: small operators such as pow, sum or softmax run in float32 there, and {api}"
    " runs in the dtype of its input",
    "该代码块位于 autocast 区域：pow、sum、softmax 等小算子在其中以 float32 运行，而 {api} 按输入 dtype 运行",
)
_CUSTOM_FWD = Text(
    "custom_fwd decides the dtype of the inputs under autocast; its backward is written by hand and stays as it is",
    "custom_fwd 决定 autocast 下的输入 dtype；手写的反向保持不变",
)
_PROMOTED = Text(
    "with half input and {name} in float32 the original returns float32; the fused branch casts its result likewise",
    "输入为半精度而 {name} 为 float32 时，原代码返回 float32；融合分支会将结果转换为相同 dtype",
)
_HALF_WEIGHT = Text(
    "the input is cast to float32 (line {line}) and the weight is made in half precision: {api} takes no float32 input"
    " with a half weight",
    "输入被转为 float32（第 {line} 行），而权重以半精度创建：{api} 不支持 float32 输入配半精度权重",
)
_HALF = re.compile(r"float16|bfloat16|\.half\(\)|\.bfloat16\(\)")


def check(around: Around) -> Iterator[Risk]:
    yield from _double(around)
    yield from _autocast(around)
    yield from _half_weight(around)
    if "promote_types" in around.replacement and ".dtype ==" not in around.guard:
        others = [name for name, _ in around.inputs("parameter", "tensor") if name != around.rule.output_dtype]
        message = _PROMOTED.format(name=" / ".join(dict.fromkeys(others)) or around.rule.output_dtype)
        yield Risk("dtype", Severity.INFO, message, line_of(around.match.root) or around.line)


def _double(around: Around) -> Iterator[Risk]:
    if "float64" in around.rule.dtypes:
        return
    held = [node for match in around.matches for node in (*match.inside, *match.values.values())]
    for node in held:
        if node.op == "cast" and node.attrs == ("float64",):
            message = _DOUBLE.format(api=around.rule.api, dtypes=", ".join(around.rule.dtypes))
            yield Risk("dtype", Severity.WARNING, message, line_of(node) or around.line)
            return


def _autocast(around: Around) -> Iterator[Risk]:
    regions = around.function.autocast
    for statement in (*around.enclosing, *around.statements):
        expression = regions.get(statement)
        if expression is not None and not _off(expression):
            message = _AUTOCAST.format(api=around.rule.api)
            yield Risk("dtype", Severity.WARNING, message, expression.lineno)
            return
    for decorator in around.decorators():
        last = decorator.name.rpartition(".")[2]
        if last == "autocast" and not _off(decorator.expression):
            yield Risk("dtype", Severity.WARNING, _AUTOCAST.format(api=around.rule.api), decorator.line)
            return
        if last == "custom_fwd":
            yield Risk("dtype", Severity.WARNING, _CUSTOM_FWD, decorator.line)
            return


def _off(expression: ast.expr) -> bool:
    """Whether an autocast region is one that turns autocast off."""
    if not isinstance(expression, ast.Call):
        return False
    return any(
        keyword.arg == "enabled" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in expression.keywords
    ) or any(isinstance(one, ast.Constant) and one.value is False for one in expression.args)


def _half_weight(around: Around) -> Iterator[Risk]:
    if around.rule.family != "norm" or not around.replacement or around.owner is None:
        return
    for _, weight in around.inputs("parameter"):
        plain = strip_casts(weight)
        if plain.op != "attribute" or plain is not weight:
            continue
        made = [value for _, value in around.owner.attribute(str(plain.attrs[0])) if _HALF.search(ast.unparse(value))]
        if not made:
            continue
        for name, value in around.inputs("tensor"):
            if value.op == "cast" and value.attrs == ("float32",) and _is_passed_wide(around, name):
                line = line_of(value) or around.line
                yield Risk("dtype", Severity.DANGER, _HALF_WEIGHT.format(line=line, api=around.rule.api), line)
                return


def _is_passed_wide(around: Around, name: str) -> bool:
    """Whether the fused call gets the value after its cast to float32."""
    given = (around.given or {}).get(name, "")
    first = around.statements[0] if around.statements else None
    held = around.function.before.get(first, {}).get(given) if first is not None else None
    return ".float()" in given or "float32" in given or (held is not None and held is around.match.values[name])
