"""The arrows between the rooms point one way, and the process that draws the screen never imports torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent

WORDS = {"model", "language", "errors", "events", "rules", "schemas", "durable"}

ALLOWED: dict[str, set[str]] = {
    "knowledge": {"model", "language", "rules"},
    "dataflow": {"rules", "model", "language"},
    "rewrite": {"dataflow", *WORDS},
    "scan": {"dataflow", "rewrite", "judgement", "knowledge", *WORDS},
    "emulator": WORDS,
    "judgement": {"dataflow", "knowledge", *WORDS},
    "report": {"judgement", *WORDS},
    "workspace": {"report", "rewrite", *WORDS},
    "profiling": {"scan", "judgement", *WORDS},
}
"""Room → the rooms that its modules may import; rooms that are not named may import any but the two listeners."""

LISTENERS = {"screens", "app", "cli", "commands", "plain", "__main__"}


def modules() -> list[tuple[str, Path]]:
    found = [("knowledge", path) for path in (ROOT / "knowledge").glob("*.py")]
    found += [("screens", path) for path in (ROOT / "screens").rglob("*.py")]
    for path in (ROOT / "npufuse_tui").rglob("*.py"):
        parts = path.relative_to(ROOT / "npufuse_tui").parts
        if "runtime" in parts or "project" in parts:
            continue  # code that runs in other people's processes
        found.append((parts[0].removesuffix(".py"), path))
    return found


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] if node.module != "npufuse_tui" else [f"npufuse_tui.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("npufuse_tui.")}
    rooms.discard("__version__")
    return rooms


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_what_stands_below_it(room: str) -> None:
    for name, path in modules():
        if name == room:
            assert imported_rooms(path) - {room} <= ALLOWED[room], path


def test_the_engine_knows_no_screen() -> None:
    for name, path in modules():
        if name not in LISTENERS:
            assert not imported_rooms(path) & LISTENERS, path


def test_textual_is_imported_by_the_listeners_alone() -> None:
    for name, path in modules():
        if name in LISTENERS:
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not any(one.split(".")[0] in ("textual", "textual_plotext") for one in names), path


IMPORT_ALL = """
import importlib, pkgutil, sys
import npufuse_tui
for info in pkgutil.walk_packages(npufuse_tui.__path__, "npufuse_tui."):
    if any(part in info.name for part in (".runtime", ".project", "__main__")):
        continue
    if info.name.startswith(SKIPPED):
        continue
    importlib.import_module(info.name)
print(*sorted(name for name in ("torch", "torch_npu", "textual") if name in sys.modules))
"""

CHILD_MODULES = (
    "npufuse_tui.proof.child",
    "npufuse_tui.proof.execute",
    "npufuse_tui.proof.compare",
    "npufuse_tui.proof.namespace",
    "npufuse_tui.proof.cases",
    "npufuse_tui.proof.knowledge_cases",
    "npufuse_tui.proof.captured",
    "npufuse_tui.doctor.probe",
    "npufuse_tui.verify.capture_hook",
)
"""Modules that run in a child, next to torch."""


@pytest.mark.parametrize(
    ("skipped", "allowed"),
    [(CHILD_MODULES, {"textual"}), ((*CHILD_MODULES, *(f"npufuse_tui.{one}" for one in LISTENERS)), set())],
)
def test_no_module_of_our_process_imports_torch(skipped: tuple[str, ...], allowed: set[str]) -> None:
    code = IMPORT_ALL.replace("SKIPPED", repr(skipped))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= allowed


def test_every_package_is_in_the_wheel() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {"npufuse_tui.knowledge", "npufuse_tui.screens", "npufuse_tui"}
    for path in (ROOT / "npufuse_tui").rglob("__init__.py"):
        relative = path.parent.relative_to(ROOT)
        if "runtime" not in relative.parts and "project" not in relative.parts:
            found.add(".".join(relative.parts))
    for path in (ROOT / "screens").rglob("__init__.py"):
        found.add(".".join(("npufuse_tui", *path.parent.relative_to(ROOT).parts)))
    assert listed == found
