"""A regular expression of the user's with named groups, and the number behind a name (`--metric`)."""

from __future__ import annotations

import re

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number, seconds

GROUPS = ("step", "loss", "step_time", "step_time_ms", "tokens_per_second")
_LONGEST = 4096  # of a line that the user's expression sees: one that backtracks shall not stop the run


def from_expression(expression: str) -> Parser:
    """The parser for an expression with the group `loss`, and perhaps `step`, `step_time` (seconds), `step_time_ms`,
    `tokens_per_second`. Raises WrongInput for one that is no regular expression or has no such group.
    """
    try:
        compiled = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise WrongInput(
            Text(
                "the expression {expression} is no regular expression ({why}): mend it",
                "{expression} 不是有效的正则表达式（{why}）：请修改",
            ).format(expression=expression, why=error)
        ) from error
    if not {"loss", "step_time", "step_time_ms"} & set(compiled.groupindex):
        raise WrongInput(
            Text(
                "the expression {expression} names none of the groups it needs: write (?P<loss>…), and where there are "
                "such (?P<step>…) and (?P<step_time>…)",
                "正则表达式 {expression} 缺少所需的命名组："
                "请写 (?P<loss>…)，以及（如有）(?P<step>…) 和 (?P<step_time>…)",
            ).format(expression=expression)
        )

    def read(line: str) -> Reading | None:
        found = compiled.search(line[:_LONGEST])
        if found is None:
            return None
        said = {name: value for name, value in found.groupdict().items() if name in GROUPS}
        step, time = number(said.get("step")), number(said.get("step_time"))
        if time is None:
            time = seconds(said.get("step_time_ms"), "ms")
        loss = number(said.get("loss"))
        if loss is None and time is None:
            return None
        return Reading(int(step) if step is not None else None, loss, time, number(said.get("tokens_per_second")))

    return Parser("expression", Text("your regular expression", "您的正则表达式"), 0, read)


def from_metric(name: str) -> Parser:
    """The parser for the numbers behind a name (`accuracy: 0.93`); they stand in the place of the loss."""
    pattern = re.compile(rf"(?<![\w]){re.escape(name)}['\"]?\s*(?:[:=]|is\b)?\s*['\"]?({NUMBER})", re.I)

    def read(line: str) -> Reading | None:
        found = pattern.search(line)
        value = number(found[1]) if found else None
        return Reading(None, value) if value is not None else None

    return Parser("metric", Text("the numbers behind {name}", "{name} 之后的数值").format(name=name), 0, read)
