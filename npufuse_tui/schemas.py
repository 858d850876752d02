"""The registered operators of torch_npu's versions: which there are, how each is called, whether it has a backward.

The data is in `knowledge/schemas/`, one file a version, as the library itself registers its operators; a version that
registers the same as another says only which. What torch_npu offers follows its release train, not the version of
torch, so whether an operator or an argument exists is asked of the version that is installed, never computed.

Reads JSON and text only: neither torch nor torch_npu is imported.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text

NEWEST = "2.14.0"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operator. `default` is its source text, or None where the caller must give a value."""

    name: str
    type: str
    default: str | None = None
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload of an operator, as registered.

    `autograd_kind` says what backward does: "formula" (trainable), "error_fallback" (backward raises),
    "torch_default_fallback" (a warning, and no gradient), "other".
    """

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    autograd_kind: str
    schema: str

    def argument(self, name: str) -> Argument | None:
        """The argument of this name, or None where this version has none."""
        return next((argument for argument in self.arguments if argument.name == name), None)

    @property
    def trainable(self) -> bool:
        return self.autograd_kind == "formula"


def folder() -> Path:
    """The folder that holds the schema files."""
    knowledge = importlib.import_module("npufuse_tui.knowledge")
    return Path(next(iter(knowledge.__path__))) / "schemas"


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """Every version whose operators are known, oldest torch version first."""
    return tuple(sorted((path.stem for path in folder().glob("*.json")), key=_order))


def resolve(version: str | None) -> str:
    """The known version that answers for `version`: itself, or the nearest that is not newer.

    None and "newest" give the newest. Post-releases of one torch version differ more than torch versions do, so the
    nearest is looked for among the releases of the same torch version first. Raises WrongInput for text that is no
    version.
    """
    if version is None or version == "newest":
        return NEWEST
    plain = version.strip().split("+")[0]
    known = versions()
    if plain in known:
        return plain
    if not re.fullmatch(r"\d+(\.\d+)+(\.?(post|rc|dev|a|b)\d+)*", plain, re.ASCII):
        raise WrongInput(
            Text(
                "“{version}” is not a version of torch_npu; give one such as {newest} (known: {known})",
                "“{version}”不是 torch_npu 的版本号；请给出如 {newest} 的版本（已知：{known}）",
            ).format(version=version, newest=NEWEST, known=", ".join(known))
        )
    wanted = _order(plain)
    same = [one for one in known if _order(one)[:3] == wanted[:3]]
    older = [one for one in (same or known) if _order(one) <= wanted]
    return (older or same or known)[-1 if older else 0]


@lru_cache(maxsize=8)
def operators(version: str | None = None) -> Mapping[str, tuple[Signature, ...]]:
    """Every operator of a version (the newest by default) and its overloads, the default one first."""
    found = {
        name: tuple(
            _signature(overload, entry["schema"], entry["autograd_kind"])
            for overload, entry in sorted(overloads.items(), key=lambda item: (item[0] != "default", item[0]))
        )
        for name, overloads in raw(version).items()
    }
    return MappingProxyType(found)


def raw(version: str | None = None) -> dict[str, dict[str, dict[str, str]]]:
    """The content of a version's file: {operator: {overload: {"schema", "autograd_kind"}}}."""
    entries = json.loads((folder() / f"{resolve(version)}.json").read_text(encoding="utf-8"))
    if "same_as" in entries:
        return raw(str(entries["same_as"]))
    return dict(entries)


def signature(name: str, version: str | None = None) -> Signature | None:
    """The default overload of an operator, with or without "torch_npu." or "npu::" before its name, or None."""
    plain = name.removeprefix("torch_npu.").removeprefix("npu::")
    overloads = operators(version).get(plain)
    return overloads[0] if overloads else None


def parse(schema: str, autograd_kind: str = "other") -> Signature:
    """Read one registered schema, such as `npu::npu_swiglu(Tensor input, int dim=-1) -> Tensor`.

    The grammar is that of torch's operator registration. Raises ValueError for text that is none.
    """
    match = re.fullmatch(r"(?:\w+::)?(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+)", schema.strip(), re.DOTALL)
    if match is None:
        raise ValueError(f"not an operator schema: {schema!r}")
    name, overload, inside, returned = match.groups()
    arguments: list[Argument] = []
    keyword_only = False
    for part in _split(inside):
        if part == "*":
            keyword_only = True
            continue
        declaration, equals, default = part.partition("=")
        type_, _, argument = declaration.strip().rpartition(" ")
        arguments.append(Argument(argument, type_, default.strip() if equals else None, keyword_only))
    returned = returned.strip()
    returns = tuple(_split(returned[1:-1])) if returned.startswith("(") else (returned,)
    return Signature(name, overload or "default", tuple(arguments), returns, autograd_kind, schema)


def _signature(overload: str, schema: str, autograd_kind: str) -> Signature:
    read = parse(schema, autograd_kind)
    return Signature(read.name, overload, read.arguments, read.returns, autograd_kind, schema)


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets and quotes."""
    parts: list[str] = []
    depth, quote, start = 0, "", 0
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _order(version: str) -> tuple[int, ...]:
    """A key that sorts versions: torch's three numbers, then the post-release."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    post = re.search(r"post(\d+)", version)
    found = [int(number or 0) for number in numbers.groups()] if numbers else [0, 0, 0]
    return (*found, int(post.group(1)) if post else 0)
