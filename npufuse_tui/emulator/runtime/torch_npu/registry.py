"""The operators of the emulated version, registered with torch under their real schemas.

torch itself then checks the arguments, so that an unknown keyword fails with the message that it has on the machine
with the NPU. What backward does is as registered there, too:

- "formula": the kernel is made of torch's own operators in float32, and autograd goes through them;
- "error_fallback": backward raises "derivative for npu::… is not implemented";
- anything else: no gradient, and the warning that torch gives for an operator without an autograd kernel.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import record
from .settings import not_emulated, schemas

Kernel = Callable[..., Any]
# Older versions give a list one number as its default, which newer versions of torch no longer read.
_LONE_DEFAULT = re.compile(r"(\bint\[\] \w+)=(\d+)")
_kernels: dict[str, Kernel] = {}
_libraries: list[torch.library.Library] = []  # a library that is collected takes its kernels with it


def _autocast_is_on() -> bool:
    return bool(_asked("cpu") if _by_device else _asked())


# torch 2.4 asks for one device at a time, and warns of the other name.
_by_device = hasattr(torch, "get_autocast_dtype")
_asked = torch.is_autocast_enabled if _by_device else torch.is_autocast_cpu_enabled


def kernel(*names: str) -> Callable[[Kernel], Kernel]:
    """Marks a function as the kernel of operators: `npu_swiglu`, or `npu_grouped_matmul.List` for an overload."""

    def mark(function: Kernel) -> Kernel:
        for name in names:
            _kernels[name] = function
        return function

    return mark


def emulated_operators() -> frozenset[str]:
    """The names, with overload, of the operators that have a kernel, whatever the version."""
    return frozenset(_kernels)


def register(namespace: str = "npu", define: bool = True) -> dict[str, bool]:
    """Register every operator of the emulated version; answers which have a kernel.

    `define=False` gives kernels to operators that someone else has defined (the real torch_npu, in our tests).
    """
    library = torch.library.Library(namespace, "DEF" if define else "IMPL")
    _libraries.append(library)
    found: dict[str, bool] = {}
    for name, overloads in schemas().items():
        # torch takes the first overload that the arguments fit: the default one comes first.
        for overload, entry in sorted(overloads.items(), key=lambda item: item[0] != "default"):
            full = name if overload == "default" else f"{name}.{overload}"
            if define:
                library.define(_LONE_DEFAULT.sub(r"\1=[\2]", entry["schema"]))
            function = _kernels.get(full)
            found[full] = function is not None
            if function is not None:
                _implement(library, namespace, full, function, entry["autograd_kind"], define)
            elif define:
                library.impl(full, functools.partial(_missing, full), "CPU")
    return found


def _implement(
    library: torch.library.Library, namespace: str, name: str, function: Kernel, kind: str, meta: bool
) -> None:
    plain = name.split(".")[0]
    below = _below_autograd(plain, function)
    library.impl(name, below, "CPU")
    if meta:
        library.impl(name, below, "Meta")
    if kind == "formula":
        through = _with_autograd(plain, function)
        library.impl(name, through, "AutogradCPU")
        if meta:
            library.impl(name, through, "AutogradMeta")
    elif kind == "error_fallback":
        raising = _without_derivative(f"{namespace}::{plain}", below)
        library.impl(name, raising, "AutogradCPU")
        if meta:
            library.impl(name, raising, "AutogradMeta")


def _missing(name: str, *args: object, **kwargs: object) -> object:
    raise not_emulated(f"torch_npu.{name}")


def _with_autograd(name: str, function: Kernel) -> Kernel:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        record.called(name)
        if _autocast_is_on():  # a fused operator knows no autocast, and computes in float32
            with torch.autocast("cpu", enabled=False):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    return run


def _below_autograd(name: str, function: Kernel) -> Kernel:
    inner = _with_autograd(name, function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return inner(*args, **kwargs)

    return run


def _without_derivative(qualified: str, below: Kernel) -> Kernel:
    @functools.wraps(below)
    def run(*args: Any, **kwargs: Any) -> Any:
        inputs = [tensor for tensor in _tensors((*args, *kwargs.values())) if tensor.requires_grad]
        result = below(*args, **kwargs)
        if not inputs or not torch.is_grad_enabled():
            return result
        outputs = (result,) if isinstance(result, torch.Tensor) else tuple(result)
        marked = _NoDerivative.apply(qualified, len(outputs), *outputs, *inputs)
        return marked[0] if isinstance(result, torch.Tensor) else marked

    return run


def _tensors(values: tuple[Any, ...]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(tuple(value))


class _NoDerivative(torch.autograd.Function):  # type: ignore[misc]
    """Outputs that want a gradient and cannot have one."""

    @staticmethod
    def forward(ctx: Any, qualified: str, count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.qualified = qualified
        outputs = tuple(tensor.detach() for tensor in tensors[:count])
        ctx.mark_non_differentiable(*(tensor for tensor in outputs if not tensor.is_floating_point()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> None:
        raise RuntimeError(f"derivative for {ctx.qualified} is not implemented")
