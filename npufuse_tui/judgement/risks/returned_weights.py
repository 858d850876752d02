"""returned_weights: the function hands out attention weights, which the fused operator never forms."""

from __future__ import annotations

from collections.abc import Iterator

from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_UNASKED = Text(
    "the function returns {name}, and the fused branch returns None for it: check that no caller reads it",
    "函数会返回 {name}，而融合分支对其返回 None：请确认没有调用方读取它",
)
_GUARDED = Text(
    "the function returns {name}; where output_attentions asks for it the original runs, elsewhere it is None in the"
    " fused branch",
    "函数会返回 {name}；output_attentions 要求时走原代码，否则融合分支中它为 None",
)


def check(around: Around) -> Iterator[Risk]:
    if not around.nothing:
        return
    names = ", ".join(around.nothing)
    guarded = "output_attentions" in around.guard or "_weights_asked_for(" in around.guard
    severity = Severity.WARNING if guarded else Severity.DANGER
    message = (_GUARDED if guarded else _UNASKED).format(name=names)
    yield Risk("returned_weights", severity, message, around.statements[-1].end_lineno or around.line)
