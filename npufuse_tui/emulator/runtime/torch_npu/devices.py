"""The device "npu", which is the CPU.

`torch.device("npu:0")` is a device that torch itself parses (its place for a backend of one's own, renamed). Wherever
torch would have to allocate on it, the CPU is put in its place: in the factories, in `Tensor.to` and `Module.to`, in
`torch.load`, in generators, in autocast. And a tensor says of itself that it is on the NPU (`is_npu`, `device`), so
that code which asks takes the way that it takes on one. Meta tensors and tensor subclasses with a device of their own
stay as they are.

There is one memory here: `.npu()` and `.to("npu")` give the tensor itself, not a copy.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from . import current

_CPU = torch.device("cpu")
# torch's own code sees the device that there is, and takes the CPU's way, bit for bit; but for these parts of it, which
# compare a tensor's device with one that the script has named.
_DECEIVED = ("torch.nn.parallel", "torch.distributed", "torch.amp.autocast_mode", "torch._tensor_str")
_kept: list[Any] = []  # what torch's C side refers to
_mapped_types = {"npu"}  # `torch_npu.contrib.transfer_to_npu` adds "cuda"

_FACTORIES = [
    "arange",
    "asarray",
    "as_tensor",
    "bartlett_window",
    "blackman_window",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_quantized",
    "empty_strided",
    "eye",
    "fft.fftfreq",
    "fft.rfftfreq",
    "from_file",
    "full",
    "full_like",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "nested.nested_tensor",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]
_NEW = ["new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"]


def answer_for(device_type: str) -> None:
    """Take another type of device for the NPU from now on."""
    _mapped_types.add(device_type)


def is_npu_device(device: object) -> bool:
    """Whether this names the NPU: "npu", "npu:0", torch.device("npu"), or a number, as torch counts accelerators."""
    if isinstance(device, torch.device):
        return device.type in _mapped_types
    if isinstance(device, str):
        return device.partition(":")[0] in _mapped_types
    return isinstance(device, int) and not isinstance(device, bool)


def mapped(device: Any) -> Any:
    """The device to give to torch: the CPU for the NPU, anything else as it is."""
    return _CPU if is_npu_device(device) else device


def install(npu: ModuleType) -> None:
    """Put the device into torch. Called once, when torch_npu is imported."""
    from torch.utils import _device

    getattr(_device, "_device_constructors", tuple)()  # its cache must hold the factories as torch knows them
    torch._register_device_module("npu", npu)
    for name in ("amp", "memory", "random", "streams"):  # else `import torch.npu.amp` would load a second one
        sys.modules[f"torch.npu.{name}"] = sys.modules[f"{npu.__name__}.{name}"]
    for name in _FACTORIES:
        _wrap(name)
    for name in _NEW:
        original = getattr(torch.Tensor, name)
        setattr(torch.Tensor, name, _with_device_keyword(original))
    _backend()
    _tensor_methods()
    _module_methods()
    _contexts()
    _generators()
    _loading()
    _accelerator(npu)


def _backend() -> None:
    """Tell torch's C side that the backend is there, where torch can be told from Python: its compiler asks."""
    parts: Any = getattr(torch._C, "_acc", None)
    if parts is None or not hasattr(parts, "register_python_privateuseone_hook"):
        return

    class Hook(parts.PrivateUse1Hooks):  # type: ignore[misc]
        def is_available(self) -> bool:
            return True

        def is_built(self) -> bool:
            return True

        def has_primary_context(self, index: int) -> bool:
            return True

    class Guard(parts.DeviceGuard):  # type: ignore[misc]
        def type_(self) -> Any:
            return torch._C._autograd.DeviceType.PrivateUse1

    _kept.extend((Hook(), Guard()))
    parts.register_python_privateuseone_hook(_kept[0])
    parts.register_python_privateuseone_device_guard(_kept[1])


