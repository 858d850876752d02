"""The loss check: a candidate's loss, step by step, against that of the unmodified code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from npufuse_tui.language import Text
from npufuse_tui.model import LossResult, Metric

LIMIT = 0.01
"""Relative difference of one step's loss that is allowed."""
_FAR, _IN_A_ROW, _EARLY = 5.0, 3, 20

_ADVICE = Text(
    "fix the seeds (torch.manual_seed, the data loader's generator), switch dropout off, set "
    "torch.use_deterministic_algorithms(True)",
    "请固定随机种子（torch.manual_seed、数据加载器的 generator），关闭 dropout，"
    "并设置 torch.use_deterministic_algorithms(True)",
)


def relative(base: float, other: float) -> float:
    """|other - base| / |base|; infinite where only one of them is finite, 0 where neither is."""
    if not (math.isfinite(base) and math.isfinite(other)):
        return 0.0 if not math.isfinite(base) and not math.isfinite(other) else math.inf
    if other == base:
        return 0.0
    return abs(other - base) / abs(base) if base else math.inf


def differences(base: Sequence[Metric], other: Sequence[Metric]) -> list[tuple[int, float]]:
    """(step, relative difference) for each step that both have a loss at."""
    losses = {one.step: one.loss for one in other if one.loss is not None}
    return [
        (one.step, relative(one.loss, losses[one.step])) for one in base if one.loss is not None and one.step in losses
    ]


class EarlyStop:
    """Told each step of a candidate while it runs; says why the run need not go on, or None.

    A loss that is not finite where the baseline's is, or three steps in a row beyond five times the limit within the
    first twenty: no later step can mend that.
    """

    def __init__(self, base: Sequence[Metric], limit: float = LIMIT) -> None:
        self._base = {one.step: one.loss for one in base if one.loss is not None}
        self._limit = limit
        self._count = self._row = 0

    def __call__(self, metric: Metric) -> Text | None:
        base = self._base.get(metric.step)
        if metric.loss is None or base is None:
            return None
        self._count += 1
        if math.isfinite(base) and not math.isfinite(metric.loss):
            return Text("the loss is {loss} at step {step}", "第 {step} 步的 loss 为 {loss}").format(
                loss=metric.loss, step=metric.step
            )
        difference = relative(base, metric.loss)
        self._row = self._row + 1 if difference > _FAR * self._limit else 0
        if self._row >= _IN_A_ROW and self._count <= _EARLY:
            return Text(
                "the loss differs by {difference:.2%} at step {step}, the third step in a row beyond {far:.2%}",
                "第 {step} 步的 loss 相差 {difference:.2%}，已连续三步超过 {far:.2%}",
            ).format(difference=difference, step=metric.step, far=_FAR * self._limit)
        return None


def enough(metrics: Sequence[Metric], steps: int) -> bool:
    """Whether this many steps were run: each logged, or every few of them logged with their numbers."""
    found = [one for one in metrics if one.loss is not None]
    if len(found) >= steps:
        return True
    return len(found) >= min(steps, 5) and found[-1].step - found[0].step + 1 >= steps


def judge(
    base: Sequence[Metric],
    again: Sequence[Metric] | None,
    candidate: Sequence[Metric],
    *,
    steps: int,
    limit: float = LIMIT,
    stopped: Text | None = None,
) -> LossResult:
    """The verdict. `again` is the baseline's second run, `stopped` why the candidate's run was stopped early.

    `passed` is None when nothing can be said: too few steps, a baseline that is not finite or that differs from
    itself by more than the limit.
    """
    noise = max((value for _, value in differences(base, again)), default=None) if again is not None else None
    found = differences(base, candidate)
    worst = max((value for _, value in found), default=None)
    first = next((step for step, value in found if value > limit), None)

    def result(passed: bool | None, reason: Text) -> LossResult:
        return LossResult(len(found), worst, first, limit, noise, passed, reason)

    if not found:
        return result(None, Text("cannot be judged: the runs have no step in common", "无法判定：两次运行没有共同的步"))
    if any(one.loss is not None and not math.isfinite(one.loss) for one in base):
        where = next(one.step for one in base if one.loss is not None and not math.isfinite(one.loss))
        return result(
            None,
            Text(
                "cannot be judged: the loss of the unmodified code is not finite at step {step}",
                "无法判定：未修改代码的 loss 在第 {step} 步不是有限值",
            ).format(step=where),
        )
    if any(value == math.inf for _, value in found):
        return result(
            False,
            Text("the loss is not finite from step {step} on", "从第 {step} 步起 loss 不是有限值").format(step=first),
        )
    if noise is not None and noise > limit:
        return result(
            None,
            Text(
                "cannot be judged: baseline noise {noise:.2%}, the limit is {limit:.2%}; {advice}",
                "无法判定：基线自身波动 {noise:.2%}，上限为 {limit:.2%}；{advice}",
            ).format(noise=noise, limit=limit, advice=_ADVICE),
        )
    if stopped is not None:
        return result(False, Text("stopped early: {why}", "提前停止：{why}").format(why=stopped))
    if first is not None:
        return result(
            False,
            Text(
                "the loss differs by up to {worst:.2%}, first beyond {limit:.2%} at step {step}",
                "loss 最大相差 {worst:.2%}，在第 {step} 步首次超过 {limit:.2%}",
            ).format(worst=worst, limit=limit, step=first),
        )
    common = {step for step, _ in found}
    if not enough([one for one in base if one.step in common], steps):
        return result(
            None,
            Text(
                "cannot be judged: {found} steps were compared and {steps} are needed; let the command run longer, or "
                "ask for fewer with --steps",
                "无法判定：只比较了 {found} 步，需要 {steps} 步；请让命令运行更久，或用 --steps 减少步数",
            ).format(found=len(found), steps=steps),
        )
    return result(
        True,
        Text(
            "{found} steps, the loss differs by at most {worst:.4%}, the limit is {limit:.2%}; baseline noise {noise}",
            "共 {found} 步，loss 最大相差 {worst:.4%}，上限为 {limit:.2%}；基线自身波动 {noise}",
        ).format(
            found=len(found),
            worst=worst,
            limit=limit,
            noise=f"{noise:.4%}" if noise is not None else Text("not measured", "未测量"),
        ),
    )
