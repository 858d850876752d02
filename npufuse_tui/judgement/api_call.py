"""Whether the torch_npu calls in a piece of source are valid for one version's schemas.

The source is parsed, never run. Only what can be seen is judged: a call with ``*`` or ``**`` may give anything.
"""

from __future__ import annotations

import ast
import difflib
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

from npufuse_tui.judgement.api_knowledge import deprecated
from npufuse_tui.judgement.api_registry import Catalogue, catalogue, first_trains
from npufuse_tui.judgement.api_schema import Argument, Schema
from npufuse_tui.language import Text

# Parts of torch_npu that are Python modules and classes, not operators.
_MODULES = frozenset(
    [
        "npu",
        "optim",
        "profiler",
        "contrib",
        "utils",
        "distributed",
        "dynamo",
        "jit",
        "testing",
        "onnx",
        "asd",
        "multiprocessing",
        "op_plugin",
        "_C",
        "_inductor",
        "_compat",
        "_logging",
    ]
)


def check_replacement(source: str, schema_version: str | Path | Catalogue | None = None) -> tuple[Text, ...]:
    """What is wrong with the torch_npu calls in `source` under the schemas of `schema_version`; empty when all is well.

    `source` is an expression, statements or a function, indented or not. Names, keywords, the number of positional
    arguments and arguments that must be given are judged, against every overload; a deprecated operator is a fault.
    """
    versions = schema_version if isinstance(schema_version, Catalogue) else catalogue(schema_version)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarnings of the person's code are not for this screen
            tree = ast.parse(textwrap.dedent(source).strip("\n"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else str(error)
        return (
            Text("the replacement is no valid Python: {reason}", "替换代码不是合法的 Python：{reason}").format(
                reason=reason
            ),
        )
    faults: list[Text] = []
    for call, name, overload in _calls(tree):
        faults.extend(one for one in _judge(call, name, overload, versions) if one not in faults)
    return tuple(faults)


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    modules, functions = _imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in functions:
            yield node, functions[node.func.id], ""
            continue
        path = _path(node.func)
        if path[:3] == ["torch", "ops", "npu"] and len(path) in (4, 5):
            yield node, path[3], "" if len(path) == 4 or path[4] == "default" else path[4]
        elif len(path) == 2 and path[0] in modules and path[1] not in _MODULES:
            yield node, path[1], ""


def _imported(tree: ast.AST) -> tuple[set[str], dict[str, str]]:
    modules = {"torch_npu"}
    functions: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {one.asname for one in node.names if one.name == "torch_npu" and one.asname}
        elif isinstance(node, ast.ImportFrom) and node.module == "torch_npu":
            functions |= {one.asname or one.name: one.name for one in node.names if one.name not in _MODULES}
    return modules, functions


def _path(node: ast.expr) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    return [node.id, *reversed(names)]


def _judge(call: ast.Call, name: str, overload: str, versions: Catalogue) -> list[Text]:
    operator = versions.operators.get(name)
    if operator is None:
        if name[:1].isupper():  # a class, such as an optimizer: no operator
            return []
        return [_missing(name, versions)]
    schemas = [one for one in operator.schemas if not overload or one.overload == overload]
    if not schemas:
        return [
            Text(
                "torch_npu {version}: {name} has no overload {overload}",
                "torch_npu {version}：{name} 没有重载 {overload}",
            ).format(version=versions.version, name=name, overload=overload)
        ]
    faults = min((_against(call, schema) for schema in schemas), key=len)
    told = [
        Text("torch_npu {version}: {name} {fault}", "torch_npu {version}：{name} {fault}").format(
            version=versions.version, name=name, fault=fault
        )
        for fault in faults
    ]
    if name in deprecated():
        told.append(
            Text("{name} is deprecated, use {instead}", "{name} 已废弃，请改用 {instead}").format(
                name=name, instead=deprecated()[name]
            )
        )
    return told


def _missing(name: str, versions: Catalogue) -> Text:
    trains = first_trains(name)
    if trains:
        hint = Text("; these versions have it: {trains}", "；有它的版本：{trains}").format(trains=", ".join(trains))
    else:
        near = difflib.get_close_matches(name, versions.operators, n=1, cutoff=0.7)
        hint = Text("; did you mean {near}?", "；是否想写 {near}？").format(near=near[0]) if near else Text("", "")
    return Text("torch_npu {version} has no {name}{hint}", "torch_npu {version} 没有 {name}{hint}").format(
        version=versions.version, name=name, hint=hint
    )


def _against(call: ast.Call, schema: Schema) -> list[Text]:
    faults: list[Text] = []
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    expanded = any(one.arg is None for one in call.keywords)
    positional = schema.positional
    given = [one for one in call.args if not isinstance(one, ast.Starred)]
    if len(given) > len(positional):
        faults.append(
            Text(
                "takes {most} positional arguments, {given} are given{more}",
                "最多接受 {most} 个位置参数，却给了 {given} 个{more}",
            ).format(
                most=len(positional),
                given=len(given),
                more=Text(" (the rest by keyword only)", "（其余只能按关键字传入）")
                if len(positional) < len(schema.arguments)
                else Text("", ""),
            )
        )
    by_position = {one.name for one in positional[: len(given)]}
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        if keyword.arg not in schema.names:
            near = difflib.get_close_matches(keyword.arg, schema.names, n=1, cutoff=0.5)
            hint = (
                Text(" (did you mean {near}?)", "（是否想写 {near}？）").format(near=near[0]) if near else Text("", "")
            )
            faults.append(
                Text("has no argument {name}{hint}", "没有参数 {name}{hint}").format(name=keyword.arg, hint=hint)
            )
        elif keyword.arg in by_position:
            faults.append(
                Text("gets {name} both by position and by keyword", "的参数 {name} 既按位置又按关键字传入").format(
                    name=keyword.arg
                )
            )
    if not starred and not expanded:
        named = {keyword.arg for keyword in call.keywords}
        absent = [one for one in schema.arguments if _must(one) and one.name not in by_position | named]
        if absent:
            faults.append(Text("needs {names}", "缺少参数 {names}").format(names=", ".join(one.name for one in absent)))
    return faults


def _must(argument: Argument) -> bool:
    return argument.default is None
