"""A profile for the terminal, as Markdown, and as data."""

from __future__ import annotations

from npufuse_tui.judgement.cells import printable, shorten, table, width, wrap
from npufuse_tui.judgement.explain_markdown import cell, code
from npufuse_tui.language import Text
from npufuse_tui.profiling.profile import Mapping, Profile

BOUNDS = {
    "launch": Text("launch-bound", "下发受限"),
    "memory": Text("memory-bound", "访存受限"),
    "compute": Text("compute-bound", "计算受限"),
    "unknown": Text("not known", "未知"),
}
ADVICE = {
    "launch": Text("fusing saves the launches", "融合可省去多次下发"),
    "memory": Text("fusing saves the passes over memory", "融合可省去多遍读写"),
    "compute": Text("fusing gains next to nothing here", "此处融合收益甚微"),
    "unknown": Text("", ""),
}


def to_table(told: Profile, columns: int = 100, most: int = 20) -> str:
    """The hottest sequences as a table of at most `columns` cells, and what is behind each."""
    lines = [*wrap(str(_head(told)), columns), ""]
    head = _titles()
    rows = [tuple(head)] + [_row(one, told) for one in told.mappings[:most]]
    room = max(columns - sum(max(width(row[place]) for row in rows) + 2 for place in range(len(head) - 1)), 12)
    rows = [(*row[:-1], shorten(row[-1], room)) for row in rows]
    lines += table(rows, frozenset({1, 2, 3, 4}))
    if len(told.mappings) > most:
        lines.append(str(Text("... and {0} more", "…… 另有 {0} 条").format(len(told.mappings) - most)))
    if not told.mappings:
        lines.append(str(Text("No chain of small kernels was found.", "没有发现小算子链。")))
    lines.append("")
    for one in told.mappings[:most]:
        if one.candidates:
            lines += wrap(f"{one.sequence.rule}: {_candidates(one, told)}", columns, "", "  ")
    lines += [line for one in _notes(told) for line in wrap(str(one), columns, "", "  ")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def to_markdown(told: Profile) -> str:
    """All sequences, with the candidates that they map to."""
    lines = [f"## {Text('Profile', '性能采集')}: {code(told.file)}", "", str(_head(told)), ""]
    head = _titles()
    lines += [f"| {' | '.join(head)} |", "|---|---:|---:|---:|---:|---|---|"]
    lines += [f"| {' | '.join(cell(one) for one in _row(mapping, told))} |" for mapping in told.mappings]
    lines.append("")
    for one in told.mappings:
        lines.append(f"- **{cell(one.sequence.rule or '-')}** ({BOUNDS[one.sequence.bound]}): {one.sequence.evidence}")
        if one.candidates:
            lines.append(f"  - {cell(str(_candidates(one, told)))}")
    lines += ["", *(f"- {cell(str(one))}" for one in _notes(told))]
    return "\n".join(lines) + "\n"


def to_json(told: Profile) -> dict[str, object]:
    """The profile as data; times in microseconds, all of them measured by the profiler."""
    return {
        "schema": 1,
        "file": told.file,
        "kernels": told.kernels,
        "steps": told.steps,
        "duration_us": told.duration,
        "wait_us": told.wait,
        "call_stacks": told.stacks,
        "measured": {"launch_gap_us": told.launch_gap, "shortest_kernel_us": told.shortest_kernel},
        "fused": [
            {"rule": one.rule, "type": one.type, "count": one.count, "duration_us": one.duration} for one in told.fused
        ],
        "sequences": [
            {
                "rule": one.sequence.rule,
                "types": list(one.sequence.types),
                "count": one.sequence.count,
                "kernels": one.sequence.kernels,
                "duration_us": one.sequence.duration,
                "wait_us": one.sequence.wait,
                "share": one.sequence.share,
                "median_occurrence_us": one.sequence.median_occurrence,
                "bound": one.sequence.bound,
                "evidence": {"en": one.sequence.evidence.en, "zh": one.sequence.evidence.zh},
                "shapes": list(one.sequence.shapes),
                "candidates": list(one.candidates),
                "confirmed": list(one.confirmed),
            }
            for one in told.mappings
        ],
        "candidates": [
            {
                "id": one.candidate,
                "calls": one.calls,
                "device_us": one.device,
                "host_us": one.host,
                "operators": list(one.operators),
            }
            for one in told.evidence
        ],
    }


def _head(told: Profile) -> Text:
    total = told.duration + told.wait
    return Text(
        "{kernels} kernels{steps}: {busy} ms busy, {idle} ms idle ({share}).",
        "共 {kernels} 个核函数{steps}：忙 {busy} ms，空闲 {idle} ms（{share}）。",
    ).format(
        kernels=told.kernels,
        steps=Text(", steps: {0}", "，步数：{0}").format(told.steps) if told.steps else Text("", ""),
        busy=f"{told.duration / 1000:.3f}",
        idle=f"{told.wait / 1000:.3f}",
        share=f"{told.wait / total:.0%}" if total else "-",
    )


def _titles() -> tuple[str, ...]:
    return tuple(
        str(one)
        for one in (
            Text("rule", "规则"),
            Text("times", "次数"),
            Text("kernels", "核函数"),
            Text("total ms", "合计 ms"),
            Text("share", "占比"),
            Text("bound by", "瓶颈"),
            Text("sequence", "序列"),
        )
    )


def _row(one: Mapping, told: Profile) -> tuple[str, ...]:
    sequence = one.sequence
    return (
        sequence.rule or "-",
        str(sequence.count),
        str(sequence.kernels),
        f"{sequence.total / 1000:.3f}",
        f"{sequence.share:.1%}",
        str(BOUNDS[sequence.bound]),
        printable(" ".join(sequence.types)),
    )


def _candidates(one: Mapping, told: Profile) -> Text:
    named = []
    for name in (*one.confirmed, *(each for each in one.candidates if each not in one.confirmed)):
        candidate = told.candidate(name)
        if candidate is None:
            continue
        seen = next((each for each in told.evidence if each.candidate == name), None)
        measured = f", {seen.calls} x, {seen.device / 1000:.3f} ms" if seen else ""
        named.append(printable(f"{name} ({candidate.file}:{candidate.start_line}{measured})"))
    advice = ADVICE[one.sequence.bound]
    return Text("{advice}candidates: {named}{more}", "{advice}候选：{named}{more}").format(
        advice=Text("{0}; ", "{0}；").format(advice) if advice.en else advice,
        named=", ".join(named[:8]),
        more=Text(" and {0} more", " 等 {0} 个").format(len(named) - 8) if len(named) > 8 else Text("", ""),
    )


def _notes(told: Profile) -> list[Text]:
    notes = [
        Text(
            "Sequences are found by the kinds of their kernels: a hint where to look, not a proof.",
            "序列按核函数种类识别：只提示该看哪里，并非证明。",
        )
    ]
    if told.fused:
        notes.append(
            Text("Fused already: {0}.", "已融合：{0}。").format(
                ", ".join(printable(f"{one.type} x{one.count}, {one.duration / 1000:.3f} ms") for one in told.fused)
            )
        )
    if not told.stacks:
        notes.append(
            Text(
                "No call stacks: profile with with_stack=True to lead from kernels to source lines.",
                "没有调用栈：请以 with_stack=True 采集，才能从核函数追到源码行。",
            )
        )
    if told.launch_gap is not None and told.shortest_kernel is not None:
        notes.append(
            Text(
                "Measured here: {gap} us idle before a small kernel, shortest kernels {shortest} us.",
                "本次实测：小核函数前空闲 {gap} us，最短核函数 {shortest} us。",
            ).format(gap=f"{told.launch_gap:.1f}", shortest=f"{told.shortest_kernel:.1f}")
        )
    return notes
