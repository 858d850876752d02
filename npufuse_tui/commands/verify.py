"""npufuse verify: numerics, then loss, then speed, for each applied candidate; passing ones become commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import BACKEND, CANDIDATES, PYTHON, RUN, SESSION, TORCH_NPU, ids, one_of, say
from npufuse_tui.errors import ExitCode, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Conclusion, Launch, Session


def verify(
    session: str | None = SESSION,
    run: str | None = RUN,
    steps: int | None = typer.Option(
        None, "--steps", min=1, metavar="N", help=say("Steps of each run.", "每次运行的步数。")
    ),
    candidate: list[str] = CANDIDATES,
    backend: str = BACKEND,
    python: str | None = PYTHON,
    torch_npu: str | None = TORCH_NPU,
    time_limit: float | None = typer.Option(
        None, "--time-limit", min=1, metavar="SECONDS", help=say("For one run.", "单次运行的时间上限（秒）。")
    ),
    format: str = typer.Option("lines", "--format", metavar="lines|json", help=say("What is printed.", "输出格式。")),
) -> None:
    one_of("--format", format, ("lines", "json"))
    one_of("--backend", backend, ("auto", "npu", "emulated"))
    wanted = ids(candidate or [])
    from npufuse_tui.loop import Loop, LoopOptions

    with Loop.resume(Path.cwd(), session, LoopOptions(python=python, backend=backend, torch_npu=torch_npu)) as loop:
        had = loop.session.launch
        launch = Launch(run, python) if run else had
        if launch is not None:
            launch = replace(
                launch,
                python=python or launch.python,
                steps=steps or launch.steps,
                time_limit=time_limit or launch.time_limit,
            )
            if launch != had:
                loop.set_launch(launch)
        _demand_known(wanted, loop.session)
        loop.verify(loop.verify_options(tuple(wanted)), output.listen)
        now = loop.session
    output.clear()
    output.result(printed(now, format))
    chosen = [one for one in now.tasks if not wanted or one.id in wanted]
    if any(one.conclusion is not Conclusion.ADOPT for one in chosen):
        raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _demand_known(wanted: list[str], session: Session) -> None:
    missing = set(wanted) - {one.id for one in session.tasks}
    if missing:
        raise WrongInput(
            Text(
                "there is no task {id} in session {session}: npufuse sessions show {session} lists them",
                "会话 {session} 中没有任务 {id}：可用 npufuse sessions show {session} 查看",
            ).format(id=", ".join(sorted(missing)), session=session.id)
        )


def printed(session: Session, format: str) -> str:
    from npufuse_tui.report.contract_json import as_json, verify_document

    if format == "json":
        return as_json(verify_document(session))
    from npufuse_tui.report.labels import check_line, loss_line, speed_line

    lines = []
    for one in session.tasks:
        word = one.conclusion.value if one.conclusion else one.state.value
        lines.append(f"{one.id}  {one.rule}  {word}" + (f"  {one.commit[:12]}" if one.commit else ""))
        if one.op is not None:
            lines.append(f"    {check_line(one.op)}")
        if one.loss is not None:
            lines.append(f"    {loss_line(one.loss)}")
        if one.speed is not None:
            lines.append(f"    {speed_line(one.speed, session.backend)}")
        if one.reason is not None:
            lines.append(f"    {one.reason}")
    if session.branch:
        lines.append(str(Text("branch {name}", "分支 {name}").format(name=session.branch)))
    return output.plain("\n".join(lines))
