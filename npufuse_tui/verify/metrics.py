"""The steps of a run as JSON lines: `{"step": 0, "loss": 12.598, "step_time": 2.927, "phase": "warmup"}`, seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from npufuse_tui.model import Metric


def as_line(metric: Metric) -> str:
    """One metric as a line; NaN and infinity, which JSON has not, are words."""
    row: dict[str, Any] = {
        "step": metric.step,
        "loss": _word(metric.loss),
        "step_time": _word(metric.step_time),
        "phase": metric.phase,
    }
    if metric.tokens_per_second is not None:
        row["tokens_per_second"] = _word(metric.tokens_per_second)
    return json.dumps(row)


class MetricsWriter:
    """Writes metrics as they come, so that what was read is on disk whatever happens. Raises OSError."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("w", encoding="utf-8")

    def add(self, metrics: Sequence[Metric]) -> None:
        if metrics:
            self._file.writelines(as_line(one) + "\n" for one in metrics)
            self._file.flush()

    def replace(self, metrics: Iterable[Metric]) -> None:
        """Write all of them anew, now that it is known which were the warm-up."""
        whole = self._path.with_name(self._path.name + ".new")
        whole.write_text("".join(as_line(one) + "\n" for one in metrics), encoding="utf-8")
        whole.replace(self._path)

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_metrics(path: Path) -> list[Metric]:
    """The metrics of a file; half a line at its end is left out. Raises OSError."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            found.append(
                Metric(
                    int(row["step"]),
                    _number(row.get("loss")),
                    _number(row.get("step_time")),
                    "warmup" if row.get("phase") == "warmup" else "steady",
                    _number(row.get("tokens_per_second")),
                )
            )
        except (ValueError, KeyError, TypeError):
            continue
    return found


def side_by_side(base: Sequence[Metric], fused: Sequence[Metric]) -> list[Mapping[str, Any]]:
    """Steps that both have: `step, base_loss, fused_loss, base_time, fused_time`, seconds."""
    theirs = {one.step: one for one in fused}
    return [
        {
            "step": one.step,
            "base_loss": one.loss,
            "fused_loss": theirs[one.step].loss,
            "base_time": one.step_time,
            "fused_time": theirs[one.step].step_time,
        }
        for one in base
        if one.step in theirs
    ]


def _word(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]
