"""The steps of the runs, read from their JSON lines and put side by side: baseline against candidate.

A run's metrics file has one `{"step", "loss", "step_time", "phase"}` a line, times in seconds. A run that was killed
may end in half a line; such lines are left out and counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npufuse_tui.language import Text
from npufuse_tui.model import RunRecord, Session, Task
from npufuse_tui.report.contract_json import SCHEMA, finite, task_document

MOST_STEPS_ON_A_PAGE = 12_000


@dataclass(frozen=True, slots=True)
class Series:
    """The steps of one run. `unread` lines could not be read; `missing` says why there are none at all."""

    label: str
    loss: Mapping[int, float] = field(default_factory=dict)
    step_time: Mapping[int, float] = field(default_factory=dict)
    phase: Mapping[int, str] = field(default_factory=dict)
    unread: int = 0
    missing: Text | None = None

    @property
    def steps(self) -> list[int]:
        return sorted(set(self.loss) | set(self.step_time) | set(self.phase))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The series that a candidate is judged by: its own, the baseline, and the baseline's second run for the noise."""

    base: Series
    fused: Series
    again: Series | None = None

    @property
    def steps(self) -> list[int]:
        return sorted(set(self.base.steps) | set(self.fused.steps))


def read_series(folder: Path, run: RunRecord) -> Series:
    """The metrics of one run, from its file inside the session's folder. Never raises for what the file holds."""
    if run.metrics is None:
        return Series(run.label, missing=Text("no metrics were recorded", "没有记录指标"))
    path = (folder / run.metrics).resolve()
    if not path.is_relative_to(folder.resolve()):
        return Series(
            run.label,
            missing=Text("the metrics file {0} lies outside of the session", "指标文件 {0} 不在会话目录之内").format(
                run.metrics
            ),
        )
    loss: dict[int, float] = {}
    step_time: dict[int, float] = {}
    phase: dict[int, str] = {}
    unread = 0
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                    step = int(row["step"])
                    numbers = {name: _number(row.get(name)) for name in ("loss", "step_time")}
                except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                    unread += 1
                    continue
                for name, kept in (("loss", loss), ("step_time", step_time)):
                    value = numbers[name]
                    if value is not None:
                        kept[step] = value
                phase[step] = "warmup" if row.get("phase") == "warmup" else "steady"
    except OSError as error:
        return Series(
            run.label,
            missing=Text("the metrics file {0} cannot be read: {1}", "指标文件 {0} 无法读取：{1}").format(
                run.metrics, error.strerror
            ),
        )
    return Series(run.label, loss, step_time, phase, unread)


def comparison(session: Session, task: Task, folder: Path) -> Comparison | None:
    """What the task's last run is compared with; None when it has not run or there is no baseline."""
    baselines = [run for run in (session.baseline.runs if session.baseline else ()) if run.label.startswith("baseline")]
    own = [run for run in task.runs if run.label.startswith("candidate")]
    if not baselines or not own:
        return None
    first, *more = [read_series(folder, run) for run in baselines]
    return Comparison(first, read_series(folder, own[-1]), more[0] if more else None)


def relative_difference(base: float | None, fused: float | None) -> float | None:
    """|fused - base| / |base|; infinite where only one of both is a number, None where one is not there."""
    if base is None or fused is None:
        return None
    if not (math.isfinite(base) and math.isfinite(fused)):
        return math.inf
    return abs(fused - base) / abs(base) if base else (0.0 if fused == base else math.inf)


def columns(compared: Comparison, steps: list[int] | None = None) -> dict[str, list[Any]]:
    """The steps as columns of equal length. A step that a run does not have is null; NaN and infinity are words."""
    chosen = compared.steps if steps is None else steps
    base, fused = compared.base, compared.fused
    return {
        "step": chosen,
        "phase": [base.phase.get(step) or fused.phase.get(step) or "steady" for step in chosen],
        "base_loss": [word(base.loss.get(step)) for step in chosen],
        "fused_loss": [word(fused.loss.get(step)) for step in chosen],
        "base_time": [word(base.step_time.get(step)) for step in chosen],
        "fused_time": [word(fused.step_time.get(step)) for step in chosen],
        "rel_diff": [word(relative_difference(base.loss.get(step), fused.loss.get(step))) for step in chosen],
    }


def thinned(compared: Comparison, most: int = MOST_STEPS_ON_A_PAGE, always: tuple[int | None, ...] = ()) -> list[int]:
    """At most about `most` steps: the first, the last, those in `always`, and of each stretch between its extremes, so
    that no spike is lost."""
    steps = compared.steps
    if len(steps) <= most:
        return steps
    kept = {steps[0], steps[-1], *(step for step in always if step is not None and step in set(steps))}
    size = math.ceil(len(steps) / (most // 8))
    for start in range(0, len(steps), size):
        stretch = steps[start : start + size]
        kept.add(stretch[0])
        for series in (compared.base.loss, compared.fused.loss, compared.base.step_time, compared.fused.step_time):
            there = [step for step in stretch if step in series]
            if there:
                kept.add(max(there, key=lambda step: _rank(series[step])))
        for series in (compared.base.loss, compared.fused.loss):
            there = [step for step in stretch if step in series]
            if there:
                kept.add(min(there, key=lambda step: _rank(series[step])))
    return sorted(kept)


def word(value: float | None) -> float | str | None:
    """A number as JSON can hold it: "NaN", "Infinity" and "-Infinity" are strings."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def metrics_document(session: Session, task: Task, compared: Comparison | None, language: str) -> dict[str, Any]:
    """The data of one candidate: the task as `verify --format json` has it, and every step of both runs as columns."""
    empty = Series("none")
    return {
        "schema": SCHEMA,
        "session": session.id,
        "backend": session.backend.value if session.backend else None,
        "units": {"base_time": "s", "fused_time": "s"},
        "baseline_noise_max_rel_diff": finite(session.baseline.noise_max_rel_diff) if session.baseline else None,
        "task": task_document(task, session, language),
        "metrics": columns(compared or Comparison(empty, empty)),
    }


def _number(value: object) -> float | None:
    """What a line holds as a number; NaN and infinity may be written as words."""
    if isinstance(value, str) and value.lower().lstrip("-") in ("nan", "inf", "infinity"):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _rank(value: float) -> float:
    return math.inf if math.isnan(value) else value
