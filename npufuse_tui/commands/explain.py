"""npufuse explain: what a chain costs and what its fused operator saves, counted and estimated."""

from __future__ import annotations

from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import CANDIDATES, as_json, ids, one_of, say
from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text


def explain(
    path: Path = typer.Argument(..., metavar="PATH", help=say("A folder or a Python file.", "文件夹或 Python 文件。")),
    candidate: list[str] = CANDIDATES,
    format: str = typer.Option("text", "--format", metavar="text|md|json", help=say("What is printed.", "输出格式。")),
    shape: str | None = typer.Option(
        None, "--shape", metavar="N,N,…", help=say("Shape of the main tensor.", "主张量的形状。")
    ),
    dtype: str | None = typer.Option(None, "--dtype", metavar="DTYPE", help=say("Its dtype.", "主张量的数据类型。")),
    device: str | None = typer.Option(None, "--device", metavar="ID", help=say("The device.", "设备。")),
) -> None:
    one_of("--format", format, ("text", "md", "json"))
    from npufuse_tui.judgement.explain import explain as told_of
    from npufuse_tui.judgement.explain_markdown import to_json, to_markdown
    from npufuse_tui.judgement.explain_text import to_text
    from npufuse_tui.scan.scanner import scan

    found = scan(path, None, output.listen)
    output.clear()
    wanted = ids(candidate or [])
    known = {one.id: one for one in found.candidates}
    missing = [one for one in wanted if one not in known]
    if missing:
        raise WrongInput(
            Text(
                "there is no candidate {id} in {path}: npufuse scan {path} shows the ids",
                "{path} 中没有候选项 {id}：可用 npufuse scan {path} 查看",
            ).format(id=", ".join(missing), path=path)
        )
    chosen = [known[one] for one in wanted] if wanted else list(found.candidates)
    told = [told_of(one, shape=_shape(shape), dtype=dtype, on=device) for one in chosen]
    if format == "json":
        output.result(as_json({"schema": 1, "explanations": [to_json(one) for one in told]}))
        return
    if not told:
        output.message(Text("no candidate was found in {path}", "{path} 中没有发现候选项").format(path=path))
        return
    parts = [to_markdown(one) if format == "md" else to_text(one, output.columns()) for one in told]
    output.result("\n\n".join(parts))


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        found = tuple(int(one) for one in text.replace("x", ",").split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise WrongInput(
            Text(
                "--shape must be whole numbers with commas between them, such as 4,4096,4096, not {text}",
                "--shape 应为逗号分隔的整数，例如 4,4096,4096，而不是 {text}",
            ).format(text=text)
        )
    return found
