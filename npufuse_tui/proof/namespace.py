"""The namespace that a plan's code runs in, and the functions compiled in it. Runs in the child."""

from __future__ import annotations
import __future__ as future_features

import ast
import functools
import importlib
import math
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from npufuse_tui.proof.stubs import Everywhere, HeldNorm, Identity, Returns, Stub

_POSTPONED = future_features.annotations.compiler_flag
_OPTIONAL = ("numpy", "einops")


class CannotCompile(Exception):
    """The source of a plan is no function."""


def fresh() -> dict[str, Any]:
    """A new namespace with what model code usually imports, under the names by which it usually does."""
    torch = importlib.import_module("torch")
    names: dict[str, Any] = {"__name__": "region", "__builtins__": __builtins__}
    names.update({name: getattr(typing, name) for name in typing.__all__})
    names.update(
        torch=torch,
        nn=torch.nn,
        F=torch.nn.functional,
        Tensor=torch.Tensor,
        math=math,
        functools=functools,
        partial=functools.partial,
        dataclass=dataclass,
        field=field,
        SimpleNamespace=types.SimpleNamespace,
        Stub=Stub,
        Returns=Returns,
        Everywhere=Everywhere,
        HeldNorm=HeldNorm,
        Identity=Identity,
        ACT2FN={"silu": torch.nn.functional.silu, "swish": torch.nn.functional.silu},
        torch_npu=_module("torch_npu"),
    )
    for name in _OPTIONAL:
        module = _module(name)
        if module is not None:
            names[name] = module
    if "numpy" in names:
        names["np"] = names["numpy"]
    if "einops" in names:
        names.update({name: getattr(names["einops"], name) for name in ("rearrange", "repeat", "reduce", "einsum")})
    return names


@functools.cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def run_source(source: str, names: dict[str, Any], label: str) -> None:
    """Execute `source` in `names`, annotations postponed; `label` names it in tracebacks.

    Compiled code is exactly the plan's own: the region cut out of the person's file, which they asked to have run.
    """
    code = compile(source, f"<{label}>", "exec", flags=_POSTPONED, dont_inherit=True)
    exec(code, names)  # noqa: S102


def function_of(setup: str, source: str, label: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The last function that `source` defines, in a namespace of its own that `setup` ran in before.

    Raises CannotCompile when `source` defines none, and whatever the code itself raises.
    """
    names = fresh()
    run_source(setup, names, "setup")
    defined = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    if not defined:
        raise CannotCompile(f"the {label} code of the plan defines no function")
    run_source(source, names, label)
    function: Callable[..., Any] = names[defined[-1]]
    return function, names


def evaluate(expression: str, names: dict[str, Any], inputs: dict[str, Any]) -> Any:
    """The value of one parameter: `expression` in the namespace plus the example's inputs."""
    code = compile(expression.strip(), "<value>", "eval", flags=_POSTPONED, dont_inherit=True)
    return eval(code, {**names, **inputs})  # noqa: S307
