"""npufuse apply: edit approved candidates, each in a worktree of its own; the checkout stays as it is."""

from __future__ import annotations

from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import PATH, PYTHON, RUN, SESSION, as_json, ids, one_of, path_or_session, say
from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Decision, Launch, Stage


def apply(
    path: Path | None = PATH,
    session: str | None = SESSION,
    approve: list[str] = typer.Option(
        [], "--approve", metavar="ID[,ID…]", help=say("Candidates that you approve.", "批准的候选项。")
    ),
    approve_all_recommended: bool = typer.Option(
        False, "--approve-all-recommended", help=say("Approve every recommended candidate.", "批准所有推荐的候选项。")
    ),
    branch: str | None = typer.Option(
        None, "--branch", metavar="NAME", help=say("The branch for passing edits.", "通过验证的修改所在的分支。")
    ),
    run: str | None = RUN,
    python: str | None = PYTHON,
    format: str = typer.Option("text", "--format", metavar="text|json", help=say("What is printed.", "输出格式。")),
) -> None:
    one_of("--format", format, ("text", "json"))
    path_or_session(path, session)
    wanted = ids(approve)
    from npufuse_tui.loop import Loop, LoopOptions

    options = LoopOptions(python=python, branch=branch, launch=Launch(run, python) if run else None)
    if session is not None:
        loop = Loop.resume(Path.cwd(), session, options)
    else:
        assert path is not None
        if not wanted and not approve_all_recommended:
            raise _nothing_approved()
        loop = Loop.start(path, options)
    with loop:
        if loop.session.scan is None or loop.session.stage is Stage.SCAN:
            loop.scan(output.listen)
        if loop.session.stage in (Stage.CANDIDATES, Stage.CHECKPOINT):
            if wanted:
                loop.decide(wanted, Decision.APPROVED)
            if approve_all_recommended:
                loop.approve_recommended()
            if not any(one.decision is Decision.APPROVED for one in loop.session.approvals):
                raise _nothing_approved()
            plan = loop.plan()
            if plan.refusals:
                from npufuse_tui.errors import KeptSafe

                for refusal in plan.refusals[1:]:
                    output.message(refusal.reason)
                raise KeptSafe(plan.refusals[0].reason)
            loop.confirm()
        elif wanted or approve_all_recommended:
            _demand_same(wanted, loop)
        plan = loop.plan()
        loop.apply(output.listen)
        output.clear()
        now = loop.session
        if format == "json":
            output.result(
                as_json(
                    {
                        "schema": 1,
                        "session": now.id,
                        "base": now.base,
                        "branch": now.branch,
                        "edits": [
                            {"id": one.candidate, "rule": one.rule, "files": list(one.files), "diff": one.diff}
                            for one in plan.edits
                        ],
                        "notes": [str(one) for one in plan.notes],
                        "linked": list(plan.links),
                    }
                )
            )
            return
        lines = [
            Text(
                "session {id}, branch {branch}, from commit {base}", "会话 {id}，分支 {branch}，基于提交 {base}"
            ).format(id=now.id, branch=now.branch, base=(now.base or "")[:12]),
            *(
                Text("{id} {rule} edited in {files}", "{id} {rule} 已修改 {files}").format(
                    id=one.candidate, rule=one.rule, files=", ".join(one.files)
                )
                for one in plan.edits
            ),
            Text(
                "next: npufuse verify --session {id} --run CMD", "下一步：npufuse verify --session {id} --run CMD"
            ).format(id=now.id),
        ]
        output.result(output.plain("\n".join(str(one) for one in lines)))


def _nothing_approved() -> WrongInput:
    return WrongInput(
        Text(
            "nothing is approved: name candidates with --approve ID, or give --approve-all-recommended",
            "没有批准任何候选项：请用 --approve ID 指定，或使用 --approve-all-recommended",
        )
    )


def _demand_same(wanted: list[str], loop: object) -> None:
    """Approvals that are confirmed already may be named again, and no others."""
    from npufuse_tui.loop import Loop
    from npufuse_tui.workspace.decisions import demand_open

    assert isinstance(loop, Loop)
    approved = {one.candidate for one in loop.session.approvals if one.decision is Decision.APPROVED}
    if not set(wanted) <= approved:
        demand_open(loop.session)
