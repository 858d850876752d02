"""What is wrong with a command line, in one sentence and in both languages."""

from __future__ import annotations

import typer

from npufuse_tui.language import Text, same

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The parser's error for a wrong call; the parser does not export it under a name that stays."""

_HELP = Text("npufuse --help shows what there is", "可用 npufuse --help 查看用法")


def sentence(error: Exception) -> Text:
    """The sentence for an error of the parser."""
    kind = type(error).__name__
    if kind == "NoSuchOption":
        near = getattr(error, "possibilities", None) or []
        return Text("there is no option {name}: {help}", "没有选项 {name}：{help}").format(
            name=getattr(error, "option_name", "?"),
            help=Text("did you mean {near}?", "是否想用 {near}？").format(near=", ".join(sorted(near)))
            if near
            else _HELP,
        )
    if kind == "MissingParameter":
        wanted = getattr(error, "param", None)
        name = (getattr(wanted, "metavar", None) or getattr(wanted, "name", None) or "?") if wanted is not None else "?"
        return Text("{name} is missing: {help}", "缺少 {name}：{help}").format(name=name, help=_HELP)
    if kind == "BadParameter":
        wanted = getattr(error, "param", None)
        names = getattr(wanted, "opts", None) or ["?"]
        return Text("the value of {name} does not fit: {why}", "{name} 的值不合适：{why}").format(
            name=names[0], why=same(str(getattr(error, "message", error)).rstrip("."))
        )
    if kind == "BadOptionUsage":
        return Text("{name} needs a value: {help}", "{name} 需要一个值：{help}").format(
            name=getattr(error, "option_name", "?"), help=_HELP
        )
    said = str(getattr(error, "message", error)).rstrip(".")
    return Text("the command line does not fit ({why}): {help}", "命令行不正确（{why}）：{help}").format(
        why=same(said), help=_HELP
    )
