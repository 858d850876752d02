"""Two results compared: cosine, largest difference, dtype, and the error of both against a more exact run.

Two questions are asked of each pair of tensors, and both must be answered well:

* the limit that is promised: cosine > 0.999 or max |Δ| < 1e-4;
* whether the fused result is as good as the original's. A cosine hides a wrong scale (a wrong epsilon has a cosine of
  1), so each element is also compared, relative to its own size and the tensor's root mean square. What differs by
  more than the rounding of the dtype is held against a float64 run of the original: the fused result may be twice as
  far from it as the original is, plus that rounding. A result that is better than the original's is never called worse.

Runs in the child; needs torch.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from npufuse_tui.language import Text

COSINE_LIMIT = 0.999
ABSOLUTE_LIMIT = 1e-4

# Rounding of one dtype through a chain of small operators, relative to |value| + rms: about 100 ulp in float32 (sums in
# another order), 4 ulp in the half types (each operator of the chain rounds). Gradients sum over more terms.
_ROUNDING = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3.2e-2}
_GRADIENT_FACTOR = 4.0
# Vector units of the NPU may compute float32 products with fewer bits (HF32).
_NPU_FLOAT32 = 2e-3

_SHAPE = Text("{what}: shape {now} instead of {was}", "{what}：形状为 {now}，应为 {was}")
_DTYPE = Text("{what}: dtype {now} instead of {was}", "{what}：dtype 为 {now}，应为 {was}")
_VALUES = Text("{what}: {wrong} of {all} values differ", "{what}：{all} 个值中有 {wrong} 个不同")
_LOST = Text("{what}: {count} values are no longer finite", "{what}：{count} 个值不再是有限值")
_GAINED = Text("{what}: {count} values are finite that were not", "{what}：{count} 个原本非有限的值变为有限")
_COSINE = Text(
    "{what}: cosine {cosine:.6f}, largest difference {largest:.3g}", "{what}：余弦 {cosine:.6f}，最大差 {largest:.3g}"
)
_APART = Text(
    "{what}: differs by {apart:.3g} of its size, {kind} rounding explains {allowed:.1g}",
    "{what}：相对差 {apart:.3g}，{kind} 舍入只能解释 {allowed:.1g}",
)
_ERROR = Text(
    "{what}: error {fused:.3g} against float64, the original's is {original:.3g}",
    "{what}：相对 float64 的误差为 {fused:.3g}，原代码为 {original:.3g}",
)


@dataclass(frozen=True)
class Difference:
    """What two tensors differ by. `reason` is None when they agree."""

    cosine: float
    abs_diff: float
    error_original: float | None
    error_fused: float | None
    reason: Text | None


def dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def difference(
    original: Any, fused: Any, reference: Any, *, what: Text, working: str, gradient: bool, on_npu: bool
) -> Difference:
    """Compare two tensors, with the same of a float64 run where there is one (else None).

    `working` is the dtype that the inputs came in: its rounding is allowed in a wider result, too, since the chain may
    round to it on the way.
    """
    torch = importlib.import_module("torch")
    if tuple(original.shape) != tuple(fused.shape):
        return Difference(
            0.0, float("inf"), None, None, _SHAPE.format(what=what, now=_shape(fused), was=_shape(original))
        )
    if original.dtype != fused.dtype:
        is_now, was = dtype_name(fused.dtype), dtype_name(original.dtype)
        cosine, largest = _cosine(_exact(torch, original), _exact(torch, fused))
        return Difference(cosine, largest, None, None, _DTYPE.format(what=what, now=is_now, was=was))
    kind = dtype_name(original.dtype)
    if not (original.dtype.is_floating_point or original.dtype.is_complex):
        wrong = int((original != fused).sum())
        unequal = _VALUES.format(what=what, wrong=wrong, all=original.numel()) if wrong else None
        return Difference(0.0 if wrong else 1.0, float(wrong), None, None, unequal)
    old, new = _exact(torch, original), _exact(torch, fused)
    exact = _exact(torch, reference) if reference is not None and reference.shape == original.shape else None
    usable = torch.isfinite(old) & torch.isfinite(new)
    lost = torch.isfinite(old) & ~torch.isfinite(new)
    if bool(lost.any()):
        return Difference(0.0, float("inf"), None, None, _LOST.format(what=what, count=int(lost.sum())))
    gained = ~torch.isfinite(old) & torch.isfinite(new)
    if bool(gained.any()) and (exact is None or not bool(torch.isfinite(exact)[gained].all())):
        count = int(gained.sum())
        return Difference(0.0, float("inf"), None, None, _GAINED.format(what=what, count=count))
    old, new = old[usable], new[usable]
    if old.numel() == 0:
        return Difference(1.0, 0.0, None, None, None)
    cosine, largest = _cosine(old, new)
    allowed = max(_ROUNDING.get(name, _ROUNDING["float32"]) for name in (kind, working))
    if on_npu and "float32" in (kind, working):
        allowed = max(allowed, _NPU_FLOAT32)
    allowed *= _GRADIENT_FACTOR if gradient else 1.0
    apart = _relative(old, new, old)
    error_original = error_fused = None
    if exact is not None:
        exact = exact[usable]
        error_original, error_fused = _relative(exact, old, exact), _relative(exact, new, exact)
    reason = None
    better = error_fused is not None and error_original is not None and error_fused <= error_original
    if not (cosine > COSINE_LIMIT or largest < ABSOLUTE_LIMIT) and not (
        better and {"float16", "bfloat16"} & {working, kind}
    ):
        reason = _COSINE.format(what=what, cosine=cosine, largest=largest)
    elif apart > allowed and error_fused is None:
        reason = _APART.format(what=what, apart=apart, kind=kind, allowed=allowed)
    elif apart > allowed and error_fused is not None and error_original is not None:
        limit = 2 * error_original + allowed
        if not error_fused <= limit:
            reason = _ERROR.format(what=what, fused=error_fused, original=error_original)
    return Difference(cosine, largest, error_original, error_fused, reason)


def _exact(torch: Any, tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.to(torch.float64).flatten()


def _cosine(old: Any, new: Any) -> tuple[float, float]:
    """Cosine of two flat float64 tensors (1 when both are zero, 0 when one is), and max |Δ|."""
    if old.numel() == 0:
        return 1.0, 0.0
    largest = float((old - new).abs().max())
    lengths = float(old.norm()) * float(new.norm())
    if lengths == 0.0:
        return (1.0 if largest == 0.0 else 0.0), largest
    return float(old @ new) / lengths, largest


def _relative(truth: Any, value: Any, scale: Any) -> float:
    """The largest difference of any element, relative to its size plus the root mean square of the whole."""
    if truth.numel() == 0:
        return 0.0
    rms = float(scale.square().mean().sqrt())
    size = scale.abs() + rms
    size[size == 0] = 1.0
    return float(((truth - value).abs() / size).max())


def _shape(tensor: Any) -> str:
    return "×".join(str(size) for size in tensor.shape) or "scalar"
