"""An explanation as Markdown with a Mermaid drawing, and as data. What comes from the repo is escaped."""

from __future__ import annotations

import math
import re

from npufuse_tui.judgement.cells import printable
from npufuse_tui.judgement.cost import Side
from npufuse_tui.judgement.devices import Constant
from npufuse_tui.judgement.explain import Explanation
from npufuse_tui.judgement.explain_text import (
    KINDS,
    comparison,
    constants,
    given,
    heading,
    remarks,
    size,
    whole_sentence,
)
from npufuse_tui.judgement.timeline import label
from npufuse_tui.language import Text


def to_markdown(told: Explanation) -> str:
    """The whole explanation in the current language."""
    place = code(f"{told.file}:{told.start_line}-{told.end_line}")
    lines = [f"## {code(told.qualname)} → {code(told.api)}", "", place, "", " ".join(given(told, 10_000)), ""]
    lines += [f"### {Text('The chain, in the order in which it runs', '算子链（按执行顺序）')}", ""]
    titles = Text(
        "| # | operator | kind | launches | reads | writes | bytes | line | code |",
        "| # | 算子 | 类别 | 下发 | 读 | 写 | 字节 | 行 | 代码 |",
    )
    lines += [str(titles), "|---|---|---|---:|---:|---:|---:|---:|---|"]
    for number, one in enumerate(told.costs):
        step = one.step
        moved = size(one.bytes) if told.timed else "-"
        lines.append(
            f"| {label(number)} | {cell(step.op)} | {KINDS.get(step.kind, step.kind)} | {step.launches} | "
            f"{step.reads} | {step.writes} | {moved} | {step.line} | {code(step.source)} |"
        )
    lines += ["", "```mermaid", mermaid(told), "```", ""]
    if told.stages:
        lines += [f"### {Text('Inside the fused operator', '融合算子内部')}", ""]
        lines += [f"{number}. {one}" for number, one in enumerate(told.stages, 1)] + [""]
    lines += [
        f"### {heading(told)}",
        "",
        *_sides(told),
        "",
    ]
    if told.whole:
        lines += [str(whole_sentence(told)), ""]
    lines += [f"### {Text('In the five layers of the stack', '在五层软件栈中的位置')}", ""]
    lines += [f"- **{one.title}**: {one.text}" for one in told.stack]
    if told.timed:
        found = (f"- {one.strip()}" for one in constants(told, 10_000))
        lines += ["", f"### {Text('Constants', '所用常数')}", "", *found]
    return "\n".join(lines) + "\n"


def _sides(told: Explanation) -> list[str]:
    head = Text("| | before | after | |", "| | 替换前 | 替换后 | |")
    rows = (f"| {title} | {' | '.join(values)} |" for title, *values in comparison(told))
    return [str(head), "|---|---:|---:|---:|", *rows, *(line for one in remarks(told) for line in ("", str(one)))]


def mermaid(told: Explanation) -> str:
    """The chain and what takes its place, as a Mermaid flowchart."""
    memory = Text("device memory", "设备内存")
    lines = ["flowchart LR", f'  subgraph before["{Text("before", "替换前")}"]', "    direction LR"]
    names = []
    for place, one in enumerate(told.costs):
        names.append(f"s{place}")
        passes = f"{one.step.reads}r {one.step.writes}w"
        lines.append(f'    s{place}["{label(place)} {_quoted(one.step.op)}<br/>{passes}"]')
    if len(names) > 1:
        lines.append(f"    {' --> '.join(names)}")
    lines += ["  end", f'  subgraph after["{Text("after", "替换后")}"]', "    direction LR"]
    lines += [f'    m0[("{memory}")] --> f["{_quoted(told.api)}"] --> m1[("{memory}")]', "  end"]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Text inside a Mermaid label: its own entity codes for whatever could end the label or be taken as markup."""
    return re.sub(r"[^\w\s.,:+*/=()\[\]-]", lambda one: f"#{ord(one[0])};", " ".join(text.split()))


def code(text: str) -> str:
    """A code span that nothing inside can end, fit for a table cell."""
    plain = printable(" ".join(text.split())).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall(r"`+", plain)), default=0) + 1)
    space = " " if plain.startswith("`") or plain.endswith("`") or not plain else ""
    return f"{fence}{space}{plain}{space}{fence}"


def cell(text: str) -> str:
    """Plain text in a table cell, with Markdown's and HTML's own characters escaped."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&])", r"\\\1", " ".join(text.split()))


def _constant(one: Constant) -> dict[str, object]:
    return {"value": one.value, "source": {"en": one.source.en, "zh": one.source.zh}}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def to_json(told: Explanation) -> dict[str, object]:
    """The explanation as data; times in seconds, each of them from the model."""

    def side(one: Side, timed: bool) -> dict[str, object]:
        return {
            "launches": one.launches,
            "memory_passes": one.memory_passes,
            "bytes": one.bytes if timed else None,
            "kernel_seconds": one.kernels if timed else None,
            "gaps": one.gap_count,
            "gap_seconds": one.gaps,
            "total_seconds": one.total if timed else None,
        }

    whole = told.whole
    return {
        "schema": 1,
        "id": told.candidate,
        "rule": told.rule,
        "api": told.api,
        "file": told.file,
        "qualname": told.qualname,
        "start_line": told.start_line,
        "end_line": told.end_line,
        "chain": [
            {
                "op": one.step.op,
                "kind": one.step.kind,
                "source": one.step.source,
                "line": one.step.line,
                "launches": one.step.launches,
                "reads": one.step.reads,
                "writes": one.step.writes,
                "bytes_read": one.bytes_read if told.timed else None,
                "bytes_written": one.bytes_written if told.timed else None,
                "seconds": one.seconds if told.timed else None,
            }
            for one in told.costs
        ],
        "stages": [{"en": one.en, "zh": one.zh} for one in told.stages],
        "model": {
            "is_measurement": False,
            "shape": list(told.shape),
            "dtype": told.dtype,
            "device": told.device.id,
            "assumed": list(told.assumed),
            "basis": told.basis,
            "constants": {
                "bandwidth_bytes_per_second": _constant(told.device.bandwidth),
                "share_reached": _constant(told.device.reached),
                "shortest_kernel_seconds": _constant(told.device.shortest),
                "launch_gap_seconds": _constant(told.device.launch_gap),
            },
            "before": side(told.model.before, told.timed),
            "after": side(told.model.after, told.timed),
            "timed": told.timed,
            "ratio_host_keeps_up": _number(told.model.low) if told.timed else None,
            "ratio_host_too_slow": _number(told.model.high) if told.timed else None,
        },
        "whole_model": {
            "instances": whole.instances,
            "calls_per_step": whole.calls_per_step,
            "launches_before": whole.total_before,
            "launches_after": whole.total_after,
        }
        if whole
        else None,
        "stack": [{"layer": one.layer, "en": one.text.en, "zh": one.text.zh} for one in told.stack],
    }
