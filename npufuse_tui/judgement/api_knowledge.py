"""What `knowledge/apis.toml` says of operators beyond their schemas."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from npufuse_tui import schemas
from npufuse_tui.language import Text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    path = schemas.folder().parent / "apis.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def known(name: str) -> Mapping[str, Any]:
    """The entry of an operator; empty for one that has none."""
    entry: Mapping[str, Any] = _file().get(name, {}) if name != "deprecated" else {}
    return entry


def known_names() -> tuple[str, ...]:
    return tuple(name for name in _file() if name != "deprecated")


def deprecated() -> Mapping[str, str]:
    """Abandoned operators and what took their place."""
    found: Mapping[str, str] = _file().get("deprecated", {})
    return found


def text_of(value: object) -> Text | None:
    """A sentence of the file in both languages, or None where there is none."""
    return Text(str(value["en"]), str(value["zh"])) if isinstance(value, dict) else None


def texts_of(values: object) -> tuple[Text, ...]:
    return tuple(text for one in values if (text := text_of(one))) if isinstance(values, list) else ()
