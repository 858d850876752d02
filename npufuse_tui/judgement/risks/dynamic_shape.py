"""dynamic_shape: a size that is only known from the data, or that grows from call to call.

Each new shape can compile a kernel anew, and what asks the device for a size waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.judgement.risks.context import Around, line_of
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_FROM_DATA = Text(
    "the size of {name} depends on the data ({what}): each new shape can compile a kernel anew",
    "{name} 的大小取决于数据（{what}）：每种新形状都可能触发重新编译",
)
_GROWS = Text(
    "{name} comes out of a cache and grows with each generated token: decoding sees a new shape in every step",
    "{name} 来自缓存，每生成一个 token 就变长：解码时每一步都是新形状",
)
_PACKED = Text(
    "sequences are packed (their lengths arrive in {name}): the number of tokens differs from batch to batch",
    "序列被打包（长度由 {name} 给出）：每个批次的 token 数不同",
)

_CALLS = {
    "masked_select": "masked_select",
    "unique": "unique",
    "unique_consecutive": "unique_consecutive",
    "argwhere": "argwhere",
    "nonzero": "nonzero",
    "flatnonzero": "flatnonzero",
}
_ASKED = frozenset({"item", "tolist"})
_SIZED = frozenset({"index", "reshape", "expand", "split", "narrow", "unflatten", "repeat", "view"})
_LENGTHS = re.compile(r"cu_seq_?lens?\w*|cu_seqlens?\w*|actual_seq_(?:q|kv)?_?len\w*|actual_seq_lengths\w*")
_CACHES = re.compile(r"(?:past_key_values?|past|\w*cache\w*|layer_past)")


def check(around: Around) -> Iterator[Risk]:
    for name, node in around.inputs("tensor", "mask"):
        found = _from_data(node)
        if found is not None:
            what, line = found
            message = _FROM_DATA.format(name=name, what=what)
            yield Risk("dynamic_shape", Severity.WARNING, message, line or around.line)
            return
    if around.rule.family == "attention":
        for name, node in around.inputs("tensor"):
            grown = _cached(node) if name == "key" else None
            if grown is not None:
                yield Risk("dynamic_shape", Severity.INFO, _GROWS.format(name=name), line_of(grown) or around.line)
                return
    if around.rule.family in ("attention", "rotary"):
        for name, line in around.parameters().items():
            if _LENGTHS.fullmatch(name):
                yield Risk("dynamic_shape", Severity.INFO, _PACKED.format(name=name), line)
                return


def _from_data(value: Node) -> tuple[str, int | None] | None:
    for node in value.walk():
        if node.op == "nonzero" or (node.op == "where" and len(node.args) == 1):
            return node.op, line_of(node)
        if node.op == "index" and any(_selects(one) for one in node.args[1:]):
            return "a boolean index", line_of(node)
        called = _method(node)
        if called in _CALLS:
            return called, line_of(node)
        if node.op in _SIZED:
            for size in node.args[1:]:
                for inner in size.walk():
                    if _method(inner) in _ASKED:
                        return f".{_method(inner)}()", line_of(inner)
    return None


def _method(node: Node) -> str | None:
    """What a call that the graph does not know calls."""
    if node.op != "call" or not node.args:
        return None
    callee = node.args[0]
    if callee.op == "attribute":
        return str(callee.attrs[0])
    if callee.op == "global":
        return str(callee.attrs[0]).rpartition(".")[2]
    return None


def _selects(index: Node) -> bool:
    """Whether an index is a mask: a comparison, what `and`, `or`, `not` make of some, or a value that is called so."""
    if index.op in ("compare", "not", "invert", "logical_and", "logical_or", "isnan", "isfinite"):
        return True
    if index.op in ("bitand", "bitor", "bitwise_and", "bitwise_or"):
        return any(_selects(one) for one in index.args)
    return index.op in ("parameter", "attribute") and "mask" in str(index.attrs[0])


def _cached(value: Node) -> Node | None:
    """The node by which a value comes out of a cache: `cache.update(…)`, a cat with what was there before."""
    for node in value.walk():
        if _method(node) == "update" and _is_cache(node.args[0].args[0]):
            return node
        if node.op == "cat" and any(_is_cache(part) for arg in node.args for part in (arg, *arg.args)):
            return node
    return None


def _is_cache(node: Node) -> bool:
    while node.op in ("getitem", "index") and node.args:
        node = node.args[0]
    return node.op in ("parameter", "attribute") and _CACHES.fullmatch(str(node.attrs[0])) is not None
