"""npufuse itself: the app on a path, on a session, or line by line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import typer

from npufuse_tui import __version__
from npufuse_tui.commands.options import PYTHON, RUN, one_of, say
from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text


def _version(asked: bool) -> None:
    if asked:
        print(f"npufuse {__version__}")
        raise typer.Exit


def start(
    context: typer.Context,
    path: list[str] = typer.Option([], "--path", hidden=True),
    resume: str | None = typer.Option(
        None,
        "--resume",
        metavar="[ID]",
        help=say(
            "Go on with a session; without an ID, the newest one here.", "恢复会话；不给 ID 时恢复此处最新的会话。"
        ),
    ),
    run: str | None = RUN,
    python: str | None = PYTHON,
    plain: bool = typer.Option(
        False,
        "--plain",
        help=say("Ask and answer line by line, for screen readers and slow lines.", "逐行问答，适合读屏和慢速连接。"),
    ),
    ascii: bool = typer.Option(
        False,
        "--ascii",
        help=say("No glyphs that some terminals draw two cells wide.", "不使用部分终端会显示为两格宽的字符。"),
    ),
    theme: str | None = typer.Option(None, "--theme", metavar="NAME", help=say("Colours.", "配色。")),
    lang: str | None = typer.Option(
        None, "--lang", metavar="zh|en", help=say("Language; by default the locale's.", "语言，默认取自系统区域设置。")
    ),
    debug: bool = typer.Option(False, "--debug", help=say("Show tracebacks of errors.", "出错时显示回溯信息。")),
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help=say("Show the version.", "显示版本。")
    ),
) -> None:
    if context.invoked_subcommand is not None:
        return
    if len(path) > 1:
        raise WrongInput(
            Text("give one path, not {paths}", "请只给一个路径，而不是 {paths}").format(paths=", ".join(path))
        )
    place = path[0] if path else None
    _demand_place(place, context)
    if not plain and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise WrongInput(
            Text(
                "the screens need a terminal: run npufuse in one, give --plain, or use npufuse scan {path}",
                "界面需要终端：请在终端中运行 npufuse，或使用 --plain，或使用 npufuse scan {path}",
            ).format(path=place or "PATH")
        )
    if plain:
        from npufuse_tui.plain import run as run_plain

        raise typer.Exit(run_plain(path=place, resume=resume, command=run, python=python))
    from npufuse_tui.app import Start
    from npufuse_tui.app import run as run_app

    asked = Start(path=place, resume=resume, command=run, python=python, ascii=ascii)
    if theme is not None:
        from npufuse_tui.screens.theme import THEMES

        asked = replace(asked, theme=one_of("--theme", theme, [one.name for one in THEMES]))
    raise typer.Exit(run_app(asked))


def _demand_place(place: str | None, context: typer.Context) -> None:
    """A path that is not there may be a command that was misspelt."""
    if place is None or Path(place).exists():
        return
    import difflib

    commands = context.command.commands  # type: ignore[attr-defined]
    near = difflib.get_close_matches(place, list(commands), n=1)
    if near:
        raise WrongInput(
            Text(
                "{place} is neither a path nor a command: did you mean npufuse {near}?",
                "{place} 既不是路径也不是命令：是否想用 npufuse {near}？",
            ).format(place=place, near=near[0])
        )
    raise WrongInput(
        Text(
            "{place} does not exist: give a folder or a Python file", "{place} 不存在：请给出文件夹或 Python 文件"
        ).format(place=place)
    )
