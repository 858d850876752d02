"""Which files, and which functions of a file, can hold a match at all: a look at bytes, without a parse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from npufuse_tui.rules import Rule


def can_match(source: bytes, rules: Iterable[Rule]) -> list[Rule]:
    """The rules of which the file holds at least one word of every group."""
    return [rule for rule in rules if all(any(word in source for word in group) for group in rule.needs)]


LONGEST_HELPER = 4000
"""Bytes of a function beyond which it is no helper that would be inlined."""


class FunctionFilter:
    """Tells of the functions of one file which are worth lowering for a rule.

    A function is, when its own text holds a word of the rule's first group, or calls (by its last name) a function of
    the file that is. Names that the file imports from its own package may lead to such a function too.
    """

    def __init__(self, rules: Sequence[Rule], texts: dict[str, list[bytes]], imported: Iterable[str]) -> None:
        words = {word for rule in rules for group in rule.needs[:1] for word in group}
        self._own = re.compile(b"|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)))
        names = {
            name
            for name, bodies in texts.items()
            if any(len(body) <= LONGEST_HELPER and self._own.search(body) for body in bodies)
        }
        names |= {name for name in imported if self._own.search(name.encode())}
        for _ in range(2):
            calling = self._calling(names)
            more = {
                name
                for name, bodies in texts.items()
                if calling and any(len(body) <= LONGEST_HELPER and calling.search(body) for body in bodies)
            }
            if more <= names:
                break
            names |= more
        self._calls = self._calling(names)

    @staticmethod
    def _calling(names: Iterable[str]) -> re.Pattern[bytes] | None:
        plain = sorted({name.encode() for name in names if not name.startswith("__") and name != "forward"})
        return re.compile(rb"\b(?:" + b"|".join(map(re.escape, plain)) + rb")\(") if plain else None

    def __call__(self, text: bytes) -> bool:
        return bool(self._own.search(text)) or bool(self._calls and self._calls.search(text))
