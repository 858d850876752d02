"""The switch in front of a fused branch where the repo has none: an environment variable, and torch_npu being there."""

from __future__ import annotations

import ast

from npufuse_tui.dataflow.source import SourceModule
from npufuse_tui.language import Text
from npufuse_tui.model import Gate, GateKind, Prelude
from npufuse_tui.rules import Rule

IMPORT_RANK = 10
"""Preludes of this rank go among the imports, at their top; the others behind them."""

TORCH_NPU = Prelude("torch_npu", "try:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None", 20)

_WHY_ENVIRONMENT = Text(
    "the repo has no switch that fits, so an environment variable decides: {name}=0 turns the fused branch off",
    "仓库中没有合适的开关，因此由环境变量决定：{name}=0 关闭融合分支",
)


def environment_gate(rule: Rule, module: SourceModule) -> Gate:
    """The gate that an environment variable switches: on unless it is 0, and only with torch_npu."""
    name = variable(rule)
    switch = Prelude(
        f"gate:{rule.id}",
        f'_{name} = torch_npu is not None and os.environ.get("{name}", "1") != "0"',
        30,
    )
    return Gate(
        GateKind.ENVIRONMENT,
        f"_{name}",
        _WHY_ENVIRONMENT.format(name=name),
        (*imported(module, "os"), switch),
    )


def variable(rule: Rule) -> str:
    return f"NPU_FUSED_{rule.id.upper()}"


def torch_npu_import(module: SourceModule) -> tuple[Prelude, ...]:
    """The guarded import of torch_npu; nothing where the file binds the name whatever happens."""
    if "torch_npu" not in module.imports:
        return (TORCH_NPU,)
    return () if _always_binds(module.tree.body) else (Prelude("torch_npu:always", TORCH_NPU.text, TORCH_NPU.rank),)


def torch_npu_may_lack(module: SourceModule) -> bool:
    """Whether the file's `torch_npu` can be None: not where it is imported without a guard."""
    return not any(_imports_it(statement) for statement in module.tree.body)


def _always_binds(body: list[ast.stmt]) -> bool:
    """Whether the statements give the name `torch_npu` a value on every path; an import that fails without a handler
    ends the file, so what comes after needs no more.
    """
    for statement in body:
        if _imports_it(statement) or _assigns_it(statement):
            return True
        if isinstance(statement, ast.If):
            arms = [statement.body, statement.orelse]
        elif isinstance(statement, ast.Try):
            ends = [one.body for one in statement.handlers if not _leaves(one.body)]
            arms = [[*statement.body, *statement.orelse], *ends]
        else:
            continue
        if all(map(_always_binds, arms)):
            return True
    return False


def _imports_it(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and any(
        (alias.asname or alias.name.split(".")[0]) == "torch_npu" for alias in statement.names
    )


def _assigns_it(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == "torch_npu" for target in targets)


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def imported(module: SourceModule, name: str) -> tuple[Prelude, ...]:
    """An import of a module of the standard library (or torch) under its own name; nothing where the file has it."""
    if module.imports.get(name) == name:
        return ()
    return (Prelude(f"import:{name}", f"import {name}", IMPORT_RANK),)
