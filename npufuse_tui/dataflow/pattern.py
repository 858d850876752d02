"""Patterns of rules, lowered like any code: parameters become wildcards, casts fall away."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from dataclasses import dataclass
from functools import lru_cache

from npufuse_tui.dataflow.graph import Graph, Node
from npufuse_tui.dataflow.lower import Frame, FunctionGraph, run
from npufuse_tui.dataflow.source import Scope, SourceModule, read_module
from npufuse_tui.rules import Pattern, Rule

STANDARD_NAMES = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "math": "math",
    "torch_npu": "torch_npu",
    "einops": "einops",
}


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPattern:
    """A pattern as a graph. `kinds` says of each wildcard what it may stand for.

    `optional` are the parameters that have a default: a factor or a term that the code may leave out. `extras` are the
    other values of a pattern that returns a tuple: the replacement gives them too, for code that uses them later.
    """

    rule: Rule
    pattern: Pattern
    root: Node
    kinds: dict[str, str]
    optional: dict[str, object]
    extras: tuple[Node, ...]
    size: int

    @property
    def variant(self) -> str:
        return self.pattern.variant


@lru_cache(maxsize=64)
def _knowledge_module(name: str) -> SourceModule:
    module = sys.modules[name]
    source = inspect.getsource(module)
    read = read_module(name.replace(".", "/") + ".py", source.encode())
    read.imports.update(STANDARD_NAMES)
    return read


def compile_pattern(rule: Rule, pattern: Pattern) -> CompiledPattern:
    """Lower a pattern. Raises ValueError when it computes nothing that can be matched."""
    module = _knowledge_module(pattern.function.__module__)
    tree = ast.parse(textwrap.dedent(pattern.source))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    kinds = {argument.arg: _kind(argument.annotation) for argument in function.args.args}
    graph = Graph()
    with_default = {
        argument.arg for argument in function.args.args[len(function.args.args) - len(function.args.defaults) :]
    }
    wildcards = {
        name: graph.fresh("wildcard", attrs=(name, kind, name in with_default)) for name, kind in kinds.items()
    }
    into = FunctionGraph(Scope(pattern.variant, function, None, ()), module, graph, wildcards)
    frame = Frame(into, module, None, dict(wildcards), 0, function, (id(function),))
    run(frame, function.body)
    if not frame.returns:
        raise ValueError(f"pattern {pattern.variant} of rule {rule.id} returns nothing")
    returned = frame.returns[-1].node
    values = returned.args if returned.op == "tuple" else (returned,)
    done: dict[int, Node] = {}
    root, *extras = (without_casts(value, graph, done) for value in values)
    names = [argument.arg for argument in function.args.args]
    given = function.args.defaults
    optional = {
        name: ast.literal_eval(value) for name, value in zip(names[len(names) - len(given) :], given, strict=True)
    }
    return CompiledPattern(rule, pattern, root, kinds, optional, tuple(extras), sum(1 for _ in root.walk()))


def _kind(annotation: ast.expr | None) -> str:
    if isinstance(annotation, ast.Name):
        return annotation.id.lower()
    if isinstance(annotation, ast.Constant):
        return str(annotation.value).lower()
    return "tensor"


def without_casts(node: Node, graph: Graph, _done: dict[int, Node] | None = None) -> Node:
    """The same computation with the casts, copies and `contiguous` taken out."""
    done = _done if _done is not None else {}
    if node.id in done:
        return done[node.id]
    if node.op in ("cast", "contiguous", "clone"):
        result = without_casts(node.args[0], graph, done)
    elif not node.args or node.op in ("wildcard", "constant"):
        result = node
    else:
        args = [without_casts(arg, graph, done) for arg in node.args]
        same = all(one is other for one, other in zip(args, node.args, strict=True))
        result = node if same else graph.make(node.op, *args, attrs=node.attrs)
    done[node.id] = result
    return result
