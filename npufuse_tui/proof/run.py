"""One run of a region: forward, and backward with fixed cotangents. Runs in the child."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from npufuse_tui.proof.cases import Inputs, seed_of

Region = Callable[[dict[str, Any]], Any]
"""Takes the inputs by name, gives back what the region's code gives back."""


@dataclass(frozen=True)
class Run:
    """What a region gave back: its outputs, flat, and the gradients of the leaves by name (None: none reached it)."""

    outputs: list[Any]
    gradients: dict[str, Any]


def run(torch: Any, region: Region, inputs: Inputs, outputs: int, wide: Any = None) -> Run:
    """Run a region on fresh inputs. `outputs` as in a plan; `wide` is the dtype of a reference run, outside of
    autocast.

    Every run of a case sees the same random state, and the same cotangents for outputs of the same place.
    """
    case, seed = inputs.case, seed_of(inputs.case)
    given, leaves = inputs.give(wide)
    torch.manual_seed(seed)
    autocast: Any = contextlib.nullcontext()
    if case.autocast is not None and wide is None:
        autocast = torch.autocast(inputs.device, dtype=getattr(torch, case.autocast))
    with torch.set_grad_enabled(inputs.gradients), autocast:
        back = region(given)
    flat = list(_flatten(_selected(back, outputs)))
    slopes: dict[str, Any] = dict.fromkeys(leaves)
    reached = [
        (place, one) for place, one in enumerate(flat) if isinstance(one, torch.Tensor) and one.requires_grad and leaves
    ]
    if reached:
        cotangents = [_cotangent(torch, one, seed + place) for place, one in reached]
        found = torch.autograd.grad([one for _, one in reached], list(leaves.values()), cotangents, allow_unused=True)
        slopes = dict(zip(leaves, found, strict=True))
    return Run([one.detach() if isinstance(one, torch.Tensor) else one for one in flat], slopes)


def reference(torch: Any, region: Region, inputs: Inputs, outputs: int) -> Run | None:
    """The original in float64, else in float32 where it cannot take float64, else nothing."""
    for wide in [torch.float64, torch.float32] if inputs.device == "cpu" else [torch.float32]:
        try:
            return run(torch, region, inputs, outputs, wide)
        except Exception:  # noqa: S112 - an original that cannot take a wider dtype has no reference, which is said
            continue
    return None


def _cotangent(torch: Any, tensor: Any, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    kind = torch.complex64 if tensor.is_complex() else torch.float32
    values = torch.randn(tuple(tensor.shape), generator=generator, dtype=kind)
    return values.to(device=tensor.device, dtype=tensor.dtype)


def _selected(back: Any, outputs: int) -> Any:
    """The part of what came back that is compared; see `npufuse_tui.proof.plan`."""
    if outputs == 0 or not isinstance(back, (tuple, list)):
        return back
    return back[0] if outputs == 1 and back else back[:outputs]


def _flatten(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _flatten(one)
    elif isinstance(value, Mapping):
        for key in value:
            yield from _flatten(value[key])
    else:
        yield value
