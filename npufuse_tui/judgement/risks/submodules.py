"""hooks, fsdp: sub-modules that the fused branch no longer calls.

Hooks on them do not fire, and a wrapper that gathers their parameters for the call does not gather them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_HOOKED = Text(
    "the repo registers hooks (line {line} of {file}), and {module} is no longer called in the fused branch: a hook on"
    " it does not fire",
    "仓库注册了 hook（{file} 第 {line} 行），而融合分支不再调用 {module}：其上的 hook 不会触发",
)
_SHARDED = Text(
    "the fused branch reads {parameter} instead of calling {module}: under FSDP or ZeRO-3 the parameter is gathered by"
    " the call, and is a shard here ({file}:{line})",
    "融合分支直接读取 {parameter} 而不调用 {module}：FSDP 或 ZeRO-3 下参数在调用时才聚合，此处只是分片"
    "（{file}:{line}）",
)
_HOOKS = re.compile(rb"\.register_(?:full_|module_)?(?:forward|backward)(?:_pre)?_hook\(")
_SHARDS = re.compile(
    rb"\bFullyShardedDataParallel\b|\bFSDP\(|\bfully_shard\(|[\"']?stage[\"']?\s*[:=]\s*3\b|\bdeepspeed\.initialize\("
)


def check(around: Around) -> Iterator[Risk]:
    if not around.replacement:
        return
    gone = [name for name in _called_modules(around) if f"{name}(" not in around.replacement]
    if not gone:
        return
    hooks = around.repo.launches(_HOOKS)
    if hooks is not None:
        message = _HOOKED.format(line=hooks.line, file=hooks.file, module=gone[0])
        yield Risk("hooks", Severity.WARNING, message, around.line)
    original = "\n".join(ast.unparse(one) for one in around.statements)
    for name in gone:
        parameter = f"{name}.weight"
        if parameter in around.replacement and parameter not in original:
            shards = around.repo.first(_SHARDS)
            if shards is not None:
                message = _SHARDED.format(parameter=parameter, module=name, file=shards.file, line=shards.line)
                yield Risk("fsdp", Severity.DANGER, message, around.line)
                return


def _called_modules(around: Around) -> list[str]:
    """`self.<name>` that the original statements call and that no method of the class is."""
    owner = around.owner
    found: dict[str, None] = {}
    for statement in around.statements:
        for node in walk(statement):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "self"
                and (owner is None or owner.method(node.func.attr) is None)
            ):
                found[f"self.{node.func.attr}"] = None
    return list(found)
