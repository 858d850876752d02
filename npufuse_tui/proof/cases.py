"""The cases that a plan is run with, and the inputs of each. Runs in the child; needs torch.

A case is an example shape × a dtype × a dtype of the parameters × a layout. Layouts:

* contiguous: as the example made it;
* transposed: dims -2 and -3 (of 2-D tensors: -1 and -2) lie swapped in memory, as after `view(…).transpose(1, 2)`;
* sliced: the tensor is the first half of a wider one, as after `chunk(2, -1)`;
* near zero: values a thousandth of their size, where an epsilon that is not the original's shows;
* autocast: as contiguous, run inside `torch.autocast(dtype=bfloat16)`.

Layouts and magnitudes apply to activations (pattern parameters annotated `Tensor`), not to what a module holds.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from npufuse_tui.rules import Example, Pattern, Rule

_SHAPES_WITH_LAYOUTS = 2
_NEAR_ZERO = 1e-3


@dataclass(frozen=True)
class Case:
    """One case; `shape` is the example's, or the captured shapes as text when `captured` holds them."""

    shape: tuple[int, ...]
    dtype: str
    parameter_dtype: str
    layout: str
    captured: Mapping[str, Any] | None = None
    label: str = ""
    autocast: str | None = None
    gradients: bool = True

    @property
    def shape_text(self) -> str:
        return self.label or "×".join(str(size) for size in self.shape)

    @property
    def dtype_text(self) -> str:
        same = self.parameter_dtype == self.dtype
        return self.dtype if same else f"{self.dtype}, parameters {self.parameter_dtype}"


@dataclass(frozen=True)
class Kinds:
    """Which inputs of a pattern are which, read from the annotations of its parameters."""

    activations: frozenset[str]
    parameters: frozenset[str]
    without_gradient: frozenset[str] = field(default_factory=frozenset)


def kinds_of(pattern: Pattern) -> Kinds:
    """Annotations as written: "Tensor", "Parameter", "Scalar", "Flag", "Mask"; none stands for a tensor."""
    by_kind: dict[str, set[str]] = {kind: set() for kind in ("Tensor", "Parameter", "Scalar", "Flag", "Mask")}
    for name, parameter in inspect.signature(pattern.function).parameters.items():
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Tensor")
        by_kind.setdefault(text.rpartition(".")[2], by_kind["Tensor"]).add(name)
    return Kinds(
        frozenset(by_kind["Tensor"]),
        frozenset(by_kind["Parameter"]),
        frozenset(by_kind["Scalar"] | by_kind["Flag"] | by_kind["Mask"]),
    )


def cases_of(rule: Rule, example: Example, kinds: Kinds, dtypes: Sequence[str]) -> Iterator[Case]:
    """Every case of an example. `dtypes` narrows the rule's own; empty means all of them."""
    wanted = [name for name in rule.dtypes if not dtypes or name in dtypes]
    mixed = bool(kinds.parameters or rule.free_dtypes)
    for position, shape in enumerate(example.shapes):
        for dtype in wanted:
            yield Case(shape, dtype, dtype, "contiguous")
            if mixed and dtype != "float32":
                yield Case(shape, dtype, "float32", "contiguous")
            if position < _SHAPES_WITH_LAYOUTS:
                yield Case(shape, dtype, dtype, "transposed")
                yield Case(shape, dtype, dtype, "sliced")
    if example.shapes and "float32" in wanted:
        yield Case(example.shapes[0], "float32", "float32", "near zero")
    if example.shapes and "bfloat16" in wanted:
        held = "float32" if mixed else "bfloat16"
        yield Case(example.shapes[0], "bfloat16", held, "autocast", autocast="bfloat16")


