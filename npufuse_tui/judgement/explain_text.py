"""An explanation for the terminal: tables aligned by cells, a timeline to scale."""

from __future__ import annotations

from npufuse_tui.judgement.cells import printable, shorten, table, width, wrap
from npufuse_tui.judgement.cost import MODEL, Side
from npufuse_tui.judgement.explain import Explanation
from npufuse_tui.judgement.timeline import draw, label, scale_for
from npufuse_tui.language import Text

KINDS = {
    "compute": Text("compute", "计算"),
    "cast": Text("cast", "类型转换"),
    "layout": Text("layout", "布局"),
    "copy": Text("copy", "拷贝"),
    "control": Text("control", "控制"),
}


def to_text(told: Explanation, columns: int = 100) -> str:
    """The whole explanation in the current language, lines of at most `columns` cells."""
    lines = [
        printable(f"{told.file}:{told.start_line}-{told.end_line}  {told.qualname}  ->  {told.api}"),
        "",
        *given(told, columns),
    ]
    lines += [
        "",
        str(Text("The chain, in the order in which it runs", "算子链（按执行顺序）")),
        *chain_rows(told, columns),
    ]
    if told.stages:
        lines += ["", str(Text("Inside the fused operator", "融合算子内部"))]
        lines += [
            line for place, one in enumerate(told.stages, 1) for line in wrap(f"{place}. {one}", columns, "  ", "     ")
        ]
    lines += ["", str(heading(told)), *side_rows(told, columns)]
    if told.timed:
        title = Text("On the device, to scale ({0})", "设备时间线，按比例（{0}）").format(MODEL)
        lines += ["", str(title), *timeline_rows(told, columns)]
    if told.whole:
        lines += ["", str(whole_sentence(told))]
    lines += ["", str(Text("In the five layers of the stack", "在五层软件栈中的位置"))]
    lines += [line for one in told.stack for line in wrap(f"{one.title}: {one.text}", columns, "  ", "      ")]
    if told.timed:
        lines += ["", str(Text("Constants", "所用常数")), *constants(told, columns)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def given(told: Explanation, columns: int = 100) -> list[str]:
    """What the times are for, and what of it is assumed; nothing where no time is modelled."""
    if not told.timed:
        return []
    shape = "x".join(str(one) for one in told.shape)
    sentence = Text("For {shape} {dtype} on {device}.", "以下按 {shape} {dtype}、{device}计算。").format(
        shape=shape, dtype=told.dtype, device=told.device.title
    )
    names = {
        "shape": Text("shape", "形状"),
        "dtype": Text("dtype", "数据类型"),
        "device": Text("device", "设备"),
    }
    lines = wrap(str(sentence), columns)
    if told.assumed:
        said = Text("Assumed, neither given nor captured: {0}.", "其中为假设、并非给定或捕获：{0}。").format(
            str(Text(", ", "、")).join(str(names[one]) for one in told.assumed)
        )
        lines += wrap(str(said), columns)
    return lines


def chain_rows(told: Explanation, columns: int = 100) -> list[str]:
    """One row an operator: label, operator, kind, launches, reads, writes, bytes, line, source."""
    head = tuple(
        str(one)
        for one in (
            Text("#", "#"),
            Text("operator", "算子"),
            Text("kind", "类别"),
            Text("launches", "下发"),
            Text("reads", "读"),
            Text("writes", "写"),
            Text("bytes", "字节"),
            Text("line", "行"),
            Text("code", "代码"),
        )
    )
    rows = [head] + [
        (
            label(place),
            one.step.op,
            str(KINDS.get(one.step.kind, one.step.kind)),
            str(one.step.launches),
            str(one.step.reads),
            str(one.step.writes),
            size(one.bytes) if told.timed else "-",
            str(one.step.line),
            printable(" ".join(one.step.source.split())),
        )
        for place, one in enumerate(told.costs)
    ]
    left = max(columns - 4 - _rest(rows), 12)
    rows = [(*row[:-1], shorten(row[-1], left)) for row in rows]
    return [f"  {one}" for one in table(rows, frozenset({3, 4, 5, 6, 7}))]


def _rest(rows: list[tuple[str, ...]]) -> int:
    return sum(max(width(row[place]) for row in rows) + 2 for place in range(len(rows[0]) - 1))


def heading(told: Explanation) -> Text:
    """The title of the table: it says what its numbers are."""
    basis = MODEL if told.timed else Text("counted from the graph", "由数据流图计数")
    return Text("Before and after ({0})", "替换前后（{0}）").format(basis)


def comparison(told: Explanation) -> list[tuple[Text, str, str, str]]:
    """The before/after table: what, before, after, how many times less."""
    before, after = told.model.before, told.model.after

    def ratio(one: float, other: float) -> str:
        return f"{one / other:.1f}x" if other else "-"

    counted = [
        (
            Text("launches", "下发次数"),
            str(before.launches),
            str(after.launches),
            ratio(before.launches, after.launches),
        ),
        (
            Text("memory passes", "内存读写遍数"),
            str(before.memory_passes),
            str(after.memory_passes),
            ratio(before.memory_passes, after.memory_passes),
        ),
    ]
    if not told.timed:
        return counted
    return [
        *counted,
        (Text("bytes moved", "搬运字节"), size(before.bytes), size(after.bytes), ratio(before.bytes, after.bytes)),
        (
            Text("kernels", "核函数时间"),
            time(before.kernels),
            time(after.kernels),
            ratio(before.kernels, after.kernels),
        ),
        (Text("idle gaps", "空隙"), gaps(before), gaps(after), ""),
        (
            Text("host too slow", "host 跟不上时"),
            time(before.total),
            time(after.total),
            ratio(before.total, after.total),
        ),
    ]


def side_rows(told: Explanation, columns: int = 100) -> list[str]:
    """The before/after table as lines, and what the replacement adds of its own."""
    rows: list[tuple[str, ...]] = [("", str(Text("before", "替换前")), str(Text("after", "替换后")), "")]
    rows += [(str(title), *values) for title, *values in comparison(told)]
    lines = [f"  {one}" for one in table(rows, frozenset({1, 2, 3}))]
    return lines + [line for one in remarks(told) for line in wrap(str(one), columns, "  ")]


def remarks(told: Explanation) -> list[Text]:
    """What must be known to read the table."""
    found: list[Text] = []
    if told.model.after.launches > 1:
        found.append(
            Text(
                "After counts every launch of the replacement: fused calls and what it adds, such as a concat.",
                "替换后计入替换代码的每次下发：融合算子的调用，以及另加的操作（例如拼接）。",
            )
        )
    if not told.timed:
        found.append(
            Text(
                "No time is modelled: a matrix product's time is not that of its bytes. Measure it.",
                "不给出时间：链中含矩阵乘，其耗时不取决于字节数，应以实测为准。",
            )
        )
    return found


def timeline_rows(told: Explanation, columns: int = 100) -> list[str]:
    """Both sides on one scale: labels are the rows of the chain, F the fused operator, dots idle time."""
    titles = (str(Text("before", "替换前")), str(Text("after", "替换后")))
    room = max(columns - 4 - max(width(one) for one in titles), 20)
    before, after = told.model.before, told.model.after
    scale = scale_for(max(before.total, after.total), room)
    rows = (
        draw([one.seconds for one in told.costs if one.step.launches], told.device.launch_gap.value, scale),
        draw(
            [after.kernels / max(after.launches, 1)] * after.launches,
            told.device.launch_gap.value,
            scale,
            "F" * after.launches,
        ),
    )
    lines = [f"  {one}" for one in table([(titles[0], rows[0]), (titles[1], rows[1])])]
    cell = (
        Text("one cell is {0}; dots are idle", "一格为 {0}；点表示空闲").format(time(1 / scale))
        if scale
        else Text("", "")
    )
    return [*lines, f"  {cell}"]


def whole_sentence(told: Explanation) -> Text:
    """The count over the whole model, such as 57 x 6 launches = 342 -> 57."""
    whole = told.whole
    if whole is None:
        return Text("", "")
    return Text(
        "Whole model: {runs} runs a step x {launches} launches = {before} -> {after}",
        "全模型：每步 {runs} 次 x {launches} 次下发 = {before} -> {after}",
    ).format(runs=whole.runs, launches=whole.launches_before, before=whole.total_before, after=whole.total_after)


def constants(told: Explanation, columns: int = 100) -> list[str]:
    """Every constant of the model and where it is from."""
    lines: list[str] = []
    for title, constant, shown in (
        (Text("peak bandwidth", "峰值带宽"), told.device.bandwidth, f"{told.device.bandwidth.value / 1e9:g} GB/s"),
        (Text("share reached", "可达比例"), told.device.reached, f"{told.device.reached.value:g}"),
        (Text("shortest kernel", "最短核函数"), told.device.shortest, time(told.device.shortest.value)),
        (Text("launch gap", "下发空隙"), told.device.launch_gap, time(told.device.launch_gap.value)),
    ):
        lines += wrap(f"{title}: {shown} ({constant.source})", columns, "  ", "      ")
    return lines


def size(count: int) -> str:
    """Bytes in a person's units (powers of 1024)."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"


def time(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.1f} us"


def gaps(side: Side) -> str:
    return f"{side.gap_count} x {time(side.gaps / side.gap_count)}" if side.gap_count else "0"
