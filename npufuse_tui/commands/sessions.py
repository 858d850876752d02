"""npufuse sessions: which there are, what one holds, and taking one away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import as_json, one_of, say
from npufuse_tui.language import Text
from npufuse_tui.model import Decision
from npufuse_tui.workspace.sessions import Summary

app = typer.Typer(
    help=say("List, show and remove sessions.", "列出、查看和删除会话。"),
    invoke_without_command=True,
    add_completion=False,
)

FORMAT = typer.Option("table", "--format", metavar="table|json", help=say("What is printed.", "输出格式。"))
PATH = typer.Option(
    Path(), "--path", metavar="PATH", help=say("The repo; the current folder by default.", "仓库，默认为当前文件夹。")
)


@app.callback()
def sessions(context: typer.Context, format: str = FORMAT) -> None:
    one_of("--format", format, ("table", "json"))
    if context.invoked_subcommand is None:
        _list(Path(), format)


@app.command("list", help=say("The sessions of the repo.", "本仓库的会话。"))
def listed(format: str = FORMAT, path: Path = PATH) -> None:
    _list(path, format)


@app.command("show", help=say("What a session holds.", "查看一个会话。"))
def show(
    id: str = typer.Argument(..., metavar="ID", help=say("The session.", "会话 ID。")),
    format: str = FORMAT,
    path: Path = PATH,
) -> None:
    one_of("--format", format, ("table", "json"))
    from npufuse_tui.report.contract_json import verify_document
    from npufuse_tui.report.progress import progress_markdown
    from npufuse_tui.workspace.sessions import show as read

    found = read(path, id)
    if format == "json":
        approvals = [
            {
                "id": one.candidate,
                "decision": one.decision.value,
                "who": one.who,
                "when": one.when,
                "digest": one.digest,
            }
            for one in found.session.approvals
        ]
        output.result(as_json({**_document(found), **verify_document(found.session), "approvals": approvals}))
        return
    output.result(output.plain(progress_markdown(found.session)))


@app.command(
    "remove", help=say("Remove a session: worktrees, backup ref, folder.", "删除会话：工作树、备份引用、文件夹。")
)
def remove(
    id: str = typer.Argument(..., metavar="ID", help=say("The session.", "会话 ID。")), path: Path = PATH
) -> None:
    from npufuse_tui.workspace.sessions import remove as take_away

    for kept in take_away(path, id):
        output.message(kept)
    output.message(Text("session {id} is removed", "会话 {id} 已删除").format(id=id))


def _list(path: Path, format: str) -> None:
    one_of("--format", format, ("table", "json"))
    from npufuse_tui.workspace.sessions import sessions_of

    found = sessions_of(path)
    if format == "json":
        output.result(as_json({"schema": 1, "sessions": [_document(one) for one in found]}))
        return
    if not found:
        output.message(Text("there are no sessions here", "这里没有会话"))
        return
    rows = [
        (one.session.id, one.session.stage.value, _counted(one), _state(one), one.session.branch or "-")
        for one in found
    ]
    wide = [max(len(row[place]) for row in rows) for place in range(5)]
    output.result(
        output.plain(
            "\n".join(
                "  ".join(cell.ljust(room) for cell, room in zip(row, wide, strict=True)).rstrip() for row in rows
            )
        )
    )


def _counted(one: Summary) -> str:
    approved = sum(two.decision is Decision.APPROVED for two in one.session.approvals)
    return str(Text("{approved} approved", "批准 {approved}").format(approved=approved))


def _state(one: Summary) -> str:
    if one.held:
        return str(Text("open", "使用中"))
    if one.interrupted:
        return str(Text("interrupted in {steps}", "在 {steps} 时中断").format(steps=", ".join(one.interrupted)))
    return "-"


def _document(one: Summary) -> dict[str, Any]:
    session = one.session
    return {
        "schema": 1,
        "id": session.id,
        "folder": str(one.folder),
        "root": session.root,
        "repository": session.repository,
        "created": session.created,
        "stage": session.stage.value,
        "base": session.base,
        "branch": session.branch,
        "approved": [two.candidate for two in session.approvals if two.decision is Decision.APPROVED],
        "open": one.held,
        "interrupted": list(one.interrupted),
    }
