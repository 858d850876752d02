"""Einsum of two operands as the matmul that it is: q·kᵀ and weights·v in any order of the dims."""

from __future__ import annotations

import ast
import re

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.lower import Frame

_EQUATION = re.compile(r"^\s*([a-zA-Z]+)\s*,\s*([a-zA-Z]+)\s*->\s*([a-zA-Z]+)\s*$")


def einsum(frame: Frame, expression: ast.Call, equation: object, operands: list[Node]) -> Node:
    """The node of an einsum: a matmul with the permutations around it where it is one, else itself.

    "bhid,bhjd->bhij" is q @ k.transpose(-1, -2); "bqhd,bkhd->bhqk" is the same of permuted operands.
    """
    letters = _letters(equation)
    if letters is not None and len(operands) == 2:
        made = _as_matmul(frame, expression, *letters, operands[0], operands[1])
        if made is not None:
            return made
    return frame.make(expression, "einsum", *operands, attrs=(equation,))


def _letters(equation: object) -> tuple[str, str, str] | None:
    """The three index lists with one letter an index; einops' words (`b h i d, b h j d -> b h i j`) are letters too."""
    if not isinstance(equation, str):
        return None
    if re.search(r"[a-zA-Z]+\s+[a-zA-Z]", equation):
        words = {word: chr(ord("a") + place) for place, word in enumerate(dict.fromkeys(re.findall(r"\w+", equation)))}
        equation = re.sub(r"\w+", lambda found: words[found.group()], equation).replace(" ", "")
    found = _EQUATION.match(equation)
    return (found.group(1), found.group(2), found.group(3)) if found else None


def _as_matmul(
    frame: Frame, expression: ast.Call, left: str, right: str, out: str, one: Node, other: Node
) -> Node | None:
    shared = set(left) & set(right)
    batch = [letter for letter in out if letter in shared]
    summed = [letter for letter in left if letter in shared and letter not in out]
    rows = [letter for letter in left if letter not in shared]
    columns = [letter for letter in right if letter not in shared]
    if len(summed) != 1 or len(rows) != 1 or len(columns) != 1 or len(batch) + 2 != len(out) or len(batch) > 2:
        return None
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        return None
    first = _ordered(frame, expression, one, left, [*batch, rows[0], summed[0]])
    second = _ordered(frame, expression, other, right, [*batch, summed[0], columns[0]])
    product = frame.make(expression, "matmul", first, second)
    return _ordered(frame, expression, product, "".join([*batch, rows[0], columns[0]]), list(out))


def _ordered(frame: Frame, expression: ast.Call, node: Node, have: str, want: list[str]) -> Node:
    dims = [have.index(letter) for letter in want]
    moved = [place for place, dim in enumerate(dims) if place != dim]
    if not moved:
        return node
    if len(moved) == 2:
        low, high = moved
        rank = len(have)
        attrs = (low - rank, high - rank) if high - rank == -1 and low - rank == -2 else (low, high)
        return frame.make(expression, "transpose", node, attrs=attrs)
    return frame.make(expression, "permute", node, attrs=(tuple(dims),))
