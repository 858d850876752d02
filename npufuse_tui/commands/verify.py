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
    idle_limit: float | None = typer.Option(
        None, "--idle-limit", min=1, metavar="SECONDS", help=say("Without any output.", "无输出的时间上限（秒）。")
    ),
    loss_limit: float | None = typer.Option(
        None, "--loss-limit", min=0, metavar="X", help=say("Allowed per step, 0.01.", "每步允许的相对差，默认 0.01。")
    ),
    warmup: int | None = typer.Option(
        None, "--warmup", min=0, metavar="N", help=say("Steps left out of the times.", "不计入耗时的预热步数。")
    ),
    min_gain: float | None = typer.Option(
        None,
        "--min-gain",
        min=0,
        metavar="X",
        help=say("To be called faster, 0.01.", "判定为更快的最小收益，默认 0.01。"),
    ),
    interleave: int | None = typer.Option(
        None, "--interleave", min=0, metavar="N", help=say("Further pairs of runs (A B A B).", "额外的交替运行次数。")
    ),
    jobs: int | None = typer.Option(
        None, "--jobs", min=1, metavar="N", help=say("Candidates at once.", "同时验证的候选数。")
    ),
    devices: str | None = typer.Option(
        None, "--devices", metavar="0,1", help=say("NPUs to run on.", "使用的 NPU 编号。")
    ),
    pattern: str | None = typer.Option(
        None, "--pattern", metavar="REGEX", help=say("Reads a step, with named groups.", "解析日志的正则（命名分组）。")
    ),
    metric: str | None = typer.Option(
        None, "--metric", metavar="NAME", help=say("Compared instead of the loss.", "代替 loss 比较的数值名。")
    ),
    compare: list[str] = typer.Option(
        [], "--compare", metavar="FILE", help=say("A saved file, compared too.", "同时比较命令保存的文件。")
    ),
    keep_inputs: bool = typer.Option(
        False, "--keep-inputs", help=say("Check the recorded tensors.", "用记录的真实张量做算子检查。")
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
        given: dict[str, object] = {
            "idle_limit": idle_limit,
            "loss_limit": loss_limit,
            "warmup": warmup,
            "min_gain": min_gain,
            "interleave": interleave,
            "jobs": jobs,
            "devices": tuple(one.strip() for one in devices.split(",") if one.strip()) if devices else None,
            "pattern": pattern,
            "metric": metric,
            "compare": tuple(compare) or None,
            "keep_inputs": keep_inputs or None,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        options = replace(loop.verify_options(tuple(wanted)), **changed)  # type: ignore[arg-type]
        loop.verify(options, output.listen)
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
        if one.reason is not None and one.conclusion is not Conclusion.ADOPT:  # else the rows above are the reason
            lines.append(f"    {one.reason}")
    if session.branch:
        lines.append(str(Text("branch {name}", "分支 {name}").format(name=session.branch)))
    return output.plain("\n".join(lines))
