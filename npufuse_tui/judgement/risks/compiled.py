"""torch_compile, jit_script, checkpointing: what captures or replays the function that is edited."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

NO_GRAPH_MODE = frozenset({"torch_npu.npu_fusion_attention"})
"""Operators that their documentation keeps out of graph mode."""

_COMPILED = Text(
    "torch.compile captures this code: the switch and the device test are specialised when it is compiled, and a fused"
    " call can break the graph",
    "torch.compile 会捕获此代码：开关与设备判断在编译时固化，融合调用可能造成图中断",
)
_NO_GRAPH = Text(
    "torch.compile captures this code, and {api} does not support graph mode by its documentation",
    "torch.compile 会捕获此代码，而文档说明 {api} 不支持图模式",
)
_SCRIPTED = Text(
    "torch.jit.script compiles this function, and a scripted function can read neither the switch nor torch_npu: the"
    " edit would break the import",
    "该函数由 torch.jit.script 编译，脚本函数无法读取开关与 torch_npu：修改会导致导入失败",
)
_CHECKPOINTED = Text(
    "activations are recomputed in the backward here: the fused call runs twice a step, and it saves less memory than"
    " counted",
    "此处反向时会重算激活：每步融合调用执行两次，节省的显存少于估计",
)
_COMPILE_CALL = re.compile(rb"\btorch\.compile\(")


def check(around: Around) -> Iterator[Risk]:
    for decorator in around.decorators():
        last = decorator.name.rpartition(".")[2]
        if decorator.name.endswith("jit.script") or decorator.name in ("script", "jit_script"):
            yield Risk("jit_script", Severity.DANGER, _SCRIPTED, decorator.line)
            return
        if decorator.name in ("torch.compile", "compile") or last == "compile":
            yield _captured(around, decorator.line, None, Severity.WARNING)
            break
    else:
        called = around.called("torch.compile")
        if called is not None:
            yield _captured(around, called[1], None, Severity.WARNING)
        else:
            seen = around.repo.launches(_COMPILE_CALL)
            if seen is not None and seen.file != around.module.file:
                yield _captured(around, seen.line, seen.file, Severity.INFO)
    checkpointed = around.called("checkpoint.checkpoint", "checkpoint", "_gradient_checkpointing_func")
    if checkpointed is not None and "torch.load" not in checkpointed[0]:
        yield Risk("checkpointing", Severity.INFO, _CHECKPOINTED, checkpointed[1])


def _captured(around: Around, line: int, file: str | None, severity: Severity) -> Risk:
    if around.rule.api in NO_GRAPH_MODE:
        return Risk("torch_compile", Severity.WARNING, _NO_GRAPH.format(api=around.rule.api), line, file)
    return Risk("torch_compile", severity, _COMPILED, line, file)
