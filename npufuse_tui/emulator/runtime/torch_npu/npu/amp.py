"""torch.npu.amp: autocast and GradScaler, as torch has them for the CPU."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..settings import not_emulated


class autocast(torch.amp.autocast_mode.autocast):  # type: ignore[misc]
    """`torch.autocast("npu", …)`: float16 unless another dtype is given."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("npu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


if hasattr(torch.amp, "GradScaler"):

    class GradScaler(torch.amp.GradScaler):  # type: ignore[misc]
        """`torch.amp.GradScaler("npu", …)`. `dynamic=False` keeps the scale as it is."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            dynamic: bool = True,
            enabled: bool = True,
        ) -> None:
            super().__init__("npu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
            self._dynamic = dynamic

        def update(self, new_scale: Any = None) -> None:
            """Grow or shrink the scale after the steps since the last update; a fixed one stays."""
            if self._dynamic or new_scale is not None:
                super().update(new_scale)
            else:
                self._per_optimizer_states.clear()

    custom_fwd = (
        functools.partial(torch.amp.custom_fwd, device_type="npu") if hasattr(torch.amp, "custom_fwd") else None
    )
    custom_bwd = (
        functools.partial(torch.amp.custom_bwd, device_type="npu") if hasattr(torch.amp, "custom_bwd") else None
    )
else:

    def __getattr__(name: str) -> Any:
        if name == "GradScaler":
            raise not_emulated(
                f"torch.npu.amp.GradScaler with torch {torch.__version__} (torch 2.3 or newer is needed)"
            )
        raise AttributeError(name)
