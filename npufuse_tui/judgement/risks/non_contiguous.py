"""non_contiguous: an input of the fused call is a view whose elements do not lie one behind the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.judgement.risks.context import Around, line_of
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_VIEWS = {
    "transpose": "transpose",
    "permute": "permute",
    "piece": "chunk",
    "chunk": "chunk",
    "split": "split",
    "expand": "expand",
    "unbind": "unbind",
    "movedim": "movedim",
}

_COPIED = Text(
    "{name} is a view ({what}) and {api} wants contiguous memory: the rewrite makes it contiguous, which is a copy",
    "{name} 是视图（{what}），而 {api} 要求内存连续：改写时先转为连续，即多一次拷贝",
)
_PASSED = Text(
    "{name} is a view ({what}) and goes into {api} as it is: a kernel that wants contiguous memory costs a copy",
    "{name} 是视图（{what}），按原样传给 {api}；若内核要求内存连续，则由运行时拷贝",
)


def check(around: Around) -> Iterator[Risk]:
    if not around.replacement:
        return
    given = around.given or {}
    for name, value in around.match.values.items():
        if around.match.pattern.kinds[name] != "tensor" or name not in given:
            continue
        found = _view(value)
        if found is None:
            continue
        what, node = found
        copied = re.search(re.escape(given[name]) + r"\)?\.contiguous\(\)", around.replacement) is not None
        message = (_COPIED if copied else _PASSED).format(name=given[name], what=what, api=around.rule.api)
        yield Risk("non_contiguous", Severity.INFO, message, line_of(node) or around.line)
        return


def _view(value: Node) -> tuple[str, Node] | None:
    """The view that a value is, when nothing on the way makes it contiguous."""
    node = value
    while True:
        if node.op in _VIEWS:
            return _VIEWS[node.op], node
        if node.op == "index" and len(node.args) > 2 and any(arg.op == "slice" for arg in node.args[1:]):
            # a slice of the first dim alone stays contiguous
            return "slice", node
        if node.op == "getitem" and node.args[0].op in ("split", "chunk", "unbind"):
            return _VIEWS[node.args[0].op], node
        if node.op in ("cast", "unsqueeze", "squeeze", "dropout") and node.args:
            node = node.args[0]
            continue
        return None
