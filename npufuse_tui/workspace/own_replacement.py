"""The person's own fused branch in the place of a candidate's:

the guard, the gate and the fallback stay as they are.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, FileEdit, ProofPlan, Splice, Verdict


def with_own_replacement(candidate: Candidate, text: str, sources: dict[str, bytes]) -> Candidate:
    """The candidate with `text` as its fused branch; its check is void, and its verdict is caution.

    `sources` are the bytes of its files by name. Raises WrongInput when the text does not compile, or the candidate's
    edit has no single fused branch, KeptSafe when the edit could not be proven to keep the original.
    """
    from npufuse_tui.rewrite.diff import edits_diff
    from npufuse_tui.rewrite.edit import edit_of
    from npufuse_tui.rewrite.fallback import prove

    code = textwrap.dedent(text.expandtabs(4)).strip("\n").rstrip()
    if candidate.edit is None or candidate.replacement is None:
        raise WrongInput(Text("{id} has no replacement to edit", "{id} 没有可编辑的替换代码").format(id=candidate.id))
    _demand_statements(code)
    files = tuple(
        replace(one, splices=tuple(_exchanged(splice, code) for splice in one.splices)) for one in candidate.edit.files
    )
    for one in files:
        prove(sources[one.file], _composed(sources[one.file], one), [one])
    plan = candidate.proof
    return replace(
        candidate,
        verdict=Verdict.CAUTION,
        reason=Text("the replacement was written by hand", "替换代码为手动编写"),
        replacement=code,
        edit=edit_of(files),
        diff=edits_diff(sources, files),
        proof=_fused_in(plan, candidate.replacement, code) if plan is not None and plan.not_run is None else plan,
        check=None,
    )


def _composed(source: bytes, edit: FileEdit) -> bytes:
    from npufuse_tui.rewrite.compose import compose

    try:
        result = compose(source, [edit])
        compile(result, edit.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _wrong(str(error)) from error
    return result


def _demand_statements(code: str) -> None:
    """The text must be statements that may stand in a function, and at least one."""
    if not code.strip():
        raise _wrong("it is empty")
    try:
        tree = ast.parse("def _():\n" + textwrap.indent(code, "    "))
    except SyntaxError as error:
        raise _wrong(f"line {max(1, (error.lineno or 2) - 1)}: {error.msg}") from error
    if len(tree.body) != 1:
        raise _wrong("it must be the statements of one branch")


def _wrong(why: str) -> WrongInput:
    return WrongInput(
        Text(
            "the replacement does not compile ({why}): mend it, or leave the proposed one",
            "替换代码无法编译（{why}）：请修正，或保留建议的代码",
        ).format(why=why)
    )


def _exchanged(splice: Splice, code: str) -> Splice:
    """The splice with the body of its outermost `if` exchanged. Splices that only insert stay as they are."""
    if splice.start == splice.end:
        return splice
    lines = splice.text.split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip().startswith("if ")), None)
    if first is None:
        raise _no_branch()
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    otherwise = next((place for place in range(first + 1, len(lines)) if lines[place] == f"{indent}else:"), None)
    block = "\n".join(lines[first:])
    try:
        statement = ast.parse("if True:\n" + block if indent else block).body[0]
    except SyntaxError as error:
        raise _no_branch() from error
    branch = statement.body[0] if indent and isinstance(statement, ast.If) else statement
    if not isinstance(branch, ast.If) or otherwise is None:
        raise _no_branch()
    begin = first + branch.body[0].lineno - (2 if indent else 1)
    inner = lines[begin]
    deeper = inner[: len(inner) - len(inner.lstrip())]
    new = [deeper + line if line.strip() else line for line in code.split("\n")]
    return replace(splice, text="\n".join([*lines[:begin], *new, *lines[otherwise:]]))


def _no_branch() -> WrongInput:
    return WrongInput(
        Text(
            "the edit of this candidate has no single fused branch to change: apply it as it is, and edit the "
            "branch afterwards",
            "此候选项的修改没有单一的融合分支可编辑：请按原样应用，再在分支上修改",
        )
    )


def _fused_in(plan: ProofPlan, old: str, new: str) -> ProofPlan:
    """The plan with the new code as its fused function, so that the proof runs what the person wrote."""
    begun = textwrap.indent(old, "    ")
    if begun in plan.fused:
        return replace(plan, fused=plan.fused.replace(begun, textwrap.indent(new, "    "), 1))
    return replace(
        plan,
        not_run=Text(
            "the replacement was changed by hand and the plan of its proof could not follow it",
            "替换代码被手动修改，其校验计划无法跟随",
        ),
    )
