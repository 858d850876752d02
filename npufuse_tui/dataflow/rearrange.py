"""einops.rearrange where it only takes the last dim apart, puts the last two together, or permutes."""

from __future__ import annotations

import ast
import re

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.lower import Frame

_APART = re.compile(r"^(.*?)\((\w+) (\w+)\) -> (.*?)(\w+) (\w+)$")
_TOGETHER = re.compile(r"^(.*?)(\w+) (\w+) -> (.*?)\((\w+) (\w+)\)$")


def rearrange(frame: Frame, expression: ast.Call) -> Node:
    """The node of `rearrange(x, pattern, **sizes)`: an unflatten, a flatten or a permute; else itself, opaque."""
    from npufuse_tui.dataflow.expressions import lower

    args = [lower(frame, arg) for arg in expression.args]
    sizes = {keyword.arg: lower(frame, keyword.value) for keyword in expression.keywords if keyword.arg}
    pattern = args[1].value if len(args) == 2 else None
    if isinstance(pattern, str):
        words = " ".join(pattern.replace("(", " (").replace(")", ") ").split()).replace("( ", "(").replace(" )", ")")
        made = _taken_apart(frame, expression, args[0], words, sizes) or _put_together(
            frame, expression, args[0], words
        )
        made = made or _permuted(frame, expression, args[0], words)
        if made is not None:
            return made
    return frame.fresh(expression, "call", *args, *sizes.values(), attrs=("rearrange",))


def _taken_apart(frame: Frame, expression: ast.Call, value: Node, words: str, sizes: dict[str, Node]) -> Node | None:
    found = _APART.match(words)
    if found is None or found.group(1) != found.group(4) or found.group(2, 3) != found.group(5, 6):
        return None
    minus_one = frame.graph.constant(-1)
    parts = [sizes.get(name, minus_one) for name in found.group(2, 3)]
    return frame.make(expression, "unflatten", value, minus_one, frame.graph.make("tuple", *parts))


def _put_together(frame: Frame, expression: ast.Call, value: Node, words: str) -> Node | None:
    found = _TOGETHER.match(words)
    if found is None or found.group(1) != found.group(4) or found.group(2, 3) != found.group(5, 6):
        return None
    return frame.make(expression, "flatten", value, attrs=(-2, -1))


def _permuted(frame: Frame, expression: ast.Call, value: Node, words: str) -> Node | None:
    left, arrow, right = words.partition(" -> ")
    before, after = left.split(), right.split()
    if not arrow or sorted(before) != sorted(after) or not all(name.isidentifier() for name in before):
        return None
    dims = [before.index(name) for name in after]
    moved = [place for place, dim in enumerate(dims) if place != dim]
    if len(moved) == 2:
        return frame.make(expression, "transpose", value, attrs=tuple(moved))
    return frame.make(expression, "permute", value, attrs=(tuple(dims),)) if moved else value
