"""npufuse emulate: run a command with torch_npu emulated on the CPU."""

from __future__ import annotations

import typer

from npufuse_tui.commands.options import TORCH_NPU, say


def emulate(
    command: list[str] = typer.Argument(..., metavar="-- COMMAND …", help=say("The command.", "要运行的命令。")),
    torch_npu: str | None = TORCH_NPU,
    strict: bool = typer.Option(
        True,
        "--strict/--lenient",
        help=say("Whether documented limits of the NPU are errors or warnings.", "NPU 的文档限制视为错误还是警告。"),
    ),
) -> None:
    from npufuse_tui.emulator.run import run

    raise typer.Exit(run(command, torch_npu, strict))
