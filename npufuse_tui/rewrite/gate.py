"""The switch in front of a fused branch, where the repo has none: an environment variable, and torch_npu being there."""

from __future__ import annotations

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


def environment_gate(rule: Rule) -> Gate:
    """The gate that an environment variable switches: on unless it is 0, and only with torch_npu."""
    name = variable(rule)
    return Gate(GateKind.ENVIRONMENT, f"_{name}", _WHY_ENVIRONMENT.format(name=name))


def variable(rule: Rule) -> str:
    return f"NPU_FUSED_{rule.id.upper()}"


def environment_preludes(rule: Rule, module: SourceModule) -> tuple[Prelude, ...]:
    """What the environment gate needs at the top of the file."""
    name = variable(rule)
    switch = Prelude(
        f"gate:{rule.id}",
        f'_{name} = torch_npu is not None and os.environ.get("{name}", "1") != "0"',
        30,
    )
    return (*imported(module, "os"), *torch_npu_import(module), switch)


def torch_npu_import(module: SourceModule) -> tuple[Prelude, ...]:
    """The guarded import of torch_npu; nothing where the file has one."""
    return () if "torch_npu" in module.imports else (TORCH_NPU,)


def imported(module: SourceModule, name: str) -> tuple[Prelude, ...]:
    """An import of a module of the standard library (or torch) under its own name; nothing where the file has it."""
    if module.imports.get(name) == name:
        return ()
    return (Prelude(f"import:{name}", f"import {name}", IMPORT_RANK),)
