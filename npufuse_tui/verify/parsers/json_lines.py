"""One JSON object a line: `{"step": 3, "loss": 2.31, "step_time": 0.12}`, also behind a logger's prefix."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from npufuse_tui.language import Text
from npufuse_tui.verify.reading import Parser, Reading, number

_STEP = (
    "step",
    "global_step",
    "iteration",
    "iter",
    "current_steps",
    "train/global_step",
    "trainer/global_step",
    "batch",
)
_LOSS = ("loss", "train_loss", "train/loss", "lm loss", "lm_loss", "training_loss", "total_loss")
_SECONDS = ("step_time", "step_time_s", "iteration_time", "iter_time", "time_per_step", "seconds_per_step", "dt")
_MILLISECONDS = ("step_time_ms", "iteration_time_ms", "iter_time_ms", "dt_ms", "ms_per_step")
_TOKENS = ("tokens_per_second", "tokens_per_sec", "tokens/s", "tps", "throughput")


def read(line: str) -> Reading | None:
    begin = line.find('{"')
    if begin < 0 or not line.endswith("}") or len(line) > 1 << 14:
        return None
    try:
        found = json.loads(line[begin:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    step, loss = _first(found, _STEP), _first(found, _LOSS)
    time = _first(found, _SECONDS)
    if time is None and (milliseconds := _first(found, _MILLISECONDS)) is not None:
        time = milliseconds / 1000
    if loss is None and (step is None or time is None):
        return None
    return Reading(int(step) if step is not None else None, loss, time, _first(found, _TOKENS))


def _first(found: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    for name in names:
        value = found.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and (read := number(value)) is not None:
            return read
    return None


PARSER = Parser("json_lines", Text("JSON lines", "JSON 行"), 18, read)
