"""generated_file, hub_kernel: an edit here that may be lost, or never reached."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_GENERATED = Text(
    "this file was generated from {origin}: the edit belongs there too, or the next generation undoes it",
    "该文件由 {origin} 生成：修改也应写入该文件，否则下次生成会丢失",
)
_HUB = Text(
    "{name} swaps another kernel in when kernels are turned on: then neither these lines nor the fused branch are run",
    "{name} 在启用 kernels 时会替换为其他内核：那时这些代码不会执行，融合分支也不会执行",
)
_ORIGIN = re.compile(rb"automatically generated from\s+(?:#\s*)?(\S+\.py)")
_SWAPPED = re.compile(r"use_kernel(?:ized)?_(?:forward|func)\w*|use_experts_implementation")


def check(around: Around) -> Iterator[Risk]:
    found = _ORIGIN.search(around.module.source[:3000])
    if found is not None:
        line = around.module.source.count(b"\n", 0, found.start()) + 1
        origin = found.group(1).decode(errors="replace")
        yield Risk("generated_file", Severity.WARNING, _GENERATED.format(origin=origin), line)
    for decorator in around.decorators():
        last = decorator.name.rpartition(".")[2]
        if _SWAPPED.fullmatch(last) and not _is_for_another(last, around):
            yield Risk("hub_kernel", Severity.INFO, _HUB.format(name=last), decorator.line)
            return


def _is_for_another(name: str, around: Around) -> bool:
    """`@use_kernelized_func(f)` on a class swaps f, not the class's own code."""
    return name == "use_kernelized_func" and around.owner is not None
