"""What a rule may ask about a match: the engine's answer to `npufuse_tui.rules.MatchView`."""

from __future__ import annotations

import ast
import re

from npufuse_tui.dataflow.graph import Node, strip_casts
from npufuse_tui.dataflow.match import Match, is_scalar
from npufuse_tui.dataflow.source import dotted_name
from npufuse_tui.dataflow.syntax import walk

ORIGINS = {"module_linear": "linear", "phi": "choice", "piece": "chunk", "index": "slice"}


class View:
    """One match, as knowledge sees it."""

    def __init__(self, match: Match, inputs: dict[str, str] | None = None) -> None:
        self._match = match
        self._inputs = inputs or {}
        self.variant = match.variant
        self.file = match.function.module.file
        self.qualname = match.function.scope.qualname

    @property
    def first_line(self) -> int:
        return self._match.function.scope.node.lineno

    def node(self, name: str) -> Node:
        """For the engine's own risks: the node that the input is."""
        return self._match.values[name]

    def source(self, name: str) -> str:
        return self._inputs.get(name, name)

    def line(self, name: str) -> int | None:
        node = self._match.values.get(name)
        sites = node.sites if node is not None else []
        return sites[0].expression.lineno if sites else None

    def origin(self, name: str) -> str:
        op = strip_casts(self._match.values[name]).op
        return ORIGINS.get(op, op)

    def constant(self, name: str) -> object:
        node = strip_casts(self._match.values[name])
        if node.op == "constant_name":
            return node.args[0].value
        if node.is_constant:
            return node.value
        for value in self._constructors(node):
            try:
                return ast.literal_eval(value)
            except (ValueError, SyntaxError):
                continue
        return None

    def constructed(self, name: str) -> str | None:
        values = self._constructors(strip_casts(self._match.values[name]))
        return ast.unparse(values[0]) if values else None

    def _constructors(self, node: Node) -> list[ast.expr]:
        owner = self._match.function.scope.owner
        held = node.op == "attribute" and node.args[0].op == "parameter" and node.args[0].attrs[0] == "self"
        if owner is None or not held:
            return []
        return [value for _, value in owner.attribute(str(node.attrs[0]))]

    def made_with(self, name: str) -> frozenset[str]:
        found: set[str] = set()
        level = [self._match.values[name]]
        for _ in range(4):
            found |= {node.op for node in level}
            level = [arg for node in level if node.op != "call" for arg in node.args]
        return frozenset(found)

    def same_source(self, one: str, other: str) -> bool:
        left, right = (_producer(self._match.values[name]) for name in (one, other))
        return left is not None and right is not None and left[0] != right[0] and left[1] == right[1]

    def uses(self, word: str) -> int | None:
        function = self._match.function
        scopes: list[ast.AST] = [function.scope.node]
        for node in scopes:
            for inner in walk(node):
                name = (
                    inner.id
                    if isinstance(inner, ast.Name)
                    else inner.attr
                    if isinstance(inner, ast.Attribute)
                    else None
                )
                if name == word:
                    return int(inner.lineno)  # type: ignore[attr-defined]
        owner = function.scope.owner
        for decorator in [*function.scope.node.decorator_list, *(owner.node.decorator_list if owner else [])]:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if word in (dotted_name(called) or "").split("."):
                return decorator.lineno
        return None

    def file_uses(self, word: str) -> int | None:
        found = re.search(rb"\b" + re.escape(word.encode()) + rb"\b", self._match.function.module.source)
        return self._match.function.module.source.count(b"\n", 0, found.start()) + 1 if found else None


def _producer(node: Node) -> tuple[tuple[object, ...], tuple[int, ...]] | None:
    """What makes the value, and from what: (the called thing, its arguments). None when it is no projection."""
    node = strip_casts(node)
    if node.op in ("reshape", "transpose", "permute", "unsqueeze", "squeeze", "dropout", "clamp"):
        return _producer(node.args[0])
    if node.op == "mul" and any(is_scalar(arg) for arg in node.args):
        return _producer(next((arg for arg in node.args if not is_scalar(arg)), node.args[0]))
    if node.op == "module_linear":
        return ((node.args[1].id,), (node.args[0].id,))
    if node.op == "call" and len(node.args) > 1:
        return ((node.args[0].id,), tuple(arg.id for arg in node.args[1:]))
    if node.op in ("linear", "matmul") and len(node.args) > 1:
        return (tuple(arg.id for arg in node.args[1:]), (strip_casts(node.args[0]).id,))
    if node.op == "einsum":
        return (tuple(arg.id for arg in node.args[1:]), (strip_casts(node.args[0]).id,))
    if node.op == "add" and strip_casts(node.args[0]).op in ("matmul", "linear", "einsum"):
        inner = _producer(node.args[0])
        return ((inner[0], node.args[1].id), inner[1]) if inner is not None else None
    if node.op in ("getitem", "piece", "index"):
        return ((node.op, *node.attrs, *(arg.id for arg in node.args[1:])), (strip_casts(node.args[0]).id,))
    return None