def _with_device_keyword(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is not None:
            kwargs["device"] = mapped(device)
        return function(*args, **kwargs)

    return run


def _wrap(path: str) -> None:
    """Put a wrapper in the place of a factory, and tell TorchScript that it is the same operator."""
    *modules, name = path.split(".")
    owner = functools.reduce(getattr, modules, torch)
    original = getattr(owner, name, None)
    if original is None:  # not in this version of torch
        return
    wrapper = _with_device_keyword(original)
    setattr(owner, name, wrapper)
    from torch.jit import _builtins

    operator = _builtins._find_builtin(original)
    if operator is not None:
        _builtins._register_builtin(wrapper, operator)


def _tensor_methods() -> None:
    base = torch._C.TensorBase if hasattr(torch._C, "TensorBase") else torch._C._TensorBase
    real_device = base.device.__get__
    plain = (torch.Tensor, torch.nn.Parameter)
    to, pin, get_device = torch.Tensor.to, torch.Tensor.pin_memory, torch.Tensor.get_device

    def device(self: torch.Tensor) -> torch.device:
        """The NPU, for a plain tensor in memory; the real device otherwise, and for torch's own code."""
        found = real_device(self)
        if found.type != "cpu" or type(self) not in plain:
            return found
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("torch.") and not caller.startswith(_DECEIVED):
            return found
        return current.device()

    def moved(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if args and is_npu_device(args[0]):
            args = (_CPU, *args[1:])
        if "device" in kwargs:
            kwargs["device"] = mapped(kwargs["device"])
        return to(self, *args, **kwargs)

    def npu(self: torch.Tensor, device: object = None, non_blocking: bool = False, **kwargs: Any) -> torch.Tensor:
        """The tensor itself, checked to be asked onto an NPU."""
        if device is not None and not is_npu_device(device):
            raise RuntimeError(f"Invalid device, must be npu device, not {device!r}")
        return to(self, _CPU, non_blocking=non_blocking, **kwargs)

    def index(self: torch.Tensor) -> int:
        return current.index if real_device(self).type == "cpu" else int(get_device(self))

    torch.Tensor.device = property(device)
    torch.Tensor.is_npu = property(lambda self: self.device.type in ("npu", "cpu"))
    torch.Tensor.to = functools.wraps(to)(moved)
    torch.Tensor.npu = npu
    torch.Tensor.get_device = functools.wraps(get_device)(index)
    torch.Tensor.pin_memory = functools.wraps(pin)(lambda self, device=None: self)
    torch.Tensor.record_stream = lambda self, stream: None


def _module_methods() -> None:
    def npu(self: torch.nn.Module, device: object = None) -> torch.nn.Module:
        """Move the parameters and buffers to the NPU: they are there."""
        return self.to(_CPU if device is None else mapped(device))

    torch.nn.Module.npu = npu
    packed = torch.nn.utils.rnn.PackedSequence
    packed.npu = lambda self, *args, **kwargs: self
    packed.is_npu = property(lambda self: True)


def _contexts() -> None:
    """`with torch.device("npu")`, `torch.set_default_device("npu")`, `torch.autocast("npu")`."""
    from torch.utils._device import DeviceContext

    made = DeviceContext.__init__

    @functools.wraps(made)
    def make(self: Any, device: Any) -> None:
        made(self, mapped(device))

    DeviceContext.__init__ = make

    autocast = torch.amp.autocast_mode.autocast
    begun = autocast.__init__

    @functools.wraps(begun)
    def begin(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        if device_type in _mapped_types:
            device_type = "cpu"
            dtype = torch.float16 if dtype is None else dtype  # what the NPU takes where nothing is said
        begun(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    autocast.__init__ = begin
    for name in (
        "is_autocast_enabled",
        "get_autocast_dtype",
        "set_autocast_dtype",
        "set_autocast_enabled",
        "is_autocast_available",
    ):
        question = getattr(torch, name, None)
        if question is not None:
            setattr(torch, name, _with_device_type(question))
    available = getattr(torch.amp.autocast_mode, "is_autocast_available", None)
    if available is not None:
        torch.amp.autocast_mode.is_autocast_available = _with_device_type(available)
        torch.amp.is_autocast_available = torch.amp.autocast_mode.is_autocast_available


def _with_device_type(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], str) and args[0] in _mapped_types:
            args = ("cpu", *args[1:])
        if kwargs.get("device_type") in _mapped_types:
            kwargs["device_type"] = "cpu"
        return function(*args, **kwargs)

    return run


def _generators() -> None:
    real = torch.Generator

    class _Kind(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            return real(device=mapped(device))

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    torch.Generator = _Kind("Generator", (), {"__doc__": real.__doc__, "__module__": "torch"})


def _loading() -> None:
    load = torch.load

    @functools.wraps(load)
    def loaded(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {key: mapped(value) for key, value in map_location.items()}
        elif isinstance(map_location, (str, torch.device)):
            map_location = mapped(map_location)
        return load(f, map_location, *args, **kwargs)

    torch.load = loaded
    # A checkpoint that was written on an NPU says so of its storages.
    torch.serialization.register_package(
        5,
        lambda storage: None,
        lambda storage, location: storage if str(location).partition(":")[0] in _mapped_types else None,
    )


def _accelerator(npu: ModuleType) -> None:
    """torch.accelerator, where torch has it, speaks of the NPU; the C side would ask a backend that is not there."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    accelerator.is_available = lambda: True
    accelerator.current_accelerator = lambda check_available=False: torch.device("npu")
    accelerator.device_count = npu.device_count
    accelerator.current_device_index = npu.current_device
    accelerator.current_device_idx = npu.current_device
    accelerator.set_device_index = npu.set_device
    accelerator.set_device_idx = npu.set_device
    accelerator.synchronize = npu.synchronize
    accelerator.current_stream = npu.current_stream
    accelerator.set_stream = npu.set_stream
    if hasattr(accelerator, "empty_cache"):
        accelerator.empty_cache = npu.empty_cache
    torch._C._get_accelerator = lambda check=False: torch.device("npu")
