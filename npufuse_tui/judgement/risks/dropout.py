"""dropout: the block draws random numbers, and the fused operator draws others."""

from __future__ import annotations

from collections.abc import Iterator

from npufuse_tui.judgement.risks.context import Around, line_of
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_MESSAGE = Text(
    "the chain drops out at random, and {api} draws other numbers: the losses of two runs differ by more than rounding"
    " unless the rate is 0",
    "计算链包含随机 dropout，而 {api} 生成的随机数不同：除非概率为 0，否则两次运行的损失差异会超出舍入误差",
)


def check(around: Around) -> Iterator[Risk]:
    for match in around.matches:
        for node in match.inside:
            if node.op == "dropout" and not _never(node.args[1:]):
                message = _MESSAGE.format(api=around.rule.api)
                yield Risk("dropout", Severity.WARNING, message, line_of(node) or around.line)
                return


def _never(settings: tuple[object, ...]) -> bool:
    """Whether the rate is the number 0, or training the literal False."""
    values = [getattr(one, "value", None) for one in settings]
    rate = values[0] if values else None
    return (isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate == 0) or False in [
        one for one in values if isinstance(one, bool)
    ]
