"""The proof that an edit kept the original: the fallback's tokens are the original's, and nothing else changed.

The edited file is parsed anew with LibCST and the else branch of each guarded block is read back out of it.
"""

from __future__ import annotations

import ast
import codecs
import io
import textwrap
import tokenize
from collections.abc import Iterable, Sequence
from functools import lru_cache

from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text
from npufuse_tui.model import FileEdit
from npufuse_tui.rewrite.text import SourceText

LAYOUT_TOKENS = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.ENCODING)


class NotVerbatim(KeptSafe):
    """An edit would lose or change something of the original; nothing is written."""


def prove(before: bytes, after: bytes, edits: Sequence[FileEdit]) -> None:
    """Raise NotVerbatim unless `after` compiles, holds every original statement as a fallback, and changed no other byte."""
    file = edits[0].file if edits else "?"
    try:
        ast.parse(after)
    except (SyntaxError, ValueError) as error:
        raise _refused(file, f"the edited file does not compile: {error}") from error
    text = SourceText(before)
    fallbacks = _fallbacks(after)
    for edit in edits:
        for splice in edit.splices:
            if splice.start == splice.end:
                continue
            original = tokens(text.between(splice.start, splice.end))
            if original not in fallbacks:
                raise _refused(file, "the original statements are not all in the else branch")
    _only_additions_outside(before, after, edits)


def _refused(file: str, why: str) -> NotVerbatim:
    return NotVerbatim(
        Text(
            "{file} was left alone: {why}; please report this with the file",
            "未修改 {file}：{why}；请附上该文件报告此问题",
        ).format(file=file, why=why)
    )


@lru_cache(maxsize=1024)
def tokens(code: str) -> tuple[str, ...]:
    """The tokens of some statements, comments too, without indentation and newlines."""
    dedented = textwrap.dedent(code)
    lead = "" if dedented[:1].strip() else "if True:\n"
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(lead + dedented).readline):
            if token.type not in LAYOUT_TOKENS:
                found.append(token.string)
    except (tokenize.TokenError, IndentationError):
        return tuple(dedented.split())
    return tuple(found[3:] if lead else found)


def _fallbacks(after: bytes) -> set[tuple[str, ...]]:
    """The tokens of the else branch of every guarded block of the file."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    text = SourceText(after)
    try:
        wrapper = MetadataWrapper(libcst.parse_module(after), unsafe_skip_copy=True)
    except libcst.ParserSyntaxError:
        return set(_else_suites(ast.parse(after), text))
    positions = wrapper.resolve(PositionProvider)
    found: set[tuple[str, ...]] = set()

    class Reader(libcst.CSTVisitor):
        def visit_If(self, node: libcst.If) -> None:
            if isinstance(node.orelse, libcst.Else) and "is_npu" in wrapper.module.code_for_node(node.test):
                span = positions[node.orelse.body]
                lines = [text.line_text(number) for number in range(span.start.line, span.end.line + 1)]
                found.add(tokens(_after_colon(lines)))

    wrapper.visit(Reader())
    found.update(_else_suites(ast.parse(after), text))
    return found


def _after_colon(lines: list[str]) -> str:
    return "\n".join(lines[1:] if lines and lines[0].strip() in ("else:", "") else lines)


def _else_suites(tree: ast.Module, text: SourceText) -> Iterable[tuple[str, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.orelse and "is_npu" in ast.unparse(node.test):
            first, last = node.orelse[0], node.orelse[-1]
            lines = [text.line_text(number) for number in range(first.lineno, (last.end_lineno or 0) + 1)]
            yield tokens("\n".join(lines))


def _only_additions_outside(before: bytes, after: bytes, edits: Sequence[FileEdit]) -> None:
    """What stands outside of the splices must stand in the edited file too, in order and byte for byte."""
    spans = sorted({(splice.start, splice.end) for edit in edits for splice in edit.splices})
    kept: list[bytes] = []
    place = 0
    for start, end in spans:
        kept.append(before[place:start])
        place = end
    kept.append(before[place:])
    kept[0] = kept[0].removeprefix(codecs.BOM_UTF8)  # an import may come between the mark and the first line
    position = 0
    for piece in kept:
        for line in piece.splitlines(keepends=True):
            found = after.find(line, position)
            if found < 0:
                raise _refused(edits[0].file, "a line outside of the edit would change")
            position = found + len(line)


def round_trips(source: bytes) -> bool:
    """Whether LibCST gives the file back byte for byte."""
    import libcst

    try:
        return libcst.parse_module(source).bytes == source
    except (libcst.ParserSyntaxError, RecursionError, UnicodeDecodeError):
        return False
