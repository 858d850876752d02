"""The parser's top: a path may stand where a command could."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from npufuse_tui.commands.arguments import arranged


class CommandLine(TyperGroup):
    """The commands, with the words put into the order that the parser wants; see `arguments.arranged`."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        with_value = {
            name for one in self.params if not getattr(one, "is_flag", False) for name in getattr(one, "opts", ())
        }
        return super().parse_args(ctx, arranged(args, self.commands, with_value))
