"""size_limits, concat_cost: what the sizes in the repo's configuration mean for the fused call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.risks.context import Around, line_of
from npufuse_tui.judgement.surroundings import Seen, number_of
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_TOO_LARGE = Text(
    "{field} is {value} by default ({place}), and {api} takes at most {limit}",
    "{field} 默认为 {value}（{place}），而 {api} 最大支持 {limit}",
)
_UNALIGNED = Text(
    "{field} is {value} by default ({place}), no multiple of {step}: {api} may be slow or fail on it",
    "{field} 默认为 {value}（{place}），不是 {step} 的倍数：{api} 可能变慢或失败",
)
_CONCAT = Text(
    "the two projections are concatenated first: with {field} = {value} ({place}) that is {bytes} bytes read and"
    " written a token in half precision; a weight that holds both projections would avoid it",
    "需要先拼接两个投影：{field} = {value}（{place}）时，半精度下每个 token 额外读写 {bytes} 字节；"
    "使用合并后的权重可避免",
)

FIELDS = {
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "intermediate_size": ("intermediate_size", "ffn_hidden_size", "ffn_dim", "hidden_dim", "d_ff", "n_inner"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim", "embed_dim"),
}
"""What a size is called in configurations, by what it is."""


def check(around: Around) -> Iterator[Risk]:
    if not around.replacement:
        return
    yield from _limits(around)
    if "torch.cat(" in around.replacement and around.rule.family == "activation":
        found = _inner_size(around)
        if found is not None:
            value, seen = found
            # two halves of `value` elements of two bytes each, read once and written once
            cost = 2 * value * 2 * 2
            message = _CONCAT.format(field="intermediate_size", value=value, place=_place(seen), bytes=f"{cost:,}")
            yield Risk("concat_cost", Severity.INFO, message, line_of(around.match.root) or around.line)


def _inner_size(around: Around) -> tuple[int, Seen] | None:
    """The inner size of the block: the one that its class takes from the configuration, no other expert's."""
    if around.owner is None:
        return None
    constructor = around.owner.methods.get("__init__")
    taken = {node.attr for node in walk(constructor or around.owner.node) if isinstance(node, ast.Attribute)}
    names = tuple(name for name in FIELDS["intermediate_size"] if name in taken)
    return number_of(around.module.repository, around.module.file, names) if len(names) == 1 else None


def _limits(around: Around) -> Iterator[Risk]:
    for what, limit in around.rule.at_most.items():
        found = _number(around, what)
        if found is not None and found[0] > limit:
            value, seen = found
            message = _TOO_LARGE.format(field=what, value=value, place=_place(seen), api=around.rule.api, limit=limit)
            yield Risk("size_limits", Severity.WARNING, message, seen.line, seen.file)
    for what, step in around.rule.multiple_of.items():
        found = _number(around, what)
        if found is not None and found[0] % step:
            value, seen = found
            message = _UNALIGNED.format(field=what, value=value, place=_place(seen), api=around.rule.api, step=step)
            yield Risk("size_limits", Severity.WARNING, message, seen.line, seen.file)


def _number(around: Around, what: str) -> tuple[int, Seen] | None:
    found = number_of(around.module.repository, around.module.file, FIELDS.get(what, (what,)))
    if found is not None or what != "head_dim":
        return found
    size, heads = _number(around, "hidden_size"), _number(around, "heads")
    if size is None or heads is None or not heads[0] or size[0] % heads[0]:
        return None
    return size[0] // heads[0], heads[1]


def _place(seen: Seen) -> str:
    return f"{seen.file}:{seen.line}"
