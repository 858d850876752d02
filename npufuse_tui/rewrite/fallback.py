"""The proof that an edit kept the original: the fallback's tokens are the original's, and no other byte changed.

The edited file is read anew, by LibCST, and the else branch of each guarded block is taken out of it. A file that
LibCST does not give back byte for byte (a form feed, a bare carriage return) is read with `ast` and `tokenize` instead.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Sequence
from functools import lru_cache

from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text
from npufuse_tui.model import FileEdit, Splice
from npufuse_tui.rewrite.compose import all_splices
from npufuse_tui.rewrite.text import SourceText, dedented

LAYOUT_TOKENS = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.ENCODING)

Tokens = tuple[str, ...]


class NotVerbatim(KeptSafe):
    """An edit would lose or change something of the original; nothing is written."""


def prove(before: bytes, after: bytes, edits: Sequence[FileEdit]) -> None:
    """Raise NotVerbatim unless `after` compiles, holds every original statement as a fallback, and changed nothing else."""
    file = edits[0].file if edits else "?"
    try:
        tree = _parsed(after)
    except (SyntaxError, ValueError) as error:
        raise _refused(file, f"the edited file does not compile: {error}") from error
    text = SourceText(before)
    added = SourceText(after)
    places = _places(text, after, all_splices(text, edits), file)
    fallbacks = _read_by_libcst(after) if round_trips(after) else _read_by_ast(tree, added)
    own = {splice for edit in edits for splice in edit.splices}
    for splice, start in places:
        if splice.start == splice.end or splice not in own:
            continue
        guard = added.line_at(start + _blank_bytes(after[start:]))
        if fallbacks.get(guard) != tokens(text.between(splice.start, splice.end)):
            raise _refused(file, f"the original of line {text.line_at(splice.start)} is not the else branch, verbatim")


def _refused(file: str, why: str) -> NotVerbatim:
    return NotVerbatim(
        Text(
            "{file} was left alone: {why}; please report this with the file",
            "未修改 {file}：{why}；请附上该文件报告此问题",
        ).format(file=file, why=why)
    )


def _parsed(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        return ast.parse(source)


def _blank_bytes(data: bytes) -> int:
    return len(data) - len(data.lstrip())


def _places(text: SourceText, after: bytes, splices: Sequence[Splice], file: str) -> list[tuple[Splice, int]]:
    """Where each splice's new text begins in the edited file. Raises NotVerbatim when a byte between them changed."""
    places: list[tuple[Splice, int]] = []
    old = new = 0
    for splice in splices:
        kept = text.data[old : splice.start]
        if after[new : new + len(kept)] != kept:
            raise _refused(file, "a line outside of the edit would change")
        new += len(kept)
        places.append((splice, new))
        new += len(text.encode(splice.text))
        old = splice.end
    if after[new:] != text.data[old:]:
        raise _refused(file, "a line outside of the edit would change")
    return places


@lru_cache(maxsize=1024)
def tokens(code: str) -> Tokens:
    """The tokens of some statements, comments too, without indentation and newlines."""
    plain = dedented(code.replace("\r\n", "\n").strip("\n"))
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(plain).readline):
            if token.type not in LAYOUT_TOKENS:
                found.append(token.string)
    except (tokenize.TokenError, IndentationError):
        return tuple(plain.split())
    return tuple(found)


def _read_by_libcst(source: bytes) -> dict[int, Tokens]:
    """The tokens of the else branch of every `if` of a file, by the line of the `if`."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    wrapper = MetadataWrapper(libcst.parse_module(source), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    found: dict[int, Tokens] = {}

    class Reader(libcst.CSTVisitor):
        def visit_If(self, node: libcst.If) -> None:
            if isinstance(node.orelse, libcst.Else):
                found[positions[node].start.line] = tokens(wrapper.module.code_for_node(node.orelse.body))

    wrapper.visit(Reader())
    return found


def _read_by_ast(tree: ast.Module, text: SourceText) -> dict[int, Tokens]:
    """The same for a file that LibCST does not give back."""
    found: dict[int, Tokens] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.orelse:
            first, last = node.orelse[0], node.orelse[-1]
            lines = [text.line_text(number) for number in range(first.lineno, (last.end_lineno or 0) + 1)]
            found[node.lineno] = tokens("\n".join(lines))
    return found


def round_trips(source: bytes) -> bool:
    """Whether LibCST gives the file back byte for byte."""
    import libcst

    try:
        return libcst.parse_module(source).bytes == source
    except (libcst.ParserSyntaxError, RecursionError, UnicodeDecodeError):
        return False
