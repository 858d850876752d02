"""HCCL, which is gloo: a process group of that name moves tensors between processes on the CPU."""

from __future__ import annotations

import functools
from typing import Any


def install() -> None:
    """Register the backend with torch.distributed, where this torch has it."""
    import torch.distributed as distributed

    if not distributed.is_available() or not hasattr(distributed, "ProcessGroupGloo"):
        return
    register = distributed.Backend.register_backend
    if "hccl" not in distributed.Backend.backend_list:
        register("hccl", _gloo, devices=["cpu", "npu"])
    distributed.is_hccl_available = lambda: True
    for name in ("all_reduce",):
        _average(distributed, name)
    barrier = distributed.barrier

    @functools.wraps(barrier)
    def meet(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        return barrier(group=group, async_op=async_op)

    _put(distributed, "barrier", meet)


def _gloo(store: Any, rank: int, size: int, timeout: Any) -> Any:
    import torch.distributed as distributed

    return distributed.ProcessGroupGloo(store, rank, size, timeout=timeout)


def _average(distributed: Any, name: str) -> None:
    """HCCL can average; gloo cannot: add, then divide."""
    original = getattr(distributed, name)

    @functools.wraps(original)
    def run(tensor: Any, op: Any = distributed.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        if op != distributed.ReduceOp.AVG:
            return original(tensor, op=op, group=group, async_op=async_op)
        work = original(tensor, op=distributed.ReduceOp.SUM, group=group, async_op=async_op)
        if work is not None:
            work.wait()
        tensor.div_(distributed.get_world_size(group))
        return work

    _put(distributed, name, run)


def _put(distributed: Any, name: str, function: Any) -> None:
    setattr(distributed, name, function)
    setattr(distributed.distributed_c10d, name, function)
