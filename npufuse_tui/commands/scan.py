"""npufuse scan: find candidates. Nothing is written but what --output names."""

from __future__ import annotations

from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import BACKEND, PYTHON, TORCH_NPU, one_of, say
from npufuse_tui.errors import ExitCode
from npufuse_tui.model import ScanResult, Verdict

FORMATS = ("table", "json", "md", "sarif")


def scan(
    path: Path = typer.Argument(..., metavar="PATH", help=say("A folder or a Python file.", "文件夹或 Python 文件。")),
    format: str = typer.Option(
        "table", "--format", metavar="|".join(FORMATS), help=say("What is printed.", "输出格式。")
    ),
    out: Path | None = typer.Option(None, "--output", metavar="FILE", help=say("Write to a file.", "写入文件。")),
    rule: list[str] = typer.Option(
        [], "--rule", metavar="ID", help=say("Only this rule; may be repeated.", "仅此规则；可重复。")
    ),
    include: list[str] = typer.Option(
        [], "--include", metavar="GLOB", help=say("Only such files.", "仅包含这些文件。")
    ),
    exclude: list[str] = typer.Option([], "--exclude", metavar="GLOB", help=say("Not such files.", "排除这些文件。")),
    jobs: int | None = typer.Option(None, "--jobs", min=1, metavar="N", help=say("Processes.", "进程数。")),
    no_cache: bool = typer.Option(False, "--no-cache", help=say("Read every file again.", "不使用缓存。")),
    check: bool = typer.Option(
        False, "--check", help=say("Prove each candidate in a child process.", "在子进程中校验每个候选项。")
    ),
    target: str = typer.Option(
        "both", "--target", metavar="training|inference|both", help=say("What the model is for.", "模型用途。")
    ),
    fail_on: str = typer.Option(
        "never",
        "--fail-on",
        metavar="recommended|any|never",
        help=say(
            "Exit with 1 when a candidate is recommended, or when any is not refused.",
            "存在推荐候选（recommended）或任何未被拒绝的候选（any）时以 1 退出。",
        ),
    ),
    extra_rules: list[Path] = typer.Option(
        [],
        "--rules",
        metavar="PATH",
        help=say(
            "Rules of your own; they are run, so name only what you trust.",
            "自定义规则；会被执行，请只指定可信的文件。",
        ),
    ),
    backend: str = BACKEND,
    python: str | None = PYTHON,
    torch_npu: str | None = TORCH_NPU,
) -> None:
    one_of("--format", format, FORMATS)
    one_of("--target", target, ("training", "inference", "both"))
    one_of("--fail-on", fail_on, ("recommended", "any", "never"))
    from npufuse_tui.scan.scanner import ScanOptions, scan

    options = ScanOptions(
        rules=tuple(rule),
        include=tuple(include),
        exclude=tuple(exclude),
        jobs=jobs,
        use_cache=not no_cache,
        target=target,
        extra_rules=tuple(str(one) for one in extra_rules),
    )
    found = scan(path, options, output.listen)
    if check:
        from npufuse_tui.commands.check import checked

        found = checked(found, backend, python, torch_npu, extra_rules)
    output.clear()
    output.result(_printed(found, format), out)
    failing = {"recommended": {Verdict.RECOMMENDED}, "any": {Verdict.RECOMMENDED, Verdict.CAUTION}, "never": set()}
    if any(one.verdict in failing[fail_on] for one in found.candidates):
        raise typer.Exit(ExitCode.ANSWER_IS_NO)


def _printed(found: ScanResult, format: str) -> str:
    if format == "json":
        from npufuse_tui.report.contract_json import as_json, scan_document

        return as_json(scan_document(found))
    if format == "sarif":
        from npufuse_tui.report.contract_json import as_json
        from npufuse_tui.report.sarif import sarif_document

        return as_json(sarif_document(found))
    if format == "md":
        from npufuse_tui.report.api_lines import facts_of
        from npufuse_tui.report.identification import identification_markdown

        return identification_markdown(found, facts=facts_of(found.candidates))
    from npufuse_tui.report.table import scan_table

    return scan_table(found, columns=output.columns())
