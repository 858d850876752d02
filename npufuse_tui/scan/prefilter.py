"""Which files, and which functions of a file, can hold a match at all: a look at bytes, without a parse.

A rule names groups of words (regular expressions); where a match is, at least one word of every group stands, in the
function itself or in a helper that it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from npufuse_tui.rules import Rule

LONGEST_HELPER = 4000
"""Bytes of a function beyond which it is no helper that would be inlined."""

_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\(")


_TOKENS = re.compile(rb"\\.|\[[^\]]*\]|.", re.DOTALL)


def _text_in(word: bytes) -> tuple[bytes, bool]:
    """The longest plain text that stands wherever a regular expression matches, and whether it is all of it."""
    if re.search(rb"(?<!\\)[|(){}]", word):
        return b"", False
    runs = [b""]
    exact = True
    for token in _TOKENS.findall(word):
        if token in (b"?", b"*", b"+"):
            runs[-1] = runs[-1][:-1] if token != b"+" else runs[-1]
            runs.append(b"")
            exact = False
        elif len(token) == 2 and not token[1:].isalnum():
            runs[-1] += token[1:]
        elif len(token) == 1 and token not in b".^$":
            runs[-1] += token
        else:
            runs.append(b"")
            exact = False
    return max(runs, key=len), exact


@dataclass(frozen=True, slots=True)
class Words:
    """One group of words, as a question to some bytes: is one of them there?

    A word that is plain text is looked for as such, which is many times as quick as a regular expression; one that has
    plain text in it is first looked for by that text.
    """

    plain: tuple[bytes, ...]
    hinted: tuple[tuple[bytes, re.Pattern[bytes]], ...]

    @classmethod
    def of(cls, group: tuple[bytes, ...]) -> Words:
        plain: list[bytes] = []
        hinted: list[tuple[bytes, re.Pattern[bytes]]] = []
        for word in group:
            text, exact = _text_in(word)
            if exact:
                plain.append(text)
            else:
                hinted.append((text, re.compile(word)))
        return cls(tuple(plain), tuple(hinted))

    def found_in(self, source: bytes) -> bool:
        for word in self.plain:
            if word in source:
                return True
        return any(hint in source and pattern.search(source) is not None for hint, pattern in self.hinted)


@lru_cache(maxsize=1024)
def _words(group: tuple[bytes, ...]) -> Words:
    return Words.of(group)


def can_match(source: bytes, rules: Iterable[Rule]) -> list[Rule]:
    """The rules of which the file holds at least one word of every group, or imports something named by one of them."""
    imports = b"\n".join(_IMPORTS.findall(source))
    return [
        rule
        for rule in rules
        if all(_words(group).found_in(source) for group in rule.needs)
        or (imports and _words(rule.needs[0]).found_in(imports))
    ]


_IMPORTS = re.compile(rb"^from [\w.]+ import [^\n(]+", re.MULTILINE)
"""Imports of one line that may bring a helper of the repo."""


class FunctionFilter:
    """Tells of the functions of one file for which rules they are worth lowering."""

    def __init__(self, rules: Sequence[Rule], texts: Mapping[str, Sequence[bytes]], imported: Iterable[str]) -> None:
        self._rules = rules
        self._groups = [(rule, _words(group)) for rule in rules for group in rule.needs]
        self._own: dict[bytes, int] = {}
        helpers = {
            name: [body for body in bodies if len(body) <= LONGEST_HELPER]
            for name, bodies in texts.items()
            if name != "forward" and not name.startswith("__")
        }
        self._of_name = {name: self._bits_of(bodies) for name, bodies in helpers.items()}
        # what an imported helper does is not known here: a name that says one thing of a rule may do all of it
        self._of_name.update({name: self._whole_rules(name) for name in imported if name not in self._of_name})
        for name, bodies in helpers.items():
            self._of_name[name] |= self._called(b"".join(bodies))

    def _bits_of(self, bodies: Iterable[bytes]) -> int:
        bits = 0
        for body in bodies:
            bits |= self._bits(body)
        return bits

    def _whole_rules(self, name: str) -> int:
        own = self._bits(name.encode())
        touched = {id(rule) for place, (rule, _) in enumerate(self._groups) if own >> place & 1}
        return sum(1 << place for place, (rule, _) in enumerate(self._groups) if id(rule) in touched)

    def _bits(self, text: bytes) -> int:
        known = self._own.get(text)
        if known is None:
            known = 0
            for place, (_, words) in enumerate(self._groups):
                if words.found_in(text):
                    known |= 1 << place
            self._own[text] = known
        return known

    def _called(self, text: bytes) -> int:
        bits = 0
        for name in set(_CALLED.findall(text)):
            bits |= self._of_name.get(name.decode("utf-8", "replace"), 0)
        return bits

    def __call__(self, text: bytes) -> list[Rule]:
        """The rules of which every group has a word in the function or in what it calls."""
        bits = self._bits(text)
        if bits:
            bits |= self._called(text)
        elif not (bits := self._called(text)):
            return []
        missing = {id(rule) for place, (rule, _) in enumerate(self._groups) if not bits >> place & 1}
        return [rule for rule in self._rules if id(rule) not in missing]
