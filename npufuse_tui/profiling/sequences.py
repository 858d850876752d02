"""Sequences of kernels, found by kind: how the chains of the rules look in a profile."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from npufuse_tui import schemas

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FIRST = 0xE000  # private use: one character a kind


@dataclass(frozen=True, slots=True)
class Found:
    """Kernels [start, end) of a list that look like the chain of `rule`."""

    rule: str
    start: int
    end: int


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    return tomllib.loads((schemas.folder().parent / "kernel_sequences.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    listed: dict[str, list[str]] = _file()["kinds"]
    known = {variant.casefold(): kind for kind, variants in listed.items() for variant in variants}
    return known | {kind.casefold(): kind for kind in listed}


def kind_of(type_: str) -> str:
    """The kind of a kernel's type: its variants are one, and suffixes such as AiCore do not matter."""
    plain = re.sub(r"(AiCore|AiCpu)$", "", type_.strip())
    known = _kinds()
    found = known.get(plain.casefold())
    # aclnnAdd_AddAiCore_Add: a name stands where the type is missing; its last part is the type.
    return found or known.get(plain.rpartition("_")[2].casefold(), plain.rpartition("_")[2] or plain)


@lru_cache(maxsize=1)
def _fused() -> dict[str, str]:
    listed: dict[str, list[str]] = _file()["fused"]
    return {one.casefold(): rule for rule, types in listed.items() for one in types}


def fused_rule(type_: str) -> str | None:
    """The rule whose fused operator runs as this kernel, or None."""
    known = _fused()
    plain = type_.strip().casefold()
    return known.get(plain) or known.get(plain.rpartition("_")[2])


@lru_cache(maxsize=1)
def _letters() -> dict[str, str]:
    words = {
        word for written in _file()["rules"].values() for one in written for word in re.findall(r"[A-Za-z]\w*", one)
    }
    return {word: chr(_FIRST + place) for place, word in enumerate(sorted(words))}


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    letters = _letters()
    compiled: list[tuple[str, re.Pattern[str]]] = []
    for rule, written in _file()["rules"].items():
        for one in written:
            pieces: list[str] = []
            for word in one.split():
                mark = word[-1] if word[-1] in "?*" else ""
                choices = "".join(letters[each] for each in word.rstrip("?*").split("|"))
                pieces.append(f"[{choices}]{mark}")
            compiled.append((str(rule), re.compile("".join(pieces))))
    return tuple(compiled)


def find_sequences(types: Sequence[str]) -> list[Found]:
    """Where the chains of the rules are in a list of kernel types, left to right and without overlap, longest first."""
    letters = _letters()
    text = "".join(letters.get(kind_of(one), "\uf8ff") for one in types)
    found = [Found(rule, one.start(), one.end()) for rule, pattern in _patterns() for one in pattern.finditer(text)]
    kept: list[Found] = []
    taken = bytearray(len(types))
    for one in sorted(found, key=lambda each: (each.start - each.end, each.start, each.rule)):
        if not any(taken[one.start : one.end]):
            taken[one.start : one.end] = b"\1" * (one.end - one.start)
            kept.append(one)
    return sorted(kept, key=lambda each: each.start)
