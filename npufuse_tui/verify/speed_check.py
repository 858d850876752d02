"""The speed check: step times of both, without the warm-up, and a confidence interval of their ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from npufuse_tui.language import Text
from npufuse_tui.model import Metric, SpeedResult

MIN_GAIN = 0.01
_LEAST = 8  # steady steps of each side that a statement needs
_RESAMPLES = 4999
EMULATED = Text("not measured: emulated on the CPU", "未测量：在 CPU 上仿真")


def warmup_steps(times: Sequence[float | None]) -> int:
    """How many steps at the start are warm-up, found by a change-point in the logarithm of the times.

    Splits the series where the squared deviation from the means of both parts is least; the first part is warm-up if it
    lies in the first half and is slower by a tenth. One step always is: it compiles and allocates.
    """
    logs = [math.log(one) if one is not None and one > 0 else math.nan for one in times]
    known = [one for one in logs if not math.isnan(one)]
    least = 1 if times else 0
    if len(known) < 6:
        return min(least, len(times))
    filled = [known[0] if math.isnan(one) else one for one in logs]
    best, best_cost = least, math.inf
    for split in range(1, len(filled) // 2 + 1):
        cost = _deviation(filled[:split]) + _deviation(filled[split:])
        if cost < best_cost:
            best, best_cost = split, cost
    slower = median(filled[:best]) - median(filled[best:])
    return max(least, best) if slower > math.log(1.1) else least


def _deviation(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((one - mean) ** 2 for one in values)


def steady(metrics: Sequence[Metric], warmup: int | None = None) -> list[float]:
    """The step times after the warm-up (found, or given as a number of steps), seconds."""
    times = [one.step_time for one in metrics]
    dropped = warmup_steps(times) if warmup is None else warmup
    return [one for one in times[dropped:] if one is not None and one > 0 and math.isfinite(one)]


def ratio_interval(base: Sequence[float], fused: Sequence[float]) -> tuple[float, float]:
    """The 95% bootstrap interval (percentiles) of median(fused) / median(base)."""
    import numpy as np
    from scipy.stats import bootstrap

    if min(base) == max(base) and min(fused) == max(fused):
        ratio = fused[0] / base[0]
        return ratio, ratio

    def statistic(ours: object, theirs: object, axis: int = -1) -> object:
        return np.median(theirs, axis=axis) / np.median(ours, axis=axis)  # type: ignore[call-overload]

    found = bootstrap(
        (np.asarray(base), np.asarray(fused)),
        statistic,
        n_resamples=_RESAMPLES,
        confidence_level=0.95,
        method="percentile",
        vectorized=True,
        batch=500,
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def measure(
    base_runs: Sequence[Sequence[Metric]],
    fused_runs: Sequence[Sequence[Metric]],
    *,
    warmup: int | None = None,
    min_gain: float = MIN_GAIN,
    sources: Sequence[str | None] = (),
) -> SpeedResult:
    """The verdict over the runs of both sides. "faster" only if the whole interval is below 1 - min_gain, "slower" only
    if it is above 1. `sources` are where the times came from ("log", "clock"), for the reason.
    """
    base = [time for run in base_runs for time in steady(run, warmup)]
    fused = [time for run in fused_runs for time in steady(run, warmup)]
    known = sorted({one for one in sources if one})
    if len(known) > 1:
        return SpeedResult(
            "not measured",
            Text(
                "not measured: the step times of the runs come from different sources (log and clock)",
                "未测量：各次运行的步时间来源不同（日志与时钟）",
            ),
        )
    if min(len(base), len(fused)) < _LEAST:
        return SpeedResult(
            "not measured",
            Text(
                "not measured: {base} and {fused} steady steps have a time, {least} of each are needed",
                "未测量：稳定阶段分别只有 {base} 步和 {fused} 步有时间，各需 {least} 步",
            ).format(base=len(base), fused=len(fused), least=_LEAST),
        )
    ours, theirs = median(base), median(fused)
    low, high = ratio_interval(base, fused)
    if high < 1 - min_gain:
        conclusion, said = "faster", Text("faster", "更快")
    elif low > 1:
        conclusion, said = "slower", Text("slower", "更慢")
    else:
        conclusion, said = "no difference shown", Text("no difference shown", "未显示出差异")
    clock = (
        Text("; times by the clock between steps", "；时间取自两步之间的时钟") if known == ["clock"] else Text("", "")
    )
    tokens = _tokens(base_runs, fused_runs)
    return SpeedResult(
        conclusion,
        Text(
            "{said}: median step time {ours:.4g} s → {theirs:.4g} s, ratio {ratio:.4f} (95% interval {low:.4f} to "
            "{high:.4f}, {base} and {fused} steps){clock}{tokens}",
            "{said}：步时间中位数 {ours:.4g} s → {theirs:.4g} s，比值 {ratio:.4f}"
            "（95% 置信区间 {low:.4f} 至 {high:.4f}，分别 {base} 步和 {fused} 步）{clock}{tokens}",
        ).format(
            said=said,
            ours=ours,
            theirs=theirs,
            ratio=theirs / ours,
            low=low,
            high=high,
            base=len(base),
            fused=len(fused),
            clock=clock,
            tokens=tokens,
        ),
        ours,
        theirs,
        theirs / ours,
        low,
        high,
    )


def _tokens(base_runs: Sequence[Sequence[Metric]], fused_runs: Sequence[Sequence[Metric]]) -> Text:
    sides = [
        [one.tokens_per_second for run in runs for one in run if one.tokens_per_second is not None]
        for runs in (base_runs, fused_runs)
    ]
    if not all(sides):
        return Text("", "")
    return Text("; tokens/s {base:.5g} → {fused:.5g}", "；tokens/s {base:.5g} → {fused:.5g}").format(
        base=median(sides[0]), fused=median(sides[1])
    )
