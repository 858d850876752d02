"""One file a log format. A new format is one new file here that holds a `PARSER`; nothing else knows its name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from npufuse_tui.verify.reading import Parser


@cache
def all_parsers() -> tuple[Parser, ...]:
    """Every parser of this folder, the most particular format first."""
    modules = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    found = [parser for module in modules if isinstance(parser := getattr(module, "PARSER", None), Parser)]
    return tuple(sorted(found, key=lambda one: (one.rank, one.name)))
