"""`from torch_npu.contrib import transfer_to_npu`: what a script asks of CUDA, it gets of the NPU."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .. import devices, npu


def _install() -> None:
    devices.answer_for("cuda")
    for name in npu.__all__:
        setattr(torch.cuda, name, getattr(npu, name))
    torch.cuda.amp.autocast = npu.amp.autocast
    if hasattr(npu.amp, "GradScaler"):
        torch.cuda.amp.GradScaler = npu.amp.GradScaler
    torch.Tensor.cuda = torch.Tensor.npu
    torch.Tensor.is_cuda = torch.Tensor.is_npu
    torch.nn.Module.cuda = torch.nn.Module.npu
    distributed: Any = torch.distributed
    if distributed.is_available():
        distributed.is_nccl_available = lambda: True
        for name in ("init_process_group", "new_group"):
            setattr(distributed, name, _with_hccl(getattr(distributed, name)))


def _with_hccl(function: Any) -> Any:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        args = tuple(_hccl(argument) for argument in args)
        if "backend" in kwargs:
            kwargs["backend"] = _hccl(kwargs["backend"])
        return function(*args, **kwargs)

    return run


def _hccl(backend: Any) -> Any:
    return backend.replace("nccl", "hccl").replace("cuda:", "npu:") if isinstance(backend, str) else backend


_install()
