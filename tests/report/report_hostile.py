"""Names, code and logs that try to be more than text, and a session made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import report_fixtures as fixtures

from npufuse_tui.language import Text, same
from npufuse_tui.model import Backend, Gate, GateKind, Launch, Reuse, Risk, Session, Severity, SkippedFile, Step

STRINGS = (
    "</script><script>window.owned=1</script>",
    '"><img src=x onerror="window.owned=1">',
    "<!--<script>window.owned=1//-->",
    "' onmouseover='window.owned=1' x='",
    "{{ 7*7 }}{% raw %}",
    "javascript:window.owned=1",
    "| pipe | `tick` ``` fence ```` longer",
    "![x](http://evil.example/x.png) [y](javascript:alert(1)) <https://evil.example>",
    "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe \u200b",
    "line\r\nbreak\u2028more",
    "lone \udcff surrogate",
    "&lt;b&gt; &#60;script&#62;",
    "[bold red]markup[/]",
)
ALL = " ".join(STRINGS)


def session(folder: Path) -> Session:
    """Every field that comes from outside holds all of the strings."""
    whole = fixtures.session(folder, Backend.EMULATED)
    code = "\n".join(f"x = 1  # {one}" for one in STRINGS)
    hostile = fixtures.norm(
        file=f"dir/{ALL}.py",
        qualname=ALL,
        variant=ALL,
        reason=same(ALL),
        original=code,
        replacement=code,
        diff=fixtures.unified(
            "a.py",
            code.replace("\r", "") + "\n",
            "y = 2\n" + code.replace("\r", "") + "\n",
            ALL.replace("\r\n", "") + "\n",
            9,
        ),
        generated_from=ALL,
        group=ALL,
        risks=(Risk(ALL, Severity.DANGER, same(ALL), 3, ALL),),
        gate=Gate(GateKind.EXISTING, ALL, same(ALL)),
        reuse=(Reuse(ALL, 1, ALL),),
        chain=(Step(ALL, ALL, 1, "compute"),),
    )
    assert whole.scan is not None and whole.baseline is not None
    scan = fixtures.scan(
        hostile, *whole.scan.candidates[1:], root=f"/tmp/{ALL}", skipped=(SkippedFile(ALL, Text(ALL, ALL)),)
    )
    runs = tuple(replace(run, command=ALL, last_lines=ALL, log=ALL, parser=ALL) for run in whole.baseline.runs)
    case = replace(fixtures.case(ALL, ALL), layout=ALL, dtype_out=ALL, reason=ALL)
    first = replace(
        whole.tasks[0],
        reason=same(ALL),
        op=fixtures.check(reason=ALL, per_case=(case,)),
        runs=(replace(whole.tasks[0].runs[0], command=ALL, last_lines=ALL),),
        commit=ALL,
    )
    return replace(
        whole,
        scan=scan,
        root=f"/tmp/{ALL}",
        branch=ALL,
        launch=Launch(ALL, ALL, environment=((ALL, ALL),)),
        baseline=replace(whole.baseline, runs=runs, reason=same(ALL)),
        approvals=tuple(replace(one, who=ALL, note=ALL, digest=ALL) for one in whole.approvals),
        tasks=(first, *whole.tasks[1:]),
        notes={"environment.torch": ALL, f"environment.{ALL}": ALL},
    )
