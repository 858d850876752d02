"""Figures of memory. Nothing is allocated on a device: what is used is 0, what there is is the machine's."""

from __future__ import annotations

import os
from typing import Any

from ..settings import not_emulated


def mem_get_info(device: object = None) -> tuple[int, int]:
    """(free, total) bytes of the machine's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


def memory_allocated(device: object = None) -> int:
    return 0


def max_memory_allocated(device: object = None) -> int:
    return 0


def memory_reserved(device: object = None) -> int:
    return 0


def max_memory_reserved(device: object = None) -> int:
    return 0


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def memory_stats(device: object = None) -> dict[str, Any]:
    """Empty: there is no allocator of a device."""
    return {}


def memory_snapshot(mempool_id: object = None) -> list[Any]:
    return []


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    return "npufuse emulator: no memory of a device is in use"


def empty_cache() -> None:
    """There is no cache."""


def reset_peak_memory_stats(device: object = None) -> None:
    """There is nothing to reset."""


reset_accumulated_memory_stats = reset_peak_memory_stats
reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = reset_peak_memory_stats


def set_per_process_memory_fraction(fraction: float, device: object = None) -> None:
    """There is no limit to set."""


def caching_allocator_alloc(size: int, device: object = None, stream: object = None) -> int:
    raise not_emulated("torch.npu.caching_allocator_alloc")


def caching_allocator_delete(mem_ptr: int) -> None:
    raise not_emulated("torch.npu.caching_allocator_delete")
