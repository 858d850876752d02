"""A block that only runs where no NPU is: its fused twin stands in the other branch already.

What an edit of ours leaves behind looks so, and so does what people write by hand: the other branch of an `if`, an `if`
above that returns early, the `except` of an attempt, the other side of a conditional expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from npufuse_tui.dataflow.source import FunctionNode, dotted_name
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.npu_words import names_an_npu, names_fusion
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_MESSAGE = Text(
    "already fused: on an NPU line {line} calls {name} instead of these lines",
    "已融合：在 NPU 上由第 {line} 行调用 {name}，而不执行这些代码",
)


@dataclass(frozen=True, slots=True)
class Fused:
    """The call that stands in for the block."""

    name: str
    line: int

    @property
    def text(self) -> Text:
        return _MESSAGE.format(line=self.line, name=self.name)

    @property
    def risk(self) -> Risk:
        return Risk("already_fused", Severity.INFO, self.text, self.line)


def already_fused(
    function: FunctionNode, statement: ast.stmt, expression: ast.expr | None, api: str, aliases: Iterable[str] = ()
) -> Fused | None:
    """The fused call that runs in the place of `statement` (of its `expression`) of `function`, or None.

    `api` is the operator that would be put in. Where the switch names an NPU or fused operators, any operator of
    torch_npu in the other branch counts; else only that one. `aliases` are names that the file gives to torch_npu.
    """
    modules = {"torch_npu", *aliases}
    for instead, switch in (*_instead_of(function, statement), *_inside(statement, expression)):
        named = switch is not None and _speaks_of_it(ast.unparse(switch))
        for node in instead:
            for call in walk(node):
                if not isinstance(call, ast.Call):
                    continue
                name = _operator(call, modules)
                if name is not None and (named or _last(name) == _last(api)):
                    return Fused(name, call.lineno)
    return None


def _speaks_of_it(test: str) -> bool:
    return names_an_npu(test) or names_fusion(test)


def _operator(call: ast.Call, modules: set[str]) -> str | None:
    """The name of the operator of torch_npu (or of a wrapper that is named after one) that is called."""
    name = dotted_name(call.func)
    if name is None:
        return None
    parts = name.split(".")
    if parts[0] in modules and len(parts) == 2:
        return name
    if parts[:3] == ["torch", "ops", "npu"]:
        return name
    if re.match(r"npu_\w+$", parts[-1]):
        return name
    return None


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _instead_of(function: FunctionNode, statement: ast.stmt) -> Iterator[tuple[Sequence[ast.AST], ast.expr | None]]:
    """The suites that run where this statement does not, with the test that decides."""
    for parent, suite, place in reversed(_path(function, statement)):
        if isinstance(parent, ast.If):
            if suite is parent.orelse:
                yield parent.body, parent.test
            elif parent.orelse:
                yield parent.orelse, parent.test
        elif isinstance(parent, ast.Try) and suite is not parent.body and suite is not parent.finalbody:
            yield parent.body, None
        for earlier in suite[:place]:
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], (ast.Return, ast.Raise, ast.Continue)):
                yield earlier.body, earlier.test
            elif isinstance(earlier, ast.Try) and isinstance(earlier.body[-1], ast.Return):
                yield earlier.body, None


def _inside(statement: ast.stmt, expression: ast.expr | None) -> Iterator[tuple[Sequence[ast.AST], ast.expr | None]]:
    if expression is None:
        return
    for node in walk(statement):
        if isinstance(node, ast.IfExp):
            if any(inner is expression for inner in walk(node.orelse)):
                yield [node.body], node.test
            elif any(inner is expression for inner in walk(node.body)):
                yield [node.orelse], node.test


def _path(function: FunctionNode, statement: ast.stmt) -> list[tuple[ast.stmt, list[ast.stmt], int]]:
    """The suites around a statement, outermost first: whose suite it is, the suite, the place in it."""

    def look(parent: ast.stmt) -> list[tuple[ast.stmt, list[ast.stmt], int]] | None:
        for suite in suites(parent):
            for place, one in enumerate(suite):
                if one is statement:
                    return [(parent, suite, place)]
                if one.lineno <= statement.lineno <= (one.end_lineno or one.lineno):
                    found = look(one)
                    if found is not None:
                        return [(parent, suite, place), *found]
        return None

    return look(function) or []


def suites(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The suites of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(statement, name, None)
        if isinstance(suite, list) and suite and isinstance(suite[0], ast.stmt):
            yield suite
    for holder in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield holder.body
