"""The operators of one torch_npu version: what is registered, and whether gradients flow through it.

Registered schemas of the versions that npufuse knows are in `knowledge/schemas/`, one file a version. An installed
torch_npu or a wheel of another version is read from its own declarations.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from npufuse_tui import schemas
from npufuse_tui.judgement.api_documentation import Documents, read_documentation
from npufuse_tui.judgement.api_schema import Schema, parse_schema
from npufuse_tui.judgement.api_source import (
    DECLARATIONS,
    DOCUMENTATION,
    PackageFiles,
    installed_package,
    package_at,
)
from npufuse_tui.language import Text

# In the order of the release trains (the dates of the files inside the wheels), which is not the order of the numbers:
# the operators follow the train, and one torch version is built from several trains.
TRAINS = (
    "2.4.0.post4",
    "2.1.0.post17",
    "2.7.1",
    "2.6.0.post5",
    "2.7.1.post11",
    "2.9.0.post9",
    "2.13.0",
    "2.14.0",
)


class Gradient(str, Enum):
    """What backward does with an operator's output."""

    FORMULA = "formula"  # gradients flow
    RAISES = "raises"  # backward fails
    SILENT = "silent"  # no gradient, at most a warning
    LIKELY = "likely"  # a backward operator is there; the formula itself was not seen
    UNKNOWN = "unknown"


_GRADIENTS = {
    "formula": Gradient.FORMULA,
    "error_fallback": Gradient.RAISES,
    "torch_default_fallback": Gradient.SILENT,
}


_VERSION = re.compile(r"v?\d+(\.\d+)+(?:\.?(?:post|rc|dev)\d+)*(?:\+\S+)?")


@dataclass(frozen=True, slots=True)
class Operator:
    """All overloads of one name, the plain one first."""

    name: str
    schemas: tuple[Schema, ...]
    gradient: Gradient


@dataclass(frozen=True)
class Catalogue:
    """The operators of one version. `origin`: "registered" (read from the library) or "declared" (its declarations)."""

    version: str
    origin: str
    operators: Mapping[str, Operator]
    files: PackageFiles | None = None
    note: Text | None = None

    @property
    def documentation(self) -> Documents:
        """The documentation of the same package, by operator; empty where there is no package to read."""
        return _documents(self.files, self.files.stamp) if self.files else _NO_DOCUMENTS


_NO_DOCUMENTS = Documents({})


