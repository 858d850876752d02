"""layout: which dim is which is decided where the block cannot show it."""

from __future__ import annotations

from collections.abc import Iterator

from npufuse_tui.dataflow.graph import strip_casts
from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_BY_ARGUMENT = Text(
    "the caller decides by {name} which dim holds the heads; {api} takes each layout with its own shape of cos and sin",
    "由调用方通过 {name} 决定哪一维是头；{api} 对每种布局要求相应形状的 cos 与 sin",
)
_FROM_CALLER = Text(
    "query arrives as an argument: the fused call takes it as {layout}, so every caller has to pass (batch, heads,"
    " length, head dim)",
    "query 由参数传入：融合调用按 {layout} 处理，因此所有调用方都必须传入（batch, heads, length, head dim）",
)


def check(around: Around) -> Iterator[Risk]:
    if not around.replacement:
        return
    parameters = around.parameters()
    if around.rule.family == "rotary":
        for name in ("unsqueeze_dim", "unsqueeze_axis", "heads_dim"):
            if name in parameters:
                message = _BY_ARGUMENT.format(name=name, api=around.rule.api)
                yield Risk("layout", Severity.INFO, message, parameters[name])
                return
    if around.rule.family == "attention":
        query = around.match.values.get("query")
        letters = next((one for one in ("BNSD", "BSND", "TND", "BSH", "SBH") if f'"{one}"' in around.replacement), None)
        if query is not None and letters is not None:
            plain = strip_casts(query)
            if plain.op == "parameter" and str(plain.attrs[0]) in parameters:
                line = parameters[str(plain.attrs[0])]
                yield Risk("layout", Severity.INFO, _FROM_CALLER.format(layout=letters), line)
