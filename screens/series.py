"""The numbers behind the curves: steps of a run, live or from its metrics, and how far they are from the baseline."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from npufuse_tui.screens.live import Live

from npufuse_tui.model import Baseline, Metric, Task

LIMIT = 0.01  # relative difference of the loss that a step may have


@lru_cache(maxsize=64)
def _read(path: str, size: int) -> tuple[Metric, ...]:
    found: list[Metric] = []
    for line in Path(path).read_text("utf-8", "replace").splitlines():
        try:
            one = json.loads(line)
            found.append(Metric(int(one["step"]), one.get("loss"), one.get("step_time"), one.get("phase", "steady")))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def read_metrics(path: str | None) -> tuple[Metric, ...]:
    """The steps in a metrics file (JSON lines); none when there is no such file."""
    if path is None:
        return ()
    try:
        return _read(path, Path(path).stat().st_size)
    except OSError:
        return ()


def baseline_steps(live: Live, baseline: Baseline | None) -> Sequence[Metric]:
    """The steps of the first baseline run."""
    running = [run for run in live.runs_of(None) if run.label.startswith("baseline") and run.metrics]
    if running:
        return running[0].metrics
    runs = [run for run in (baseline.runs if baseline else ()) if run.label.startswith("baseline")]
    return read_metrics(runs[0].metrics) if runs else ()


def task_steps(live: Live, task: Task) -> Sequence[Metric]:
    """The steps of the newest run of a task that has any."""
    for run in reversed(live.runs_of(task.id)):
        if run.metrics:
            return run.metrics
    for record in reversed(task.runs):
        if steps := read_metrics(record.metrics):
            return steps
    return ()


def losses(steps: Sequence[Metric]) -> tuple[list[int], list[float]]:
    """Steps and losses, without those that are missing or not finite."""
    kept = [(one.step, one.loss) for one in steps if one.loss is not None and math.isfinite(one.loss)]
    return [step for step, _ in kept], [loss for _, loss in kept]


def step_times(steps: Sequence[Metric]) -> tuple[list[int], list[float]]:
    kept = [(one.step, one.step_time) for one in steps if one.step_time is not None and math.isfinite(one.step_time)]
    return [step for step, _ in kept], [seconds for _, seconds in kept]


def relative(baseline: Sequence[Metric], steps: Sequence[Metric]) -> tuple[list[int], list[float]]:
    """Relative difference of each step's loss against the baseline's, in percent, where both have one."""
    base = dict(zip(*losses(baseline), strict=True))
    xs, ys = losses(steps)
    pairs = [(x, 100 * (y - base[x]) / abs(base[x])) for x, y in zip(xs, ys, strict=True) if base.get(x)]
    return [x for x, _ in pairs], [y for _, y in pairs]
