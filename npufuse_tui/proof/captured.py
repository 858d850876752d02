"""Inputs as a run of the launch command had them, made again: same shapes, dtypes and strides. Runs in the child.

A value is described as plain data:

* {"kind": "tensor", "shape", "dtype", "stride", "requires_grad", "mean", "std"}: random, normal with that mean and
  spread (a tensor that was constant, such as a weight of ones, is given a spread: a constant hides mistakes);
* the same with "file" and "key": the recorded tensor itself, out of a file of tensors (loaded with `weights_only`);
* {"kind": "value", "value": …}: a number, a string, None, a list of these.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from npufuse_tui.proof.cases import with_others

_LEAST_SPREAD = 0.3


def materialised(captured: Sequence[Mapping[str, Any]], expressions: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The captured calls with real tensors in place of their descriptions.

    `expressions` are the values of the plan: a name `x_2` in them that was not captured is another tensor like `x`.
    """
    torch = importlib.import_module("torch")
    torch.manual_seed(20240229)

    def made(specs: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _value(torch, spec) for name, spec in specs.items()}

    def whole(specs: Mapping[str, Any]) -> dict[str, Any]:
        return with_others(made(specs), expressions, lambda _: made(specs))

    return [{**call, "values": whole(call["values"])} for call in captured]


def _value(torch: Any, spec: Mapping[str, Any]) -> Any:
    if spec["kind"] != "tensor":
        return spec["value"]
    if spec.get("file"):
        recorded = torch.load(spec["file"], map_location="cpu", weights_only=True)[spec["key"]]
        kept = recorded[tuple(slice(0, length) for length in spec["shape"])]
        return _marked(torch, _with_strides(torch, kept, spec["stride"]), spec)
    dtype = getattr(torch, spec["dtype"])
    shape = tuple(spec["shape"])
    if dtype.is_floating_point or dtype.is_complex:
        spread = spec.get("std")
        centre = spec.get("mean")
        values = torch.randn(shape, dtype=torch.complex64 if dtype.is_complex else torch.float32)
        centre = 0.0 if centre is None else centre
        values = values * (spread or _LEAST_SPREAD * max(1.0, abs(centre))) + centre
    elif dtype == torch.bool:
        values = torch.rand(shape) < 0.5
    else:
        values = torch.randint(int(spec.get("low") or 0), int(spec.get("high") or 0) + 1, shape)
    return _marked(torch, _with_strides(torch, values.to(dtype), spec["stride"]), spec)


def _with_strides(torch: Any, values: Any, stride: Sequence[int]) -> Any:
    """`values` in memory as the strides say; a dim of stride 0 holds its first value throughout."""
    if tuple(values.stride()) == tuple(stride) or values.numel() == 0:
        return values
    size = 1 + sum((length - 1) * step for length, step in zip(values.shape, stride, strict=True))
    view = torch.zeros(size, dtype=values.dtype).as_strided(values.shape, tuple(stride))
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)
    view[first] = values[first]
    return view


def _marked(torch: Any, tensor: Any, spec: Mapping[str, Any]) -> Any:
    if spec.get("requires_grad") and (tensor.is_floating_point() or tensor.is_complex()):
        tensor.requires_grad_(True)
    return tensor
