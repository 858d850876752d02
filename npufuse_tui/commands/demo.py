"""npufuse demo: a small real model in a throw-away repo, and the whole loop over it on the CPU."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import PYTHON, say
from npufuse_tui.errors import ExitCode, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Conclusion, Launch


def demo(
    folder: Path | None = typer.Argument(
        None, metavar="[DIR]", help=say("Where the repo is made.", "创建仓库的位置。"), show_default=False
    ),
    yes: bool = typer.Option(
        False,
        "--yes",
        help=say("Approve what is recommended, and run without the screen.", "批准推荐项，不使用界面运行。"),
    ),
    steps: int | None = typer.Option(
        None, "--steps", min=1, metavar="N", help=say("Steps of each run.", "每次运行的步数。")
    ),
    python: str | None = PYTHON,
) -> None:
    if not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise WrongInput(
            Text(
                "the demo's screens need a terminal: run it in one, or give --yes to run it without",
                "演示界面需要终端：请在终端中运行，或使用 --yes 以非交互方式运行",
            )
        )
    from npufuse_tui.demo import create, launch_command

    place = create(folder or Path(tempfile.mkdtemp(prefix="npufuse-demo-")) / "demo")
    if not yes:
        from npufuse_tui.app import Start, run

        raise typer.Exit(run(Start(path=str(place), command=launch_command(), python=python)))
    output.message(Text("the demo's repo is {place}", "演示仓库：{place}").format(place=place))
    raise typer.Exit(_without_screen(place, launch_command(), python, steps))


def _without_screen(place: Path, command: str, python: str | None, steps: int | None) -> int:
    from npufuse_tui.commands.verify import printed
    from npufuse_tui.loop import Loop, LoopOptions

    launch = Launch(command, python or sys.executable, steps or 50)
    with Loop.start(place, LoopOptions(python=python or sys.executable, launch=launch)) as loop:
        loop.scan(output.listen)
        loop.check(None, output.listen)
        loop.approve_recommended()
        loop.confirm()
        loop.apply(output.listen)
        session = loop.verify(None, output.listen)
        paths = loop.write_reports()
        loop.clean_up()
    output.clear()
    output.result(printed(session, "lines"))
    output.result(str(paths.index))
    passed = bool(session.tasks) and all(one.conclusion is Conclusion.ADOPT for one in session.tasks)
    return ExitCode.DONE if passed else ExitCode.ANSWER_IS_NO
