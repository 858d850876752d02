"""Options and arguments that several commands have, and how their values are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text


def say(en: str, zh: str) -> str:
    """A help text in the language that was asked for; the language is set before the commands are imported."""
    return str(Text(en, zh))


PATH = typer.Argument(
    None, metavar="PATH", help=say("A folder or a Python file.", "文件夹或 Python 文件。"), show_default=False
)
SESSION = typer.Option(
    None,
    "--session",
    metavar="ID",
    help=say("A session, by its id or the beginning of it.", "会话 ID 或其开头部分。"),
)
CANDIDATES = typer.Option(
    None, "--candidate", metavar="ID", help=say("Only this candidate; may be repeated.", "仅此候选项；可重复。")
)
BACKEND = typer.Option(
    "auto", "--backend", metavar="auto|npu|emulated", help=say("What runs the fused operators.", "融合算子的运行后端。")
)
PYTHON = typer.Option(
    None, "--python", metavar="EXE", help=say("The interpreter of the model.", "模型所用的 Python 解释器。")
)
RUN = typer.Option(
    None, "--run", metavar="CMD", help=say("The command that trains or runs the model.", "训练或运行模型的命令。")
)
TORCH_NPU = typer.Option(
    None,
    "--torch-npu",
    metavar="VERSION|PATH",
    help=say(
        "The torch_npu to look at: a version, a wheel or a folder.", "所参照的 torch_npu：版本号、wheel 或文件夹。"
    ),
)


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """The value when it is a choice. Raises WrongInput that names them."""
    known = list(choices)
    if value in known:
        return value
    raise WrongInput(
        Text("{name} must be one of {choices}, not {value}", "{name} 只能是 {choices} 之一，而不是 {value}").format(
            name=name, choices=", ".join(known), value=value
        )
    )


def ids(values: Iterable[str]) -> list[str]:
    """Ids out of values that may each hold several, with commas or blanks between them."""
    return [one for value in values for one in re.split(r"[,\s]+", value) if one]


def path_or_session(path: Path | None, session: str | None) -> None:
    """Raises WrongInput unless exactly one of the two was given."""
    if (path is None) == (session is None):
        raise WrongInput(
            Text("give either a path or --session ID", "请给出路径或 --session ID，二者只能选一")
            if path is None
            else Text(
                "give a path or --session ID, not both ({path}, {session})",
                "路径与 --session ID 只能给一个（{path}，{session}）",
            ).format(path=path, session=session)
        )


def as_json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
