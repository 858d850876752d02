"""Every risk of this folder, found by looking: a module with a function `check(around)` is one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from functools import lru_cache

from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.model import Risk, Severity

Check = Callable[[Around], Iterable[Risk]]

FORBIDDING = frozenset({"jit_script"})
"""Risks with which no edit can work: the candidate is refused."""

_SEVERITY = {Severity.DANGER: 0, Severity.WARNING: 1, Severity.INFO: 2}


@lru_cache(maxsize=1)
def checks() -> tuple[Check, ...]:
    """The checks, in the order of their files' names."""
    from npufuse_tui.judgement import risks

    modules = [
        importlib.import_module(f"{risks.__name__}.{info.name}")
        for info in sorted(pkgutil.iter_modules(risks.__path__), key=lambda one: one.name)
    ]
    return tuple(module.check for module in modules if hasattr(module, "check"))


def risks_of(around: Around, own: Iterable[Risk] = ()) -> tuple[Risk, ...]:
    """The risks of a candidate, the worst first; `own` are those that the rule itself found.

    Where the rule and a general check name one code, the general one stands: it has looked at more.
    """
    found: dict[tuple[str, int | None, str | None], Risk] = {}
    general = [risk for check in checks() for risk in check(around)]
    codes = {risk.code for risk in general}
    for risk in (*(one for one in own if one.code not in codes), *general):
        found.setdefault((risk.code, risk.line, risk.file), risk)
    return tuple(sorted(found.values(), key=lambda risk: _SEVERITY[risk.severity]))
