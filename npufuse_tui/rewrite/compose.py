"""Edits of one file → the bytes of the edited file. Every byte outside of a splice or a prelude stays as it was."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Sequence
from itertools import pairwise

from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text
from npufuse_tui.model import FileEdit, Prelude, Splice
from npufuse_tui.rewrite.gate import IMPORT_RANK
from npufuse_tui.rewrite.text import SourceText


def compose(source: bytes, edits: Sequence[FileEdit], tree: ast.Module | None = None) -> bytes:
    """The file with all the edits in it; each prelude is put in once. Raises KeptSafe when the file is another one, or
    when two edits want the same bytes.
    """
    text = SourceText(source)
    result = source
    for splice in sorted(all_splices(text, edits, tree), key=lambda one: (one.start, one.end), reverse=True):
        result = result[: splice.start] + text.encode(splice.text) + result[splice.end :]
    return result


def all_splices(text: SourceText, edits: Sequence[FileEdit], tree: ast.Module | None = None) -> list[Splice]:
    """The splices of the edits and of their preludes, in order; `tree` is the parsed file, where it is at hand."""
    digest = hashlib.sha256(text.data).hexdigest()
    for edit in edits:
        if edit.sha256 != digest:
            raise KeptSafe(
                Text(
                    "{file} is not the file that was scanned; scan again before you apply",
                    "{file} 与扫描时不同；请重新扫描后再应用",
                ).format(file=edit.file)
            )
    splices = _ordered(edits)
    wanted = {prelude.key: prelude for edit in edits for prelude in edit.preludes}
    splices += _preludes(text, sorted(wanted.values(), key=lambda one: (one.rank, one.key)), tree)
    return sorted(splices, key=lambda one: (one.start, one.end))


def _ordered(edits: Sequence[FileEdit]) -> list[Splice]:
    splices = sorted({splice for edit in edits for splice in edit.splices}, key=lambda one: (one.start, one.end))
    for one, other in pairwise(splices):
        if other.start < one.end:
            raise KeptSafe(
                Text(
                    "two approved edits of {file} overlap at byte {place}; approve one of them",
                    "{file} 中有两处已批准的修改在字节 {place} 处重叠；请只批准其中一处",
                ).format(file=edits[0].file, place=other.start)
            )
    return splices


def _preludes(text: SourceText, preludes: list[Prelude], tree: ast.Module | None) -> list[Splice]:
    """Where the preludes go: imports of the standard library before the first import, the rest behind the last."""
    if tree is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.data)
    existing = text.stripped_lines
    missing = [one for one in preludes if one.text.split("\n")[0] not in existing or one.text.startswith("try:")]
    missing = [one for one in missing if not (one.key == "torch_npu" and _imports_torch_npu(tree))]
    imports = [one.text for one in missing if one.rank <= IMPORT_RANK]
    others = [one for one in missing if one.rank > IMPORT_RANK]
    splices: list[Splice] = []
    first, last = _import_section(tree)
    if imports:
        splices.append(_before(text, tree, first, imports))
    if others:
        splices.append(_behind(text, tree, last, others))
    if len(splices) == 2 and splices[0].start == splices[1].start:
        joined = "\n".join(imports) + "\n"
        splices = [Splice(splices[1].start, splices[1].end, _with_first(splices[1].text, joined))]
    return splices


def _with_first(block: str, first: str) -> str:
    lead = len(block) - len(block.lstrip("\n"))
    return block[:lead] + first + ("\n" if not block[lead:].startswith("\n") else "") + block[lead:]


def _imports_torch_npu(tree: ast.Module) -> bool:
    return any(
        isinstance(inner, ast.Import) and any(alias.name == "torch_npu" and not alias.asname for alias in inner.names)
        for statement in tree.body
        if isinstance(statement, (ast.Import, ast.Try, ast.If))
        for inner in walk(statement)
    )


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _only_imports(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(statement, (ast.Try, ast.If)):
        inner = [*statement.body, *statement.orelse]
        return any(isinstance(one, (ast.Import, ast.ImportFrom)) for one in inner) and not any(
            isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for one in inner
        )
    return False


def _import_section(tree: ast.Module) -> tuple[ast.stmt | None, ast.stmt | None]:
    """The first plain import, and the last import before anything is defined."""
    first: ast.stmt | None = None
    last: ast.stmt | None = None
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if _only_imports(statement):
            if first is None and isinstance(statement, (ast.Import, ast.ImportFrom)) and not _is_future(statement):
                first = statement
            last = statement
    return first, last


def _before(text: SourceText, tree: ast.Module, first: ast.stmt | None, imports: list[str]) -> Splice:
    if first is not None and not _shares_line(tree, first):
        start = text.line_start(first.lineno)
        return Splice(start, start, "\n".join(imports) + "\n")
    return _behind(text, tree, _last_lead(tree), [Prelude(one, one) for one in imports])


def _last_lead(tree: ast.Module) -> ast.stmt | None:
    """The docstring or the last `from __future__` import."""
    lead: ast.stmt | None = None
    for place, statement in enumerate(tree.body):
        docstring = place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if docstring or _is_future(statement):
            lead = statement
    return lead


def _shares_line(tree: ast.Module, statement: ast.stmt) -> bool:
    return any(other is not statement and other.end_lineno == statement.lineno for other in tree.body)


def _behind(text: SourceText, tree: ast.Module, last: ast.stmt | None, preludes: list[Prelude]) -> Splice:
    anchor = last if last is not None else _last_lead(tree)
    block = ""
    for prelude in preludes:
        block += "\n" if prelude.text.startswith(("try:", "def ", "class ", "@", "_NPU")) or not block else ""
        block += ("\n" if prelude.text.startswith(("def ", "class ", "@")) else "") + prelude.text.rstrip("\n") + "\n"
    if anchor is None:
        lead = _comment_lines(text)
        start = text.line_start(lead + 1)
        return Splice(start, start, (block if lead else block.lstrip("\n")) + "\n")
    end = anchor.end_lineno or anchor.lineno
    on_the_same_line = [one for one in tree.body if one.lineno == end and one is not anchor]
    if on_the_same_line:
        end = max(one.end_lineno or one.lineno for one in on_the_same_line)
    start = text.line_start(end + 1)
    following = [text.line_text(line).strip() for line in (end + 1, end + 2)]
    if end < len(text.lines) and preludes[-1].text.startswith(("def ", "class ", "@")):
        block += "\n" * (2 if following[0] else 1 if following[1] else 0)
    elif end < len(text.lines) and following[0] and not preludes[-1].text.startswith(("import ", "from ")):
        block += "\n"
    if end == len(text.lines) and text.lines and not text.lines[-1].endswith((b"\n", b"\r")):
        block = "\n" + block
    return Splice(start, start, block)


def _comment_lines(text: SourceText) -> int:
    """How many lines at the top are comments: a shebang, a coding cookie, a licence."""
    count = 0
    for line in text.lines:
        if not line.lstrip().startswith(b"#"):
            break
        count += 1
    return count
