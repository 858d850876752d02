"""Markdown that stays what it is whatever is put into it: file names, code and messages are all taken as hostile."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

# An underscore between letters or digits is none of Markdown's, so names stay readable in the source.
_SPECIAL = re.compile(r"([\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_]))")
_LINK = re.compile(r"(?i)\b(?:\w+://|www\.)")
_LEADING = re.compile(r"^(\d*)([#+=-]|(?<=\d)[.)](?=\s|$))")
_BACKTICKS = re.compile(r"`+")
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Control characters and those that hide or reorder text (Trojan Source), written as escapes."""
    if text.isascii() and text.isprintable():  # most pieces of code, and there are many
        return text
    return _UNSEEN.sub(lambda one: f"\\u{ord(one.group()):04x}", text.replace("\r\n", "\n").replace("\r", "\\r"))


def sentence(text: str) -> str:
    """`text` as one line of plain text: nothing in it is markup, HTML, a link, a mention or the end of a table cell."""
    kept = _SPECIAL.sub(r"\\\1", " ".join(visible(text).split()))
    kept = kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    kept = _LINK.sub(lambda one: one.group().replace(":", "&#58;").replace(".", "&#46;"), kept).replace("@", "&#64;")
    return _LEADING.sub(r"\1\\\2", kept)


def code(text: str) -> str:
    """`text` as a code span; what holds a pipe or a backtick, which a table cannot, is written in entities."""
    kept = " ".join(visible(text).split())
    if kept and "|" not in kept and "`" not in kept:
        return f"`{kept}`"
    return f"<code>{re.sub(r'[^0-9A-Za-z ]', lambda one: f'&#{ord(one.group())};', kept)}</code>"


def fence(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    kept = visible(text)
    longest = max((len(run) for run in _BACKTICKS.findall(kept)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{kept}{'' if kept.endswith(chr(10)) else chr(10)}{mark}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table of cells that are Markdown already (made by `sentence` or `code`)."""
    rights = set(right)
    rule = ["---:" if place in rights else "---" for place in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in lines)


def details(summary: str, body: str) -> str:
    """A part that is folded away at first. `summary` is plain text of one line; `body` Markdown blocks."""
    return f"<details>\n<summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>"
