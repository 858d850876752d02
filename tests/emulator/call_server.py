"""Runs in a child: reads calls of torch_npu as JSON lines, makes them, answers what came back. See `calls.py`.

Usage: call_server.py emulated | real | kernels FOLDER

"real" calls the real library, whose operators have meta kernels only here. "kernels" gives those operators the
emulator's kernels, out of FOLDER, for CPU tensors: the real front end in front of our numbers.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import types
import warnings
from pathlib import Path

# What libraries print when they are loaded must not stand between the answers.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402


def main() -> None:
    import torch_npu

    if sys.argv[1] == "kernels":
        register_kernels(Path(sys.argv[2]))
    if sys.argv[1] == "real":
        from torch_npu.op_plugin.meta import _meta_registrations

        _meta_registrations.get_soc_version = lambda: 220  # an Atlas A2; there is no device to ask
    print(json.dumps({"version": torch_npu.__version__}), file=ANSWERS, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(torch_npu, json.loads(line))), file=ANSWERS, flush=True)


def register_kernels(folder: Path) -> None:
    package = types.ModuleType("emulated_kernels")
    package.__path__ = [str(folder / "torch_npu")]
    sys.modules["emulated_kernels"] = package
    registry = importlib.import_module("emulated_kernels.registry")
    for path in sorted((folder / "torch_npu" / "kernels").glob("*.py")):
        importlib.import_module(f"emulated_kernels.kernels.{path.stem}")
    registry.register(define=False)


def answer(torch_npu: types.ModuleType, call: dict) -> dict:
    if call.get("what") == "schemas":
        return {"schemas": schemas()}
    if call.get("what") == "autograd":
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        return {"operators": [name for name in schemas() if has(name, "AutogradPrivateUse1")]}
    if call.get("what") == "meta":
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        return {"operators": [name for name in schemas() if has(name, "Meta")]}
    torch.manual_seed(call.get("seed", 0))
    try:
        args = [made(value, call) for value in call["args"]]
        kwargs = {name: made(value, call) for name, value in call.get("kwargs", {}).items()}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = getattr(torch_npu, call["operator"])(*args, **kwargs)
            outputs = list(result) if isinstance(result, (tuple, list)) else [result]
            gradients = backward(outputs, [*args, *kwargs.values()]) if call.get("backward") else None
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:2000]}
    return {
        "outputs": [described(output, call) for output in outputs],
        "gradients": gradients,
        "warnings": [str(one.message)[:200] for one in caught],
    }


def schemas() -> dict[str, str]:
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("npu::"):
            found[f"{schema.name}.{schema.overload_name}".rstrip(".")] = str(schema)
    return found


def made(value, call):
    if isinstance(value, list):
        return [made(one, call) for one in value]
    if not isinstance(value, dict):
        return value
    if "dtype_of" in value:
        return getattr(torch, value["dtype_of"])
    dtype = getattr(torch, value["dtype"])
    device = call.get("device", "cpu")
    if "data" in value:
        return torch.tensor(value["data"], dtype=dtype).to(device)
    shape = value["shape"]
    if value.get("transposed"):
        shape = [*shape[:-2], shape[-1], shape[-2]]
    if dtype is torch.bool:
        tensor = torch.zeros(shape, dtype=dtype)
        if value.get("triangle"):
            tensor = torch.ones(shape, dtype=dtype).triu(1)
    elif not dtype.is_floating_point:
        tensor = torch.randint(0, value.get("below", 4), shape, dtype=dtype)
    else:
        tensor = torch.randn(shape).to(dtype)
        if value.get("bounded"):
            tensor = torch.cos(tensor.float()).to(dtype)
    if value.get("transposed"):
        tensor = tensor.transpose(-1, -2)
    if device == "meta":
        tensor = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device="meta")
    elif call.get("backward") and dtype.is_floating_point and not value.get("constant"):
        tensor.requires_grad_()
    return tensor


def backward(outputs, inputs):
    flat = [one for value in inputs for one in (value if isinstance(value, list) else [value])]
    wanted = [one for one in flat if isinstance(one, torch.Tensor) and one.requires_grad]
    total = sum(
        (one.float() * torch.linspace(-1, 1, one.numel()).reshape(one.shape)).sum()
        for one in outputs
        if isinstance(one, torch.Tensor) and one.requires_grad
    )
    if not isinstance(total, torch.Tensor):
        return ["no output has a gradient"]
    total.backward()
    return [encoded(one.grad) if one.grad is not None else None for one in wanted]


def described(output, call):
    if not isinstance(output, torch.Tensor):
        return {"value": output}
    found = {"shape": list(output.shape), "dtype": str(output.dtype).removeprefix("torch.")}
    if call.get("values"):
        found["values"] = encoded(output)
    return found


def encoded(tensor: torch.Tensor) -> str:
    wide = tensor.detach().to(torch.float64).contiguous()
    return base64.b64encode(wide.numpy().tobytes()).decode()


if __name__ == "__main__":
    main()
