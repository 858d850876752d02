"""Code → the graph of its last function, as text."""

from __future__ import annotations

import textwrap

import npufuse_tui.dataflow.expressions  # noqa: F401  (lowering and expressions import each other)
from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.lower import FunctionGraph, lower_function
from npufuse_tui.dataflow.source import read_module, scopes

IMPORTS = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def function(code: str, name: str | None = None) -> FunctionGraph:
    module = read_module("a.py", (IMPORTS + textwrap.dedent(code)).encode())
    found = [scope for scope in scopes(module) if name is None or scope.qualname == name]
    return lower_function(module, found[-1])


def returned(code: str, name: str | None = None) -> Node:
    return function(code, name).returns[-1].node


def of(expression: str, parameters: str = "x, y, w, eps") -> str:
    """What one expression computes."""
    return repr(returned(f"def f({parameters}):\n    return {expression}\n"))
