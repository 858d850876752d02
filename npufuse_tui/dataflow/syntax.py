"""A syntax tree, walked once: what is asked of the same function again and again is remembered."""

from __future__ import annotations

import ast

MOST_REMEMBERED = 4000
"""Statements whose nodes are remembered, until all are forgotten."""

_NODES: dict[int, tuple[ast.AST, list[ast.AST]]] = {}
_NAMES: dict[int, tuple[ast.AST, frozenset[str]]] = {}
_BOUND: dict[int, tuple[ast.AST, frozenset[str]]] = {}


def walk(root: ast.AST) -> list[ast.AST]:
    """The nodes of a tree in the order of `ast.walk`. The tree must not change afterwards."""
    if not isinstance(root, ast.stmt):
        return _walked(root)
    known = _NODES.get(id(root))
    if known is None:
        if len(_NODES) >= MOST_REMEMBERED:
            _NODES.clear()
        known = _NODES[id(root)] = (root, _walked(root))  # the tree is held, so its id stays its own
    return known[1]


def _walked(root: ast.AST) -> list[ast.AST]:
    found = [root]
    for node in found:  # grows while it is walked
        for name in node._fields:
            value = getattr(node, name, None)
            if value.__class__ is list:
                found += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, (ast.expr_context, ast.operator)):
                found.append(value)
    return found


def names_read(root: ast.AST) -> frozenset[str]:
    """The plain names that are read anywhere in a tree."""
    known = _NAMES.get(id(root))
    if known is None:
        if len(_NAMES) >= MOST_REMEMBERED:
            _NAMES.clear()
        names = frozenset(
            node.id for node in walk(root) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        known = _NAMES[id(root)] = (root, names)
    return known[1]


def names_bound(statement: ast.stmt) -> frozenset[str]:
    """The plain names that a statement binds, nested suites included, nested functions not."""
    known = _BOUND.get(id(statement))
    if known is None:
        if len(_BOUND) >= MOST_REMEMBERED:
            _BOUND.clear()
        known = _BOUND[id(statement)] = (statement, _bound(statement))
    return known[1]


def _bound(statement: ast.stmt) -> frozenset[str]:
    names: set[str] = set()
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
        elif not isinstance(node, ast.Lambda):
            for name in node._fields:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    stack += [one for one in value if isinstance(one, ast.AST)]
                elif isinstance(value, ast.AST) and not isinstance(value, (ast.expr_context, ast.operator)):
                    stack.append(value)
    return frozenset(names)


def forget() -> None:
    """Let the trees go that are held here."""
    _NODES.clear()
    _NAMES.clear()
    _BOUND.clear()
