"""npufuse profile: the hot kernel sequences of a profile, and the candidates that would shorten them."""

from __future__ import annotations

from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import one_of, say


def profile(
    path: Path = typer.Argument(
        ...,
        metavar="PATH",
        help=say("kernel_details.csv, or a folder that holds one.", "kernel_details.csv 或其所在文件夹。"),
    ),
    repo: Path | None = typer.Option(
        None, "--repo", metavar="PATH", help=say("Look here for the code that runs them.", "在此查找对应的代码。")
    ),
    format: str = typer.Option(
        "table", "--format", metavar="table|json|md", help=say("What is printed.", "输出格式。")
    ),
) -> None:
    one_of("--format", format, ("table", "json", "md"))
    from npufuse_tui.profiling.command import profile as printed

    output.result(printed(path, repo, format, output.columns(), output.listen))
