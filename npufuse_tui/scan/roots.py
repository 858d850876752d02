"""Whether a function writes the operation that a pattern ends in: what a match replaces stands in the function itself.

A look at the syntax, before the function is lowered: most functions that mention the words of a rule (a model's forward
that calls `self.norm`) write no product or sum of their own, and are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from npufuse_tui.dataflow.syntax import walk

OPERATORS: dict[str, tuple[type[ast.operator], ...]] = {
    "mul": (ast.Mult, ast.Div),
    "add": (ast.Add, ast.Sub),
    "matmul": (ast.MatMult,),
}
"""Operation of the graph → the Python operators that it is made of."""

CALLS: dict[str, frozenset[str]] = {
    "mul": frozenset({"mul", "mul_", "multiply", "div", "div_", "divide", "true_divide", "baddbmm", "addcmul"}),
    "add": frozenset({"add", "add_", "sub", "sub_", "subtract", "baddbmm", "addcmul"}),
    "matmul": frozenset({"matmul", "mm", "bmm", "baddbmm", "einsum"}),
}
"""Operation → the calls that it is made of."""


def writes(function: ast.AST, roots: Iterable[str], source: bytes) -> bool:
    """Whether one of the operations may come out of a statement of the function itself. `source` is its file."""
    return any(_writes(function, root, source) for root in roots)


def _writes(function: ast.AST, root: str, source: bytes) -> bool:
    if root == "loop":
        return any(isinstance(node, (ast.For, ast.AsyncFor)) for node in walk(function))
    if root == "rms_norm":
        return b"nn.RMSNorm" in source or "rms_norm" in called_names(function)
    if root == "phi":
        # the arms of the choices that are patterns are products
        return any(isinstance(node, (ast.If, ast.IfExp)) for node in walk(function)) and _writes(
            function, "mul", source
        )
    if root not in OPERATORS:
        return True
    wanted = OPERATORS[root]
    return any(
        isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, wanted) for node in walk(function)
    ) or not CALLS[root].isdisjoint(called_names(function))


def called_names(function: ast.AST) -> frozenset[str]:
    """The last parts of the names that are called in a function."""
    return frozenset(
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for node in walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))
    )
