"""torch.npu: the device's functions, answered for the CPU."""

from __future__ import annotations

from typing import Any

import torch

from .. import current
from ..settings import not_emulated
from . import amp
from .memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_autocast_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_autocast_enabled",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_jit_compile_false",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_compile_mode",
    "set_device",
    "set_option",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    """There is nothing to start."""


def _lazy_init() -> None:
    """There is nothing to start."""


def _lazy_call(function: Any, **kwargs: Any) -> None:
    function()


def _is_in_bad_fork() -> bool:
    return False


def device_count() -> int:
    return current.count()


def current_device() -> int:
    return current.index


def set_device(device: object) -> None:
    current.select(device)


def synchronize(device: object = None) -> None:
    """The CPU has done its work when a call returns."""


def utilization(device: object = None) -> int:
    raise not_emulated("torch.npu.utilization")


def can_device_access_peer(device_id: int, peer_device_id: int) -> bool:
    return True


def get_device_name(device_name: object = None) -> str:
    return "npufuse emulated NPU (CPU)"


class _Properties:
    """What is known of the emulated device: its name, and the machine's memory in bytes."""

    def __init__(self) -> None:
        self.name = get_device_name()
        self.total_memory = mem_get_info()[1]

    def __repr__(self) -> str:
        return f"_NpuDeviceProperties(name={self.name!r}, total_memory={self.total_memory // 2**20}MB)"


def get_device_properties(device_name: object = None) -> _Properties:
    return _Properties()


def get_device_capability(device: object = None) -> None:
    """As in torch_npu, which has no such figure."""
    return


def is_bf16_supported(including_emulation: bool = False) -> bool:
    return True


def get_soc_version() -> int:
    """The number of an Atlas A2 (910B)."""
    return 220


class device:
    """A context in which another NPU is the current one."""

    def __init__(self, device: object) -> None:
        self.idx = current.number_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current.index
        current.select(self.idx)

    def __exit__(self, *exception: object) -> None:
        current.select(self.prev_idx)


class device_of(device):
    """A context in which the NPU of a tensor is the current one."""

    def __init__(self, obj: torch.Tensor) -> None:
        super().__init__(obj.get_device())


def _get_device_index(device: object, optional: bool = False, allow_cpu: bool = False) -> int:
    if device is None and not optional:
        raise ValueError("Expected a torch.device with a specified index or an integer, but got: None")
    return current.number_of(device)


def set_compile_mode(jit_compile: bool = False) -> None:
    """Nothing is compiled here."""


def is_jit_compile_false() -> bool:
    return True


def set_option(option: dict[str, object]) -> None:
    """Options of the operator compiler, of which there is none here."""


def set_mm_bmm_format_nd(is_nd: bool) -> None:
    """All memory here is ND."""


def get_mm_bmm_format_nd() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


_by_device = hasattr(torch, "get_autocast_dtype")  # torch 2.4 and newer; before, each device had its own functions


def is_autocast_enabled() -> bool:
    return bool(torch.is_autocast_enabled("npu") if _by_device else torch.is_autocast_cpu_enabled())


def set_autocast_enabled(enable: bool) -> None:
    if _by_device:
        torch.set_autocast_enabled("npu", enable)
    else:
        torch.set_autocast_cpu_enabled(enable)


def get_autocast_dtype() -> torch.dtype:
    return torch.get_autocast_dtype("npu") if _by_device else torch.get_autocast_cpu_dtype()


def set_autocast_dtype(dtype: torch.dtype) -> None:
    if _by_device:
        torch.set_autocast_dtype("npu", dtype)
    else:
        torch.set_autocast_cpu_dtype(dtype)


class _Flags:
    """Settings that scripts write (`allow_hf32`, `allow_internal_format`): kept, and without effect."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


config = _Flags(allow_internal_format=False)
matmul = _Flags(allow_hf32=False)
conv = _Flags(allow_hf32=True)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    # An AttributeError too, so that hasattr() and getattr() with a default answer as for a thing that is not there.
    error = not_emulated(f"torch.npu.{name}")
    raise type("NotEmulatedAttribute", (type(error), AttributeError), {})(str(error))
