"""Which of the emulated NPUs is the current one. They are all the CPU."""

from __future__ import annotations

import functools
import os

import torch

index = 0
MOST = 64


def count() -> int:
    """How many NPUs there are: NPUFUSE_EMULATED_DEVICES, else the ranks that a launcher started here, else one."""
    for name in ("NPUFUSE_EMULATED_DEVICES", "LOCAL_WORLD_SIZE"):
        value = os.environ.get(name, "")
        if value.isdigit() and 0 < int(value) <= MOST:
            return int(value)
    return 1


def device() -> torch.device:
    """The current NPU as a device."""
    return _device(index)


@functools.lru_cache(maxsize=MOST)
def _device(number: int) -> torch.device:
    return torch.device("npu", number)


def number_of(wanted: object) -> int:
    """The number in "npu:1", torch.device("npu", 1), 1 or None (the current one). Raises RuntimeError for others."""
    if wanted is None:
        return index
    if isinstance(wanted, str):
        wanted = torch.device(wanted)
    if isinstance(wanted, torch.device):
        if wanted.type not in ("npu", "cuda"):
            raise ValueError(f"Expected a npu device, but got: {wanted}")
        wanted = index if wanted.index is None else wanted.index
    if not isinstance(wanted, int) or not -1 <= wanted < MOST:
        raise RuntimeError(f"Invalid device id {wanted!r}: give a number from 0 to {MOST - 1}")
    return index if wanted < 0 else wanted


def select(wanted: object) -> None:
    """Make it the current one."""
    global index
    index = number_of(wanted)
