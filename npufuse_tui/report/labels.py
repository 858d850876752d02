"""The words for the states and kinds of the domain, as every report says them."""

from __future__ import annotations

from npufuse_tui.language import Text, same
from npufuse_tui.model import (
    Backend,
    Baseline,
    Check,
    Conclusion,
    Decision,
    GateKind,
    LossResult,
    Priority,
    Severity,
    SpeedResult,
    Stage,
    TaskState,
    Verdict,
)

VERDICT = {
    Verdict.RECOMMENDED: Text("recommended", "推荐"),
    Verdict.CAUTION: Text("caution", "需谨慎"),
    Verdict.REFUSED: Text("refused", "不替换"),
}
PRIORITY = {
    Priority.HIGH: Text("high", "高"),
    Priority.MEDIUM: Text("medium", "中"),
    Priority.LOW: Text("low", "低"),
}
SEVERITY = {
    Severity.INFO: Text("info", "提示"),
    Severity.WARNING: Text("warning", "警告"),
    Severity.DANGER: Text("danger", "危险"),
}
GATE = {
    GateKind.EXISTING: Text("a switch that the repo already has", "仓库已有的开关"),
    GateKind.ARGUMENT: Text("a new argument", "新增参数"),
    GateKind.ENVIRONMENT: Text("an environment variable", "环境变量"),
    GateKind.AVAILABILITY: Text("availability alone", "仅判断可用性"),
}
STATE = {
    TaskState.PENDING: Text("pending", "等待中"),
    TaskState.OP_CHECK: Text("operator check running", "算子校验中"),
    TaskState.OP_FAILED: Text("operator check failed", "算子校验未通过"),
    TaskState.LOSS_CHECK: Text("loss check running", "loss 校验中"),
    TaskState.LOSS_FAILED: Text("loss check failed", "loss 校验未通过"),
    TaskState.SPEED_CHECK: Text("speed check running", "性能校验中"),
    TaskState.CONCLUDED: Text("concluded", "已有结论"),
    TaskState.BLOCKED: Text("blocked", "受阻"),
    TaskState.INTERRUPTED: Text("interrupted", "已中断"),
}
CONCLUSION = {
    Conclusion.ADOPT: Text("adopt", "采纳"),
    Conclusion.REJECT: Text("reject", "不采纳"),
    Conclusion.BLOCKED: Text("blocked", "受阻"),
}
DECISION = {
    Decision.APPROVED: Text("approved", "已批准"),
    Decision.REJECTED: Text("rejected", "已拒绝"),
}
STAGE = {
    Stage.SCAN: Text("scan", "扫描"),
    Stage.CANDIDATES: Text("candidates", "候选"),
    Stage.CHECKPOINT: Text("checkpoint", "检查点"),
    Stage.APPLY: Text("apply", "修改"),
    Stage.VERIFY: Text("verify", "验证"),
    Stage.REPORT: Text("report", "报告"),
}
BACKEND = {
    Backend.NPU: Text("NPU", "NPU"),
    Backend.EMULATED: Text("CPU emulation (no NPU)", "CPU 仿真（无 NPU）"),
}
_STATUS = {
    "passed": Text("passed", "通过"),
    "failed": Text("failed", "未通过"),
    "skipped": Text("not run", "未运行"),
    "pending": Text("pending", "等待中"),
    "running": Text("running", "运行中"),
}
_ENDED = {
    "finished": Text("finished", "正常结束"),
    "failed": Text("failed to run", "运行失败"),
    "timed out": Text("timed out", "超时"),
    "stopped early": Text("stopped early", "提前停止"),
    "cancelled": Text("cancelled", "已取消"),
}
_SPEED = {
    "faster": Text("faster", "更快"),
    "slower": Text("slower", "更慢"),
    "no difference shown": Text("no difference shown", "未显示出差异"),
    "not measured": Text("not measured", "未测量"),
}
_FAMILY_OF_LABEL = {
    "baseline": Text("baseline", "基线"),
    "candidate": Text("candidate", "候选"),
    "capture": Text("capture", "采集"),
}


def status(word: str) -> Text:
    return _STATUS.get(word, same(word))


def ended(word: str) -> Text:
    return _ENDED.get(word, same(word))


def speed_conclusion(word: str) -> Text:
    return _SPEED.get(word, same(word))


def run_label(label: str) -> Text:
    """ "baseline-2" → "baseline 2" / "基线 2"."""
    family, _, number = label.partition("-")
    if family not in _FAMILY_OF_LABEL:
        return same(label)
    word = _FAMILY_OF_LABEL[family]
    return Text(f"{word.en} {number}".strip(), f"{word.zh} {number}".strip())


def backend(kind: Backend | None) -> Text:
    return BACKEND[kind] if kind else Text("not recorded", "未记录")


def emulated(kind: Backend | None) -> bool:
    return kind is Backend.EMULATED


