"""What a child imports is held to what its interpreter may be: Python 3.9 and newer, torch and the standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import npufuse_tui.emulator

RUNTIME = Path(npufuse_tui.emulator.__file__).parent / "runtime"
FILES = sorted(path for path in RUNTIME.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(RUNTIME)))
def test_nothing_newer_than_python_3_9(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert "__future__" in imported or not _annotated(tree), "annotations are evaluated without the future import"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            named = {keyword.arg for keyword in node.keywords}
            assert not (node.func.id == "zip" and "strict" in named), f"zip(strict=) at line {node.lineno}"
            assert not (node.func.id == "dataclass" and named & {"slots", "kw_only"}), f"line {node.lineno}"


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(RUNTIME)))
def test_nothing_but_torch_and_the_standard_library(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            assert name.partition(".")[0] in {"torch", *sys.stdlib_module_names}, f"{name} at line {node.lineno}"


def _annotated(tree: ast.Module) -> bool:
    return any(isinstance(node, (ast.FunctionDef, ast.AnnAssign)) for node in ast.walk(tree))
