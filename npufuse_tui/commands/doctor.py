"""npufuse doctor: the five layers of the Ascend stack, each tested."""

from __future__ import annotations

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import PYTHON, as_json, one_of, say


def doctor(
    format: str = typer.Option("text", "--format", metavar="text|json", help=say("What is printed.", "输出格式。")),
    python: str | None = PYTHON,
) -> None:
    one_of("--format", format, ("text", "json"))
    from pathlib import Path

    from npufuse_tui.doctor import diagnose
    from npufuse_tui.proof.interpreter import find_python

    found = diagnose(str(find_python(python, None, Path.cwd())))
    output.result(as_json(found.to_json()) if format == "json" else found.to_text(output.columns()))
