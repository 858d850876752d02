"""Command-line options that a repo defines with argparse: their names, their defaults, where another one fits in."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from npufuse_tui.dataflow.repository import Repository
from npufuse_tui.dataflow.source import dotted_name
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.surroundings import surroundings


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its name in the namespace, whether it is on by default (None: it is no switch), and its line."""

    name: str
    on: bool | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Parser:
    """A file that defines options: the options, and the statement behind which another one can be put."""

    file: str
    source: bytes
    options: tuple[Option, ...]
    last: ast.stmt
    variable: str


@lru_cache(maxsize=2)
def parsers(repository: Repository) -> tuple[Parser, ...]:
    """The files of the repo that build an argparse parser."""
    found: list[Parser] = []
    for name, data in surroundings(repository).python():
        if b".add_argument(" in data and b"ArgumentParser(" in data:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    tree = ast.parse(data)
            except (SyntaxError, ValueError, RecursionError):
                continue
            parser = _parser(name, data, tree)
            if parser is not None:
                found.append(parser)
    return tuple(found)


def _parser(file: str, source: bytes, tree: ast.Module) -> Parser | None:
    options: list[Option] = []
    last: tuple[ast.stmt, str] | None = None
    for statement, call in _added(tree):
        option = _option(call, file)
        if option is not None:
            options.append(option)
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            last = (statement, call.func.value.id)
    return Parser(file, source, tuple(options), *last) if last is not None else None


def _added(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """The statements that are a call of add_argument, in the order of lines."""
    found = [
        (node, node.value)
        for node in walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and (dotted_name(node.value.func) or "").endswith(".add_argument")
    ]
    return iter(sorted(found, key=lambda pair: pair[0].lineno))


def _option(call: ast.Call, file: str) -> Option | None:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    said = given.get("dest")
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        name = said.value
    elif flags:
        name = max(flags, key=len).lstrip("-").replace("-", "_")
    else:
        return None
    action, value = given.get("action"), given.get("default")
    on: bool | None = None
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        on = value.value
    elif isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        on = action.value == "store_false"
    return Option(name, on, file, call.lineno)
