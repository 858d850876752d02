"""npufuse report: the reports of a session, in its folder or where the person wants them."""

from __future__ import annotations

from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import SESSION, one_of, say


def report(
    session: str | None = SESSION,
    format: str = typer.Option(
        "md", "--format", metavar="md|html|pr", help=say("Paths, or a pull request's text.", "打印路径或 PR 文本。")
    ),
    out: Path | None = typer.Option(
        None, "--output", metavar="DIR", help=say("Write into this folder.", "写入此文件夹。")
    ),
) -> None:
    one_of("--format", format, ("md", "html", "pr"))
    from npufuse_tui.loop import Loop

    with Loop.resume(Path.cwd(), session) as loop:
        paths = loop.write_reports(folder=out.absolute() if out else None)
        text = loop.pull_request_text() if format == "pr" else None
    if text is not None:
        output.result(output.plain(text))
        return
    ending = ".md" if format == "md" else ".html"
    output.result("\n".join(str(one) for one in paths.all if one.suffix == ending))