def check_line(check: Check | None) -> Text:
    """One line about an executable proof: what was measured and on what, or why nothing was."""
    if check is None:
        return Text("not run", "未运行")
    if check.status == "skipped":
        return Text("not run: {0}", "未运行：{0}").format(check.reason_text or Text("no reason recorded", "未记录原因"))
    said = Text("{0}, {1} cases on {2}", "{0}，共 {1} 例，运行于 {2}").format(
        status(check.status), check.cases, backend(check.backend)
    )
    numbers = [
        (Text("lowest cosine {0}", "最低余弦 {0}"), check.worst_cosine),
        (Text("largest |Δ| {0}", "最大 |Δ| {0}"), check.worst_abs_diff),
        (Text("lowest gradient cosine {0}", "梯度最低余弦 {0}"), check.worst_grad_cosine),
    ]
    for text, value in numbers:
        if value is not None:
            said = join(said, text.format(cosine(value) if "cosine" in text.en else scientific(value)))
    if check.dtype_equal is False:
        said = join(said, Text("output dtype differs", "输出 dtype 不一致"))
    if check.reason_text:
        said = join(said, check.reason_text, "; ", "；")
    return said


def loss_line(loss: LossResult | None) -> Text:
    """One line about a loss check."""
    if loss is None:
        return Text("not run", "未运行")
    word = {True: status("passed"), False: status("failed"), None: Text("cannot be judged", "无法判定")}[loss.passed]
    said = Text("{0}, {1} steps", "{0}，{1} 步").format(word, loss.steps)
    if loss.max_rel_diff is not None:
        said = join(
            said,
            Text("largest relative difference {0} (limit {1})", "最大相对差 {0}（限值 {1}）").format(
                percent(loss.max_rel_diff), percent(loss.limit)
            ),
        )
    if loss.noise_max_rel_diff is not None:
        said = join(
            said,
            Text("the baseline differs from itself by {0}", "基线自身两次运行相差 {0}").format(
                percent(loss.noise_max_rel_diff)
            ),
        )
    if loss.first_fail_step is not None:
        said = join(said, Text("first failing step {0}", "首个超限步 {0}").format(loss.first_fail_step))
    return said


def speed_line(speed: SpeedResult | None, kind: Backend | None) -> Text:
    """One line about a speed check. Under emulation it says so, whatever the record holds."""
    if emulated(kind):
        return Text("not measured: emulated", "未测量：CPU 仿真")
    if speed is None:
        return Text("not measured: the speed check did not run", "未测量：性能校验未运行")
    if speed.conclusion == "not measured":
        return Text("not measured: {0}", "未测量：{0}").format(speed_reason(speed))
    said = speed_conclusion(speed.conclusion)
    if speed.baseline_median_s is not None and speed.fused_median_s is not None:
        said = join(
            said,
            Text("median step time {0} → {1}", "单步耗时中位数 {0} → {1}").format(
                seconds(speed.baseline_median_s), seconds(speed.fused_median_s)
            ),
        )
    if speed.ratio is not None:
        said = join(said, Text("ratio {0}", "比值 {0}").format(f"{speed.ratio:.4f}"))
    if speed.ci_low is not None and speed.ci_high is not None:
        said = join(
            said,
            Text("confidence interval {0} to {1}", "置信区间 {0} 至 {1}").format(
                f"{speed.ci_low:.4f}", f"{speed.ci_high:.4f}"
            ),
        )
    return said


def speed_reason(speed: SpeedResult) -> Text:
    """The reason without a "not measured:" in front, which some reasons carry already."""
    en, zh = speed.reason
    for prefix in ("not measured:", "not measured："):
        en = en[len(prefix) :].lstrip() if en.lower().startswith(prefix) else en
    for prefix in ("未测量：", "未测量:"):
        zh = zh.removeprefix(prefix).lstrip()
    return Text(en, zh)


def baseline_line(baseline: Baseline | None) -> Text:
    if baseline is None:
        return Text("not run", "未运行")
    said = Text("{0}, {1} steps, {2} runs", "{0}，{1} 步，{2} 次运行").format(
        status(baseline.status), baseline.steps, sum(run.label.startswith("baseline") for run in baseline.runs)
    )
    if baseline.noise_max_rel_diff is not None:
        said = join(
            said,
            Text("differs from itself by {0} at most", "两次运行最多相差 {0}").format(
                percent(baseline.noise_max_rel_diff)
            ),
        )
    if baseline.reason:
        said = join(said, baseline.reason, "; ", "；")
    return said


def join(first: Text, second: Text, en: str = ", ", zh: str = "，") -> Text:
    return Text(first.en + en + second.en, first.zh + zh + second.zh)


def percent(value: float) -> str:
    """A share as a percentage with two significant places: 0.00031 → "0.031%"."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    return "0%" if value == 0 else f"{float(f'{value * 100:.2g}'):.10g}%"


def cosine(value: float) -> str:
    """Digits enough to see how far from 1 it is, and never rounded up to a 1 that it is not."""
    return (
        "1"
        if value == 1
        else (f"{value:.7f}" if abs(1 - value) >= 5e-8 else f"1 − {1 - value:.1e}" if value < 1 else f"{value:.9f}")
    )


def scientific(value: float) -> str:
    return "0" if value == 0 else f"{value:.2e}"


def seconds(value: float) -> str:
    """A duration with its unit, four significant digits."""
    if value != value:
        return "nan"
    if abs(value) >= 120:
        return f"{value / 60:.1f} min"
    return f"{value:.4g} s" if abs(value) >= 1 else f"{value * 1000:.4g} ms"
