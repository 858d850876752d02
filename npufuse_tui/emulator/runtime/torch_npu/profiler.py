"""torch_npu.profiler has nothing to measure here: using any of it says so."""

from __future__ import annotations

from typing import Any

from .settings import not_emulated


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise not_emulated(f"torch_npu.profiler.{name}")
