"""What the doctor found, as data, JSON and text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npufuse_tui.judgement.cells import pad, wrap
from npufuse_tui.language import Text

LAYERS = ("framework", "operators", "graph", "runtime", "driver")

TITLES = {
    "framework": Text("Framework adaptor (torch, torch_npu)", "框架适配层（torch、torch_npu）"),
    "operators": Text("Operator library", "算子库"),
    "graph": Text("Graph engine and fusion", "图引擎与融合"),
    "runtime": Text("Runtime", "运行时"),
    "driver": Text("Driver and device", "驱动与设备"),
}


class Status(str, Enum):
    """`passed` only when every test of the layer ran and passed."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    NOT_RUN = "not_run"


_STATUS = {
    Status.PASSED: Text("passed", "通过"),
    Status.FAILED: Text("failed", "失败"),
    Status.MISSING: Text("missing", "缺失"),
    Status.NOT_RUN: Text("not run", "未运行"),
}
_MARKS = {Status.PASSED: "✓", Status.FAILED: "✗", Status.MISSING: "-", Status.NOT_RUN: "?"}
_ASCII_MARKS = {Status.PASSED: "ok", Status.FAILED: "x", Status.MISSING: "-", Status.NOT_RUN: "?"}


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: what was seen, and how to mend what is not well (None when nothing is to be done)."""

    id: str
    status: Status
    evidence: tuple[Text, ...]
    fix: Text | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The five layers in order, and what of npufuse works here.

    `usable` maps "scan" to True and "check" and "verify" to "npu", "emulated" or False.
    """

    layers: tuple[Layer, ...]
    usable: dict[str, bool | str]

    def layer(self, name: str) -> Layer:
        return next(one for one in self.layers if one.id == name)

    def to_json(self, language: str | None = None) -> dict[str, object]:
        """The contract's document. Sentences are in `language`, or in the current one."""

        def said(text: Text) -> str:
            return text.in_language(language) if language else str(text)

        return {
            "schema": 1,
            "layers": [
                {
                    "id": one.id,
                    "status": one.status.value,
                    "evidence": [said(text) for text in one.evidence],
                    "fix": said(one.fix) if one.fix else None,
                }
                for one in self.layers
            ],
            "usable": dict(self.usable),
        }

    def to_text(self, columns: int = 100, ascii_only: bool = False) -> str:
        """The layers for a terminal, and what works here."""
        marks = _ASCII_MARKS if ascii_only else _MARKS
        lines: list[str] = []
        for place, one in enumerate(self.layers, 1):
            lines.append(f"{place}. {pad(marks[one.status], 3)}{TITLES[one.id]}: {_STATUS[one.status]}")
            for text in one.evidence:
                lines += wrap(str(text), columns, "     ", "     ")
            if one.fix:
                lines += wrap(str(one.fix), columns, "     -> ", "        ")
            lines.append("")
        lines.append(str(Text("What works here:", "在此环境可用：")))
        lines += [f"  {pad(name, 8)}{_usable(how)}" for name, how in self.usable.items()]
        return "\n".join(lines) + "\n"


def _usable(how: bool | str) -> Text:
    if how == "npu":
        return Text("on the NPU", "在 NPU 上")
    if how == "emulated":
        return Text("emulated on the CPU (numerics only, no speed)", "在 CPU 上仿真（只验数值，不测速度）")
    return Text("yes", "可用") if how else Text("no", "不可用")
