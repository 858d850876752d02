"""The bytes of a source file and the way from a syntax node's position to them.

`ast` counts columns in bytes of UTF-8, whatever the file is encoded in; here every position becomes an offset into
the file's own bytes.
"""

from __future__ import annotations

import ast
import bisect
import io
import tokenize
from dataclasses import dataclass
from functools import cached_property, lru_cache

UTF8_BOM = b"\xef\xbb\xbf"


@dataclass(eq=False)
class SourceText:
    """A source file: its bytes, encoding and newline."""

    data: bytes

    @cached_property
    def encoding(self) -> str:
        """The codec of the file's cookie or BOM, utf-8 when it has none. Raises SyntaxError for an unknown one."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(self.data).readline)
        return "utf-8" if encoding == "utf-8-sig" else encoding

    @cached_property
    def has_bom(self) -> bool:
        return self.data.startswith(UTF8_BOM)

    @cached_property
    def newline(self) -> str:
        """The newline that most lines of the file end with."""
        crlf = self.data.count(b"\r\n")
        return "\r\n" if crlf * 2 > self.data.count(b"\n") else "\n"

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines as Python counts them, with their ends."""
        body = self.data[len(UTF8_BOM) :] if self.has_bom else self.data
        return body.splitlines(keepends=True)

    @cached_property
    def stripped_lines(self) -> frozenset[str]:
        """The lines as a set, without what is blank at their ends."""
        return frozenset(line.decode(self.encoding, "replace").rstrip() for line in self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        start = len(UTF8_BOM) if self.has_bom else 0
        starts = [start]
        for line in self.lines:
            start += len(line)
            starts.append(start)
        return starts

    def line_start(self, line: int) -> int:
        """The offset of the first byte of a line; of the end of the file for one past the last."""
        return self._starts[min(line - 1, len(self._starts) - 1)]

    def line_at(self, offset: int) -> int:
        """The line, from 1, that a byte of the file lies on."""
        return (
            bisect.bisect_right(self._starts, offset)
            if offset < len(self.data)
            else max(len(self.lines), 1) + (1 if self.data.endswith((b"\n", b"\r")) else 0)
        )

    def line_text(self, line: int) -> str:
        """A line without its end."""
        return self.lines[line - 1].decode(self.encoding).rstrip("\r\n") if line <= len(self.lines) else ""

    def offset(self, line: int, column: int) -> int:
        """The offset of a position as `ast` gives it: line from 1, column in bytes of UTF-8."""
        if self.encoding != "utf-8" and line <= len(self.lines):
            decoded = self.lines[line - 1].decode(self.encoding)
            column = len(decoded.encode()[:column].decode().encode(self.encoding))
        return self.line_start(line) + column

    def start(self, node: ast.AST) -> int:
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def between(self, start: int, end: int) -> str:
        """The text of [start, end), with plain newlines."""
        return self.data[start:end].decode(self.encoding).replace("\r\n", "\n")

    def of(self, node: ast.AST) -> str:
        """The text of a syntax node, with plain newlines."""
        return self.between(self.start(node), self.end(node))

    def encode(self, text: str) -> bytes:
        """Text as bytes of this file: its newline, its encoding. Raises UnicodeEncodeError when it cannot say it."""
        return text.replace("\n", self.newline).encode(self.encoding)

    def string_lines(self, first: int, last: int) -> frozenset[int]:
        """Those of the lines [first, last], which hold whole statements, that begin inside of a string."""
        code = self.between(self.line_start(first), self.line_start(last + 1))
        return frozenset(line + first - 1 for line in lines_inside_strings(code))


@lru_cache(maxsize=1024)
def lines_inside_strings(code: str) -> frozenset[int]:
    """The lines of some statements, counted from 1, that begin inside of a string: nothing may be put in front of them."""
    if '"""' not in code and "'''" not in code and "\\\n" not in code:
        return frozenset()
    lead = 0 if code[:1].strip() else 1
    inside: set[int] = set()
    fstring_start = getattr(tokenize, "FSTRING_START", None)
    fstring_end = getattr(tokenize, "FSTRING_END", None)
    open_fstrings: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO("if True:\n" * lead + code).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1 - lead, token.end[0] + 1 - lead))
            elif fstring_start is not None and token.type == fstring_start:
                open_fstrings.append(token.start[0])
            elif fstring_end is not None and token.type == fstring_end and open_fstrings:
                inside.update(range(open_fstrings.pop() + 1 - lead, token.end[0] + 1 - lead))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return frozenset(inside)


def dedented(code: str) -> str:
    """Statements without the indentation of the first one. Unlike `textwrap.dedent` it leaves the inside of strings
    alone, and a comment that stands further left than the code does not keep the code from moving.
    """
    if "\n" not in code:
        return code.lstrip(" \t")
    lines = code.split("\n")
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    inside = lines_inside_strings(code)
    moved = []
    for number, line in enumerate(lines, 1):
        if number in inside:
            moved.append(line)
        elif not line.strip():
            moved.append("")
        else:
            moved.append(line.removeprefix(indent))
    return "\n".join(moved)
