#!/usr/bin/env python3
"""Write a schema file of `knowledge/schemas/` from a wheel of torch_npu, without loading it.

    python tools/schemas_from_wheel.py torch_npu-2.14.0-….whl [--output FOLDER]

torch_npu registers its operators with texts that stand in its library as they were written; they are read from there
and put into the form that torch prints (torch must be installed for that; no NPU and no CANN is needed). What backward
does cannot be read so: for an operator that another version knows it is taken from there, for a new one it is
estimated from whether the library has an autograd node of its name. Operators that are registered without a text
(a handful, none of them a fused one) are not found.

A version that registers the same as a recorded one is written as `{"same_as": …}`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

LIBRARY = "torch_npu/lib/libtorch_npu.so"
LITERAL = re.compile(
    rb"\0(?:npu::)?([A-Za-z_]\w*(?:\.\w+)?)(\([^\0()]*(?:\([^\0()]*\)[^\0()]*)*\) ?-> ?[^\0]{1,400})(?=\0)"
)
LONG_FLOAT = re.compile(r"\d(?:\.\d+)?e[-+]\d+|\d\.\d{12,}")
RECORDED = Path(__file__).resolve().parent.parent / "knowledge" / "schemas"
Schemas = dict[str, dict[str, dict[str, str]]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="a wheel of torch_npu, or its libtorch_npu.so with --version")
    parser.add_argument("--version", help="the version to write; by default the wheel's")
    parser.add_argument("--output", type=Path, default=RECORDED, help="the folder to write to")
    given = parser.parse_args(arguments)
    version = given.version or version_of(given.wheel)
    if version is None:
        parser.error(f"{given.wheel.name} does not say its version; give it with --version")
    data = library(given.wheel)
    found = schemas(data, recorded_kinds(given.output))
    if not found:
        parser.error(f"no operator is registered in {given.wheel}; is it torch_npu's library?")
    same = next((name for name, other in recorded(given.output) if other == found and name != version), None)
    target = given.output / f"{version}.json"
    target.write_text(json.dumps({"same_as": same}) + "\n" if same else written(found), encoding="utf-8")
    print(f"{target}: {len(found)} operators" + (f", the same as {same}" if same else ""), file=sys.stderr)
    return 0


def version_of(wheel: Path) -> str | None:
    match = re.match(r"torch_npu-([^-]+)-", wheel.name)
    return match.group(1) if match else None


def library(path: Path) -> bytes:
    """The bytes of the library: of a wheel, or of the file itself."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(LIBRARY)
    return path.read_bytes()


def schemas(data: bytes, kinds: dict[tuple[str, str], str]) -> Schemas:
    """{operator: {overload: {"schema", "autograd_kind"}}} of the registrations in a library."""
    found: Schemas = {}
    for name, overload, schema in sorted(set(registrations(data))):
        kind = kinds.get((name, overload)) or estimated_kind(data, name)
        found.setdefault(name, {})[overload] = {"schema": schema, "autograd_kind": kind}
    return found


def registrations(data: bytes) -> Iterator[tuple[str, str, str]]:
    """(operator, overload, schema as torch prints it). Texts that torch does not read as a schema are none."""
    import torch

    for match in LITERAL.finditer(data):
        text = (match.group(1) + match.group(2)).decode("utf-8", "replace")
        try:
            schema = torch._C.parse_schema(f"npu::{text}")
        except RuntimeError:
            continue
        printed = LONG_FLOAT.sub(lambda number: repr(float(number.group())), str(schema).removeprefix("npu::"))
        yield schema.name.removeprefix("npu::"), schema.overload_name or "default", printed


def estimated_kind(data: bytes, name: str) -> str:
    node = "".join(part.capitalize() for part in name.split("_") if part) + "Backward"
    return "formula" if node.encode() in data else "torch_default_fallback"


def recorded(folder: Path) -> Iterator[tuple[str, Schemas]]:
    """The versions that are there with their own content, the newest last."""
    for path in sorted(folder.glob("*.json"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)]):
        entries = json.loads(path.read_text(encoding="utf-8"))
        if "same_as" not in entries:
            yield path.stem, entries


def recorded_kinds(folder: Path) -> dict[tuple[str, str], str]:
    kinds: dict[tuple[str, str], str] = {}
    for _, entries in recorded(folder):
        for name, overloads in entries.items():
            for overload, entry in overloads.items():
                kinds[name, overload] = entry["autograd_kind"]
    return kinds


def written(found: Schemas) -> str:
    """One line an operator, so that versions can be compared by line."""
    lines = (f" {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
