"""causal_implicit: the code speaks of causal attention, and no mask says so to the fused call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_MESSAGE = Text(
    "{name} speaks of causal attention, and neither this chain nor the fused call has a mask: causal is only what an"
    " explicit mask makes so",
    "{name} 提到因果注意力，但该计算链与融合调用都没有掩码：只有显式掩码才能实现因果性",
)
_WORD = re.compile(r"_?(?:is_)?causal")


def check(around: Around) -> Iterator[Risk]:
    if around.rule.family != "attention" or "mask" in around.match.values:
        return
    found = around.word(_WORD)
    if found is not None:
        yield Risk("causal_implicit", Severity.WARNING, _MESSAGE.format(name=found[0]), found[1])
