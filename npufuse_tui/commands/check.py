"""npufuse check: run each candidate's region against its replacement in a child, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from npufuse_tui.commands import output
from npufuse_tui.commands.options import (
    BACKEND,
    CANDIDATES,
    PATH,
    PYTHON,
    SESSION,
    TORCH_NPU,
    ids,
    one_of,
    path_or_session,
    say,
)
from npufuse_tui.errors import ExitCode, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, ScanResult, Verdict


def check(
    path: Path | None = PATH,
    session: str | None = SESSION,
    candidate: list[str] = CANDIDATES,
    backend: str = BACKEND,
    format: str = typer.Option("table", "--format", metavar="table|json", help=say("What is printed.", "输出格式。")),
    python: str | None = PYTHON,
    torch_npu: str | None = TORCH_NPU,
) -> None:
    one_of("--format", format, ("table", "json"))
    one_of("--backend", backend, ("auto", "npu", "emulated"))
    path_or_session(path, session)
    wanted = ids(candidate or [])
    if session is not None:
        from npufuse_tui.loop import Loop, LoopOptions

        with Loop.resume(Path.cwd(), session, LoopOptions(python=python, backend=backend, torch_npu=torch_npu)) as loop:
            loop.check(wanted or None, output.listen)
            scan = loop.session.scan
    else:
        from npufuse_tui.scan.scanner import scan as look

        assert path is not None
        found = look(path, None, output.listen)
        _demand_known(wanted, found)
        if wanted:
            found = replace(found, candidates=tuple(one for one in found.candidates if one.id in wanted))
        scan = checked(found, backend, python, torch_npu)
    output.clear()
    done = [one for one in (scan.candidates if scan else ()) if (one.id in wanted if wanted else one.check is not None)]
    output.result(_printed(done, format))
    if any(one.check is not None and one.check.status == "failed" for one in done):
        raise typer.Exit(ExitCode.ANSWER_IS_NO)


def checked(
    found: ScanResult, backend: str, python: str | None, torch_npu: str | None, extra_rules: Sequence[Path] = ()
) -> ScanResult:
    """The scan with every candidate that is not refused proven, and the rules' rows counted again."""
    from npufuse_tui.proof.check import ProofOptions, check
    from npufuse_tui.proof.interpreter import find_python
    from npufuse_tui.rules import load_rules
    from npufuse_tui.scan.scanner import summary

    chosen = [one for one in found.candidates if one.verdict is not Verdict.REFUSED]
    if not chosen:
        return found
    options = ProofOptions(
        python=find_python(python, None, Path(found.root)),
        backend=backend,
        torch_npu=torch_npu,
        extra_rules=tuple(extra_rules),
    )
    proven = {one.id: one for one in check(chosen, options, output.listen)}
    candidates = tuple(proven.get(one.id, one) for one in found.candidates)
    known = {rule.id: rule for rule in load_rules(extra_rules)}
    rules = tuple(summary(known[one.id], candidates) for one in found.rules)
    return replace(found, candidates=candidates, rules=rules)


def _demand_known(wanted: list[str], found: ScanResult) -> None:
    missing = set(wanted) - {one.id for one in found.candidates}
    if missing:
        raise WrongInput(
            Text(
                "there is no candidate {id} in {path}: npufuse scan {path} shows the ids",
                "{path} 中没有候选项 {id}：可用 npufuse scan {path} 查看",
            ).format(id=", ".join(sorted(missing)), path=found.root)
        )


def _printed(done: list[Candidate], format: str) -> str:
    if format == "json":
        from npufuse_tui.report.contract_json import as_json, check_document

        return as_json(check_document(done))
    from npufuse_tui.report.labels import check_line
    from npufuse_tui.report.table import plain

    if not done:
        return str(Text("Nothing was checked.", "没有执行任何校验。"))
    return "\n".join(
        plain(f"{one.id}  {one.rule}  {one.file}:{one.start_line}  {check_line(one.check)}") for one in done
    )
