"""Fused blocks that a repo has already: functions and classes whose names say so. They are told, and not called."""

from __future__ import annotations

import re
from functools import lru_cache

from npufuse_tui.dataflow.source import SourceModule
from npufuse_tui.judgement.gates.existing import is_of_kind
from npufuse_tui.judgement.npu_words import names_an_npu, names_fusion
from npufuse_tui.judgement.surroundings import Surroundings, surroundings
from npufuse_tui.model import Reuse
from npufuse_tui.rules import Rule

_DEFINED = re.compile(rb"^[ \t]*(?:def|class)[ \t]+(\w+)", re.MULTILINE)
MOST = 4


def wrappers(module: SourceModule, rule: Rule) -> tuple[Reuse, ...]:
    """Fused functions and classes of the rule's kind, those of the file first; at most `MOST`."""
    own = _defined(module.file, module.source)
    others = _in_repo(surroundings(module.repository)) if module.repository is not None else ()
    fitting = [one for one in dict.fromkeys((*own, *others)) if is_of_kind(one.what, rule)]
    return tuple(fitting[:MOST])


@lru_cache(maxsize=2)
def _in_repo(around: Surroundings) -> tuple[Reuse, ...]:
    return tuple(one for name, data in around.python() for one in _defined(name, data))


@lru_cache(maxsize=8)
def _defined(file: str, source: bytes) -> tuple[Reuse, ...]:
    found = []
    for match in _DEFINED.finditer(source):
        name = match.group(1).decode(errors="replace")
        if names_an_npu(name) or names_fusion(name):
            found.append(Reuse(file, source.count(b"\n", 0, match.start(1)) + 1, name))
    return tuple(found)
