"""A region and its fused branch → the edit of a file.

if <gate> and x.is_npu:
    <fused branch>
else:
    <the original statements, verbatim>
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.language import Text
from npufuse_tui.model import Edit, FileEdit, Gate, Prelude, Splice
from npufuse_tui.rewrite.fused_branch import FusedBranch
from npufuse_tui.rewrite.output_dtype import primary_input
from npufuse_tui.rewrite.region import CannotRewrite, Region
from npufuse_tui.rewrite.render import tensor_in
from npufuse_tui.rewrite.text import dedented, lines_inside_strings

WIDTH = 119


@dataclass(frozen=True, slots=True)
class Guarded:
    """The block that takes the place of a region."""

    splice: Splice
    guard: str
    original: str
    replacement: str
    conditions: tuple[str, ...] = ()


def guarded_block(region: Region, branch: FusedBranch, gate: Gate, conditions: Sequence[str]) -> Guarded:
    """The guarded if/else for a region. `conditions` are what else must hold. Raises CannotRewrite."""
    text, placed = region.layout.text, region.layout
    first, last = region.statements[0], region.statements[-1]
    unit = placed.unit()
    start, end = text.line_start(first.lineno), text.end(last)
    prefix = text.between(start, text.start(first))
    if prefix.strip():
        return _one_line_suite(region, branch, gate, conditions)
    _refuse_shared_lines(region)
    indent = prefix
    tensor = guard_tensor(branch)
    guard = " and ".join([gate.expression, f"{tensor}.is_npu", *conditions])
    rest_of_line = text.line_text(last.end_lineno or last.lineno)[_column_in_characters(region) :]
    fused = [wrapped(line, indent + unit, unit) for line in branch.statements]
    original = _indented_verbatim(region, unit)
    block = "\n".join([f"{indent}if {guard}:", *fused, f"{indent}else:", original])
    splice = Splice(start, end + len(text.encode(rest_of_line)), block)
    verbatim = dedented(text.between(start, end))
    return Guarded(splice, guard, verbatim, "\n".join(branch.statements), tuple(conditions))


def _column_in_characters(region: Region) -> int:
    text, last = region.layout.text, region.statements[-1]
    line = text.line_text(last.end_lineno or last.lineno)
    return len(line.encode()[: last.end_col_offset or 0].decode())


def guard_tensor(branch: FusedBranch) -> str:
    """The tensor whose device decides. Raises CannotRewrite when none has a name where the block begins."""
    for call in branch.calls:
        primary = call.match.values.get(primary_input(call.match))
        for node in [primary, *call.match.values.values()]:
            name = tensor_in(node, branch.entry) if isinstance(node, Node) else None
            if name is not None:
                return name
    raise CannotRewrite(
        Text("no tensor has a name here whose device could be asked for", "此处没有可用于判断设备的已命名张量")
    )


def _refuse_shared_lines(region: Region) -> None:
    """Several statements on one line cannot be taken apart line by line."""
    suite = region.suite
    before = suite[region.first - 1] if region.first else None
    after = suite[region.last + 1] if region.last + 1 < len(suite) else None
    own = region.statements
    shared = [
        pair
        for pair in zip([before, *own], [*own, after], strict=True)
        if pair[0] is not None and pair[1] is not None and (pair[0].end_lineno or 0) >= pair[1].lineno
    ]
    if shared:
        raise CannotRewrite(
            Text("several statements stand on line {line}", "第 {line} 行有多条语句").format(line=shared[0][1].lineno)  # type: ignore[union-attr]
        )


def _one_line_suite(region: Region, branch: FusedBranch, gate: Gate, conditions: Sequence[str]) -> Guarded:
    """`def f(x): return …`: the suite moves to lines of its own."""
    text, placed = region.layout.text, region.layout
    suite = region.suite
    if region.first != 0 or region.last != len(suite) - 1 or len(suite) != 1:
        _refuse_shared_lines(region)
        raise CannotRewrite(
            Text("several statements stand on line {line}", "第 {line} 行有多条语句").format(line=region.start_line)
        )
    statement = suite[0]
    line = text.line_text(statement.lineno)
    outer = line[: len(line) - len(line.lstrip())]
    unit = placed.unit()
    indent = outer + unit
    guard = " and ".join([gate.expression, f"{guard_tensor(branch)}.is_npu", *conditions])
    fused = [wrapped(one, indent + unit, unit) for one in branch.statements]
    original = text.of(statement)
    block = "\n".join(["", f"{indent}if {guard}:", *fused, f"{indent}else:", f"{indent}{unit}{original}"])
    colon = text.between(text.line_start(statement.lineno), text.start(statement)).rstrip()
    start = text.line_start(statement.lineno) + len(text.encode(colon))
    splice = Splice(start, text.end(statement), block)
    return Guarded(splice, guard, original, "\n".join(branch.statements), tuple(conditions))


def _indented_verbatim(region: Region, unit: str) -> str:
    text = region.layout.text
    first, last = region.statements[0], region.statements[-1]
    lines: list[str] = []
    end = last.end_lineno or last.lineno
    inside_strings = text.string_lines(first.lineno, end)
    for number in range(first.lineno, end + 1):
        line = text.line_text(number)
        lines.append(line if not line.strip() or number in inside_strings else unit + line)
    return "\n".join(lines)


@lru_cache(maxsize=1024)
def wrapped(code: str, indent: str, unit: str) -> str:
    """The statement at an indentation, its outermost call broken into one argument a line where it is too long."""
    if "\n" in code:
        inside = lines_inside_strings(code)
        lines = enumerate(code.split("\n"), 1)
        return "\n".join(line if number in inside or not line.strip() else indent + line for number, line in lines)
    if len(indent) + len(code) <= WIDTH:
        return indent + code
    try:
        tree = ast.parse(code.strip()).body[0]
    except SyntaxError:
        return indent + code
    call = _longest_call(tree)
    if call is None:
        return indent + code
    arguments = [ast.get_source_segment(code, one) or "" for one in call.args]
    for keyword in call.keywords:
        value = ast.get_source_segment(code, keyword.value) or ""
        arguments.append(f"{keyword.arg}={value}" if keyword.arg else f"**{value}")
    function = ast.get_source_segment(code, call.func) or ""
    encoded = code.encode()
    head = encoded[: call.col_offset].decode() + function + "("
    tail = encoded[call.end_col_offset :].decode()
    return "\n".join([indent + head, *(f"{indent}{unit}{argument}," for argument in arguments), f"{indent}){tail}"])


def _longest_call(tree: ast.AST) -> ast.Call | None:
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and (node.args or node.keywords)]
    fused = [
        call for call in calls if ast.unparse(call.func).startswith("torch_npu.") and "(" not in ast.unparse(call.func)
    ]
    return next(iter(fused or calls), None)


def edit_of(files: Sequence[FileEdit]) -> Edit:
    """The edit of these files; its digest covers every byte that it changes."""
    plain = json.dumps([asdict(one) for one in files], sort_keys=True, ensure_ascii=False)
    return Edit(tuple(files), hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest())


def file_edit(file: str, data: bytes, guarded: Guarded, preludes: Sequence[Prelude]) -> FileEdit:
    return FileEdit(file, hashlib.sha256(data).hexdigest(), (guarded.splice,), tuple(preludes))
