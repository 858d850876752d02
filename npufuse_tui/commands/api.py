"""npufuse api: what is known of torch_npu's operators."""

from __future__ import annotations

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import PYTHON, TORCH_NPU, as_json, one_of, say

app = typer.Typer(
    help=say("Show, search and list the operators of torch_npu.", "查看、搜索和列出 torch_npu 的算子。"),
    no_args_is_help=True,
    add_completion=False,
)

FORMAT = typer.Option("text", "--format", metavar="text|json", help=say("What is printed.", "输出格式。"))


@app.command(
    "show", help=say("Signature, gradient, products, dtypes and limits.", "签名、梯度、产品、数据类型与限制。")
)
def show(
    name: str = typer.Argument(..., metavar="NAME", help=say("An operator.", "算子名。")),
    full: bool = typer.Option(False, "--full", help=say("With the documentation.", "包含完整文档。")),
    torch_npu: str | None = TORCH_NPU,
    python: str | None = PYTHON,
    format: str = FORMAT,
) -> None:
    one_of("--format", format, ("text", "json"))
    from npufuse_tui.judgement.api import lookup
    from npufuse_tui.judgement.api_text import facts_json
    from npufuse_tui.judgement.api_text import show as shown

    found = lookup(name, torch_npu, python)
    output.result(as_json(facts_json(found)) if format == "json" else shown(found, output.columns(), full))


@app.command("search", help=say("Operators whose name or description holds the words.", "按名称或描述搜索算子。"))
def search(
    word: list[str] = typer.Argument(..., metavar="WORD", help=say("Words.", "搜索词。")),
    torch_npu: str | None = TORCH_NPU,
    python: str | None = PYTHON,
    format: str = FORMAT,
) -> None:
    one_of("--format", format, ("text", "json"))
    from npufuse_tui.judgement.api import search as look
    from npufuse_tui.judgement.api_text import hits_json, show_hits
    from npufuse_tui.language import Text

    hits = look(" ".join(word), torch_npu, python)
    if format == "json":
        output.result(as_json(hits_json(hits)))
    elif hits:
        output.result(show_hits(hits, output.columns()))
    else:
        output.message(
            Text(
                "no operator has {word}; npufuse api list shows all of them",
                "没有包含 {word} 的算子；可用 npufuse api list 查看全部",
            ).format(word=" ".join(word))
        )
        raise typer.Exit(1)


@app.command("list", help=say("All operators.", "全部算子。"))
def listed(torch_npu: str | None = TORCH_NPU, python: str | None = PYTHON, format: str = FORMAT) -> None:
    one_of("--format", format, ("text", "json"))
    from npufuse_tui.judgement.api import list_apis
    from npufuse_tui.judgement.api_text import list_json, show_list

    found = list_apis(torch_npu, python)
    output.result(as_json(list_json(found)) if format == "json" else show_list(found, output.columns()))
