"""Python source to coloured spans. Pygments is imported at the first use: it is not needed for the first screen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

Span = tuple[int, int, str]

_WHOLE = 600  # lines; beyond it each line is coloured by itself, when it is drawn


@lru_cache(maxsize=1)
def _lexer() -> Any:
    from pygments.lexers.python import PythonLexer

    return PythonLexer(stripnl=False, ensurenl=False)


@lru_cache(maxsize=256)
def _meaning(token: Any) -> str:
    name = str(token)
    for part, meaning in (
        ("Comment", "$code-comment"),
        ("String", "$code-string"),
        ("Number", "$code-number"),
        ("Keyword", "$code-keyword"),
        ("Operator.Word", "$code-keyword"),
        ("Name.Function", "$code-name"),
        ("Name.Class", "$code-name"),
        ("Name.Decorator", "$code-name"),
        ("Name.Builtin", "$code-name"),
    ):
        if part in name:
            return meaning
    return ""


@lru_cache(maxsize=4096)
def spans(line: str) -> tuple[Span, ...]:
    """The coloured spans of one line taken by itself."""
    return tuple(
        (at, at + len(text), meaning)
        for at, token, text in _lexer().get_tokens_unprocessed(line[:1000])
        if (meaning := _meaning(token))
    )


def block_spans(lines: Sequence[str]) -> list[tuple[Span, ...]] | None:
    """The coloured spans of consecutive lines, strings over several lines included; None when they are too many."""
    if len(lines) > _WHOLE or sum(map(len, lines)) > 60_000:
        return None
    found: list[list[Span]] = [[] for _ in lines]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    row = 0
    for at, token, text in _lexer().get_tokens_unprocessed("\n".join(lines)):
        meaning = _meaning(token)
        while row + 1 < len(lines) and at >= starts[row + 1]:
            row += 1
        if not meaning:
            continue
        here, start, end = row, at, at + len(text)
        while start < end and here < len(lines):
            stop = min(end, starts[here + 1] - 1)
            if stop > start:
                found[here].append((start - starts[here], stop - starts[here], meaning))
            here += 1
            start = starts[here]
    return [tuple(one) for one in found]
