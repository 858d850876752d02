"""What a risk may look at: the match, the statements that it takes the place of, the edit, the file and the repo."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.lower import FunctionGraph
from npufuse_tui.dataflow.match import Match
from npufuse_tui.dataflow.source import ClassInfo, FunctionNode, SourceModule, dotted_name
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.surroundings import Surroundings, surroundings
from npufuse_tui.rules import Rule


@dataclass(frozen=True, slots=True)
class Decorator:
    """A decorator of the function, of its class, or of a function around it."""

    name: str
    line: int
    expression: ast.expr


@dataclass(eq=False, slots=True)
class Around:
    """A candidate that is being made.

    `statements` are those that the edit replaces, `enclosing` the compound statements around them, innermost first;
    `replacement` and `guard` are empty where there is no edit; `given` is the code of each input of the first fused
    call; `nothing` are the names that the fused branch leaves as None.
    """

    rule: Rule
    matches: Sequence[Match]
    statements: Sequence[ast.stmt] = ()
    enclosing: Sequence[ast.stmt] = ()
    replacement: str = ""
    guard: str = ""
    given: dict[str, str] | None = None
    nothing: Sequence[str] = ()

    @property
    def match(self) -> Match:
        return self.matches[0]

    @property
    def function(self) -> FunctionGraph:
        return self.match.function

    @property
    def node(self) -> FunctionNode:
        return self.function.scope.node

    @property
    def owner(self) -> ClassInfo | None:
        return self.function.scope.owner

    @property
    def module(self) -> SourceModule:
        return self.function.module

    @property
    def repo(self) -> Surroundings:
        repository = self.module.repository
        return surroundings(repository) if repository is not None else Surroundings()

    @property
    def line(self) -> int:
        """The first line of the block."""
        return self.statements[0].lineno if self.statements else line_of(self.match.root) or self.node.lineno

    def inputs(self, *kinds: str) -> Iterator[tuple[str, Node]]:
        """The pattern's inputs of these kinds ("tensor", "parameter", "mask", "scalar", "flag") in every match."""
        for match in self.matches:
            for name, node in match.values.items():
                if match.pattern.kinds[name] in kinds:
                    yield name, node

    def decorators(self) -> Iterator[Decorator]:
        """Decorators of the function, of the functions around it, and of its class."""
        nodes: list[FunctionNode | ast.ClassDef] = [self.node, *self.function.scope.enclosing]
        if self.owner is not None:
            nodes.append(self.owner.node)
        for node in nodes:
            for one in node.decorator_list:
                name = dotted_name(one.func if isinstance(one, ast.Call) else one)
                if name is not None:
                    yield Decorator(name, one.lineno, one)

    def parameters(self) -> dict[str, int]:
        """The function's parameters and the lines on which they stand."""
        given = self.node.args
        return {one.arg: one.lineno for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}

    def word(self, pattern: re.Pattern[str]) -> tuple[str, int] | None:
        """The first name or attribute in the function that the whole pattern fits, with its line."""
        for node in walk(self.node):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if isinstance(node, ast.arg):
                name = node.arg
            if name is not None and pattern.fullmatch(name):
                return name, node.lineno  # type: ignore[attr-defined]
        return None

    def called(self, *names: str) -> tuple[str, int] | None:
        """The first call in the file of a function whose dotted name ends in one of these, with its line."""
        return _called(self.module, names)


def line_of(node: Node) -> int | None:
    """The line on which a value is made."""
    return node.sites[0].expression.lineno if node.sites else None


@lru_cache(maxsize=64)
def _called(module: SourceModule, names: tuple[str, ...]) -> tuple[str, int] | None:
    if not any(f"{name}(".encode() in module.source for name in names):
        return None
    for name, line in _calls(module):
        if any(name == one or name.endswith("." + one) for one in names):
            return name, line
    return None


@lru_cache(maxsize=4)
def _calls(module: SourceModule) -> tuple[tuple[str, int], ...]:
    """Every call of the file by its dotted name, in the order of lines."""
    found = [
        (name, node.lineno)
        for node in walk(module.tree)
        if isinstance(node, ast.Call) and (name := dotted_name(node.func)) is not None
    ]
    return tuple(sorted(found, key=lambda one: one[1]))