@lru_cache(maxsize=2)
def _documents(files: PackageFiles, stamp: tuple[str, int, int]) -> Documents:
    try:
        return read_documentation(files.read(DOCUMENTATION) or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what ast.parse raises for what is no Python
        return _NO_DOCUMENTS


def known_versions() -> tuple[str, ...]:
    """The versions whose registered schemas are at hand, in the order of their release trains."""
    found = set(schemas.versions())
    return tuple(one for one in TRAINS if one in found) + tuple(sorted(found - set(TRAINS)))


@lru_cache(maxsize=16)
def registered(version: str) -> Catalogue:
    """The recorded schemas of a known version. Raises WrongInput for text that is no version."""
    return Catalogue(schemas.resolve(version), "registered", Recorded(schemas.raw(version)))


class Recorded(Mapping[str, Operator]):
    """The recorded operators of a version, each read when it is asked for."""

    def __init__(self, entries: Mapping[str, Mapping[str, Mapping[str, str]]]) -> None:
        self._entries = entries
        self._read: dict[str, Operator] = {}

    def __getitem__(self, name: str) -> Operator:
        if name not in self._read:
            self._read[name] = _recorded(name, self._entries[name])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _recorded(name: str, overloads: Mapping[str, Mapping[str, str]]) -> Operator:
    found = sorted((parse_schema(entry["schema"]) for entry in overloads.values()), key=_plain_first)
    entry = overloads.get("default") or next(iter(overloads.values()))
    return Operator(name, tuple(found), _GRADIENTS.get(entry["autograd_kind"], Gradient.UNKNOWN))


def _plain_first(schema: Schema) -> tuple[bool, str]:
    return schema.overload != "", schema.overload


@lru_cache(maxsize=4)
def _declared(files: PackageFiles, stamp: tuple[str, int, int]) -> Catalogue:
    version = files.version or "?"
    recorded = registered(version) if version in known_versions() else None
    if recorded is not None:
        return Catalogue(version, recorded.origin, recorded.operators, files)
    text = files.read(DECLARATIONS) or ""
    found: dict[str, list[Schema]] = {}
    for schema in declarations(text):
        found.setdefault(schema.name, []).append(schema)
    operators = {
        name: Operator(
            name,
            tuple(sorted(overloads, key=_plain_first)),
            Gradient.LIKELY if f"{name}_backward" in found else Gradient.UNKNOWN,
        )
        for name, overloads in found.items()
    }
    return Catalogue(version, "declared", MappingProxyType(operators), files)


def declarations(text: str) -> list[Schema]:
    """The operators that a package declares under ``custom:`` of its schema file. Lines that are none are left out.

    The file is written by a program in one plain form, so its lines are read without a YAML parser: a list of
    mappings, the declaration after ``func:``, perhaps folded over more lines.
    """
    read: list[Schema] = []
    section = ""
    pending = ""

    def close() -> None:
        nonlocal pending
        if pending:
            with contextlib.suppress(ValueError):
                read.append(parse_schema(pending.strip().strip("'")))
            pending = ""

    for line in text.splitlines():
        if line and not line[0].isspace() and not line.startswith("-"):
            close()
            section = line.split(":", 1)[0].strip()
        elif section in ("custom", "autograd"):
            item = re.match(r"\s*(?:-\s+)?(\w+):(?:\s|$)(.*)", line)
            if item and item[1] == "func":
                close()
                pending = item[2]
            elif item:
                close()
            elif pending:
                pending += " " + line.strip()
    close()
    return read


def catalogue(source: str | Path | None = None, python: str | None = None) -> Catalogue:
    """The operators of `source`: a version, a path, or None for the torch_npu of the interpreter `python`.

    Where nothing is installed, the newest recorded version stands in and the note says so. A version that is not
    recorded is answered with the recorded one that is nearest below it, and the note says so.

    Raises WrongInput for a path without a torch_npu.
    """
    if source is None:
        files = installed_package(python)
        if files is not None:
            return _declared(files, files.stamp)
        newest = registered(schemas.NEWEST)
        return _with_note(
            newest,
            Text(
                "no torch_npu is installed here; shown is the recorded {version}",
                "当前环境没有安装 torch_npu，以下取自已记录的 {version} 版本",
            ).format(version=newest.version),
        )
    if isinstance(source, str) and _VERSION.fullmatch(source):
        return _recorded_or_near(source.removeprefix("v").split("+")[0])
    files = package_at(Path(source))
    return _declared(files, files.stamp)


def _recorded_or_near(version: str) -> Catalogue:
    found = registered(schemas.resolve(version))
    if found.version == version:
        return found
    return _with_note(
        found,
        Text(
            "torch_npu {version} is not recorded; shown is {chosen}, and operators can differ between the builds of "
            "one torch version",
            "没有 torch_npu {version} 的接口记录，以下取自 {chosen}；同一 torch 版本的不同构建，其算子可能不同",
        ).format(version=version, chosen=found.version),
    )


def _with_note(found: Catalogue, note: Text) -> Catalogue:
    return Catalogue(found.version, found.origin, found.operators, found.files, note)


def first_trains(name: str) -> tuple[str, ...]:
    """The recorded versions that have the operator, in the order of their trains."""
    return tuple(version for version in known_versions() if name in _recorded_names(version))


@lru_cache(maxsize=16)
def _recorded_names(version: str) -> frozenset[str]:
    return frozenset(schemas.raw(version))
