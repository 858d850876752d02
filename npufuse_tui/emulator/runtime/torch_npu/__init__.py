"""torch_npu on the CPU: the real signatures, reference numerics, no NPU.

Not the real library: `__version__` ends in "+npufuse.emulated". What is not emulated raises `NotEmulated`, naming it.
"""

from __future__ import annotations

import os as _os

# As the real library does: torch must not load its backends, of which this is one, while this is being loaded.
_autoload_wanted = _os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
_os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch as _torch  # noqa: E402

_torch.utils.rename_privateuse1_backend("npu")  # from here on torch parses "npu" as a device

from . import record as _record  # noqa: E402
from . import registry as _registry  # noqa: E402
from . import settings as _settings  # noqa: E402
from .kernels import (  # noqa: E402
    activation,  # noqa: F401
    fusion_attention,  # noqa: F401
    group_norm,  # noqa: F401
    grouped,  # noqa: F401
    infer_attention,  # noqa: F401
    layout,  # noqa: F401
    moe,  # noqa: F401
    norm,  # noqa: F401
    rotary,  # noqa: F401
    softmax,  # noqa: F401
)
from .settings import EmulatorWarning, NotEmulated  # noqa: E402, F401

__version__ = _settings.version() + _settings.SUFFIX
backend = "emulated"

_operators = _registry.register()

from . import devices as _devices  # noqa: E402
from . import npu, optim, process_groups, profiler  # noqa: E402, F401

_devices.install(npu)
process_groups.install()
for _name in _operators:
    if not hasattr(_torch.ops.npu, _name.split(".")[0]):
        raise RuntimeError(f"operator {_name} was not registered")
    globals()[_name.split(".")[0]] = getattr(_torch.ops.npu, _name.split(".")[0])
_record.start(__version__, _settings.strict())


def _autoload() -> None:
    """What torch calls when it has loaded this as a backend extension; loading did all there is to do."""
    if _autoload_wanted is None:
        _os.environ.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    else:
        _os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _autoload_wanted


_autoload()


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    if name.startswith(("npu_", "Npu", "fast_")):
        raise AttributeError(
            _settings.say(
                f"torch_npu {_settings.version()} has no {name!r}",
                f"torch_npu {_settings.version()} 没有 {name!r}",
            )
        )
    raise AttributeError(f"module 'torch_npu' has no attribute {name!r}; or it is not emulated")