class Inputs:
    """The inputs of one case: made once, given out afresh for each run.

    `leaves` are the tensors that gradients are taken of, by name.
    """

    def __init__(self, values: Mapping[str, Any], case: Case, kinds: Kinds, device: str, gradients: bool) -> None:
        self.values = dict(values)
        self.case = case
        self.device = device
        self.gradients = gradients
        self._kinds = kinds
        torch = importlib.import_module("torch")
        marked = any(isinstance(value, torch.Tensor) and value.requires_grad for value in values.values())
        self._differentiable = {
            name
            for name, value in values.items()
            if gradients
            and isinstance(value, torch.Tensor)
            and (value.is_floating_point() or value.is_complex())
            and (value.requires_grad if marked else name not in kinds.without_gradient)
        }

    def give(self, wide: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """The inputs for one run, and the leaves among them. `wide` casts all floating-point tensors to that dtype."""
        torch = importlib.import_module("torch")
        given: dict[str, Any] = {}
        leaves: dict[str, Any] = {}
        for name, value in self.values.items():
            if not isinstance(value, torch.Tensor):
                given[name] = value
                continue
            tensor = value.detach()
            if self.case.layout == "near zero" and name in self._kinds.activations and tensor.is_floating_point():
                tensor = tensor * _NEAR_ZERO
            if wide is not None and tensor.is_floating_point():
                tensor = tensor.to(wide)
            leaf = _copy_with_strides(torch, tensor.to(self.device))
            if name in self._differentiable:
                leaf.requires_grad_(True)
                leaves[name] = leaf
            given[name] = leaf if name in self._kinds.parameters else self._laid_out(torch, name, leaf)
        return given, leaves

    def _laid_out(self, torch: Any, name: str, leaf: Any) -> Any:
        """A view that the region may also write to, which a leaf does not allow."""
        layout = self.case.layout if name in self._kinds.activations else "contiguous"
        if layout == "transposed" and leaf.dim() >= 2:
            first, second = (-2, -3) if leaf.dim() >= 3 else (-1, -2)
            return leaf.transpose(first, second).contiguous().transpose(first, second)
        if layout == "sliced" and leaf.dim() >= 1:
            return torch.cat([leaf, leaf], dim=-1)[..., : leaf.shape[-1]]
        return _copy_with_strides(torch, leaf)


def _copy_with_strides(torch: Any, tensor: Any) -> Any:
    """A copy with the strides of the tensor kept (`clone` makes a view's strides dense)."""
    if tensor.is_contiguous() or tensor.numel() == 0:
        return tensor.clone()
    size = 1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    storage = torch.zeros(size, dtype=tensor.dtype, device=tensor.device)
    view = storage.as_strided(tensor.shape, tensor.stride())
    if 0 in tensor.stride():
        index = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())
        view[index] = tensor.detach()[index]
        return view if not tensor.requires_grad else tensor.clone()
    if not tensor.requires_grad:
        view.copy_(tensor)
        return view
    return _strided(torch, tensor, size)


def _strided(torch: Any, leaf: Any, size: int) -> Any:
    """As the leaf, with its strides, through operations that carry gradients back to it."""
    positions = torch.arange(size, device=leaf.device).as_strided(leaf.shape, leaf.stride()).reshape(-1)
    storage = torch.zeros(size, dtype=leaf.dtype, device=leaf.device).index_put((positions,), leaf.reshape(-1))
    return storage.as_strided(leaf.shape, leaf.stride())


def seed_of(case: Case) -> int:
    """Equal for the same case, so that every run of it sees the same random numbers."""
    return zlib.crc32(f"{case.shape_text} {case.layout}".encode()) % 2**31


def with_other_names(kinds: Kinds, expressions: Iterable[str]) -> Kinds:
    """The kinds with the names `x_2`, `x_3` … that a plan's values use, each of the kind of its `x`."""

    def widened(names: frozenset[str]) -> frozenset[str]:
        return names | {name for name, base, _ in _others(expressions) if base in names}

    return Kinds(widened(kinds.activations), widened(kinds.parameters), widened(kinds.without_gradient))


def with_others(
    values: Mapping[str, Any], expressions: Iterable[str], another: Callable[[int], Mapping[str, Any]]
) -> dict[str, Any]:
    """The values and, for each name `x_2` that the plan uses, the `x` of another set, which `another(2)` makes."""
    found = dict(values)
    for name, base, number in _others(expressions):
        if name not in values and base in values:
            found[name] = another(number)[base]
    return found


def _others(expressions: Iterable[str]) -> list[tuple[str, str, int]]:
    names = {node.id for one in expressions for node in ast.walk(ast.parse(one)) if isinstance(node, ast.Name)}
    found = [(name, re.fullmatch(r"(.+)_(\d+)", name)) for name in sorted(names)]
    return [(name, match.group(1), int(match.group(2))) for name, match in found if match is not None]


def make(rule_module: Mapping[str, Any], example: Example, case: Case, another: int = 0) -> dict[str, Any]:
    """The example's tensors of a case; `another` gives others of the same kind.

    `rule_module` is the namespace of the rule, which must hold torch by now.
    """
    torch = rule_module["torch"]
    torch.manual_seed(seed_of(case) + another)
    values = example.function(case.shape, getattr(torch, case.dtype), getattr(torch, case.parameter_dtype))
    return dict(values)
