"""One plan, executed: every case run as the original, as the fused code and as a float64 reference. Runs in the child.

The outcome is plain data (JSON), in the fields of `npufuse_tui.model.Check` and `CaseResult`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npufuse_tui.model import Verdict
from npufuse_tui.proof import namespace
from npufuse_tui.proof.cases import Case, Inputs, Kinds, cases_of, kinds_of, make
from npufuse_tui.proof.compare import Difference, difference, dtype_name
from npufuse_tui.rules import Example, Pattern, Rule

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Region:
    """A function to run and how its parameters are made out of the inputs of a case."""

    function: Callable[..., Any]
    names: dict[str, Any]
    values: Sequence[str]

    def __call__(self, inputs: dict[str, Any]) -> Any:
        return self.function(*(namespace.evaluate(value, self.names, inputs) for value in self.values))


@dataclass(frozen=True)
class Run:
    """What a region gave back: its outputs, flat, and the gradients of the leaves by name (None: none reached it)."""

    outputs: list[Any]
    gradients: dict[str, Any]


def prepare_rule(rule: Rule, extra: Iterable[str] = ()) -> dict[str, Any]:
    """Put torch, its usual short names and the rule's own helpers into the rule's module; the module's namespace."""
    functions: list[Any] = [*rule.examples, *rule.replacements, *rule.patterns]
    module: dict[str, Any] = functions[0].function.__globals__ if functions else {}
    for name, value in namespace.fresh().items():
        if name not in ("__name__", "__builtins__"):
            module.setdefault(name, value)
    module.setdefault("contiguous", _contiguous)
    for text in (*rule.helpers.values(), *extra):
        namespace.run_source(text, module, "helper")
    return module


def _contiguous(tensor: Any) -> Any:
    """What `contiguous(x)` of a replacement stands for; the rewriter writes it only where it may be needed."""
    return tensor.contiguous()


def execute(plan: Mapping[str, Any], rule: Rule, options: Mapping[str, Any]) -> Outcome:
    """Run a plan (as `npufuse_tui.proof.plan.as_json` made it) over the cases of its rule's example.

    `options`: "device" ("cpu" or "npu"), "dtypes" (names, empty for all of the rule's) and, for an operator check,
    "captured": a list of {"label", "dtype", "parameter_dtype", "values"} that takes the place of the example's cases.
    """
    variant = plan["variant"]
    pattern = next((one for one in rule.patterns if one.variant == variant), None)
    example = rule.example_for(variant)
    kinds = kinds_of(pattern) if pattern is not None else Kinds(frozenset(), frozenset())
    module = prepare_rule(rule)
    captured = options.get("captured")
    if captured:
        cases: list[Case] = [_captured_case(one) for one in captured]
    elif example is None:
        return skipped(f"the rule {rule.id} has no example for its variant {variant}")
    else:
        kinds = _with_all_tensors(kinds, pattern, module, example, rule)
        cases = list(cases_of(rule, example, kinds, options.get("dtypes") or ()))
    try:
        original, fused, reference = (_region(plan, which) for which in ("original", "fused", "original"))
    except BaseException as problem:
        return skipped(f"the code of the plan does not compile or its setup fails: {_said(problem)}")

    def values_of(case: Case) -> Mapping[str, Any]:
        if case.captured is not None:
            return case.captured
        assert example is not None
        return make(module, example, case, seed_of(case))

    return run_cases(
        cases,
        values_of,
        (original, fused, reference),
        kinds=kinds,
        outputs=int(plan["outputs"]),
        gradients=rule.training,
        device=options.get("device", "cpu"),
        approximate=pattern is not None and pattern.verdict is not Verdict.RECOMMENDED,
    )


def run_cases(
    cases: Sequence[Case],
    values_of: Callable[[Case], Mapping[str, Any]],
    regions: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]],
    *,
    kinds: Kinds,
    outputs: int,
    gradients: bool,
    device: str,
    approximate: bool,
    dtype_as: str | None = None,
) -> Outcome:
    """Run every case through original, fused and reference, compare, and sum up.

    `approximate`: the rule itself says that the variant differs near epsilon, so a case near zero is shown and not
    held against it. `dtype_as`: the input whose dtype the fused output must have, where that is not the original's
    (patterns, which stand for every placement of casts).
    """
    results: list[Outcome] = []
    left_out: list[str] = []
    for with_gradients in (True, False) if gradients else (False,):
        left_out.clear()
        for case in cases:
            try:
                one = _one_case(case, values_of(case), regions, kinds, outputs, with_gradients, device, dtype_as)
                results.append(one)
            except _OriginalRaises as problem:
                left_out.append(f"{case.shape_text} {case.dtype_text} {case.layout}: {problem}")
        if results:
            break
    if not results:
        return skipped(f"the original code does not run outside of its class: {left_out[0]}" if left_out else "no case")
    return _summed_up(results, left_out, approximate, lost_gradients=gradients and not with_gradients)


class _OriginalRaises(Exception):
    """The original itself cannot run this case, so the case says nothing."""


def _one_case(
    case: Case,
    values: Mapping[str, Any],
    regions: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]],
    kinds: Kinds,
    outputs: int,
    gradients: bool,
    device: str,
    dtype_as: str | None,
) -> Outcome:
    torch = importlib.import_module("torch")
    gradients = gradients and case.gradients
    inputs = Inputs(values, case, kinds, device, gradients)
    original, fused, exact = regions
    seed = seed_of(case)
    try:
        old = _run(torch, original, inputs, case, outputs, gradients, seed, device)
    except BaseException as problem:
        raise _OriginalRaises(_said(problem)) from problem
    result: Outcome = {
        "shape": case.shape_text,
        "dtype": case.dtype_text,
        "layout": case.layout,
        "cosine": None,
        "abs_diff": None,
        "grad_cosine": None,
        "grad_abs_diff": None,
        "dtype_out": _dtypes(torch, old.outputs),
        "dtype_equal": None,
        "passed": False,
        "reference_error_original": None,
        "reference_error_fused": None,
        "reason": None,
    }
    try:
        new = _run(torch, fused, inputs, case, outputs, gradients, seed, device)
    except BaseException as problem:
        result["reason"] = f"the fused code raises {_said(problem)}"
        return result
    wide = _reference(torch, exact, inputs, case, outputs, gradients, seed, device)
    result["dtype_out"] = _dtypes(torch, new.outputs)
    if dtype_as is not None:
        wanted = values[dtype_as].dtype
        wrong = [dtype_name(one.dtype) for one in _tensors(torch, new.outputs) if one.dtype != wanted]
        result["dtype_equal"] = not wrong
        if wrong:
            result["reason"] = f"output: dtype {wrong[0]} instead of {dtype_name(wanted)}"
        old = Run([_cast(torch, one, wanted) for one in old.outputs], old.gradients)
    else:
        result["dtype_equal"] = result["dtype_out"] == _dtypes(torch, old.outputs)
    reasons = [result["reason"]] if result["reason"] else []
    if len(old.outputs) != len(new.outputs):
        reasons.append(f"{len(new.outputs)} outputs instead of {len(old.outputs)}")
    on_npu = device == "npu"
    found: list[Difference] = []
    for position, (was, now) in enumerate(zip(old.outputs, new.outputs, strict=False)):
        what = "output" if len(old.outputs) == 1 else f"output {position}"
        if isinstance(was, torch.Tensor) and isinstance(now, torch.Tensor):
            truth = wide.outputs[position] if wide and position < len(wide.outputs) else None
            truth = truth if isinstance(truth, torch.Tensor) else None
            found.append(difference(was, now, truth, what=what, working=case.dtype, gradient=False, on_npu=on_npu))
        elif isinstance(was, torch.Tensor) or isinstance(now, torch.Tensor) or was != now:
            reasons.append(f"{what}: {_short(now)} instead of {_short(was)}")
    slopes: list[Difference] = []
    for name, was in old.gradients.items():
        now, truth = new.gradients.get(name), (wide.gradients.get(name) if wide else None)
        if was is None and now is None:
            continue
        if now is None and bool((was != 0).any()):
            reasons.append(f"the gradient of {name} is lost")
            slopes.append(Difference(0.0, float(was.abs().max()), None, None, None))
            continue
        was = was if was is not None else torch.zeros_like(now)
        now = now if now is not None else torch.zeros_like(was)
        slopes.append(
            difference(was, now, truth, what=f"gradient of {name}", working=case.dtype, gradient=True, on_npu=on_npu)
        )
    reasons += [one.reason for one in (*found, *slopes) if one.reason]
    result.update(
        cosine=min((one.cosine for one in found), default=None),
        abs_diff=max((one.abs_diff for one in found), default=None),
        grad_cosine=min((one.cosine for one in slopes), default=None),
        grad_abs_diff=max((one.abs_diff for one in slopes), default=None),
        reference_error_original=_largest(one.error_original for one in found),
        reference_error_fused=_largest(one.error_fused for one in found),
        passed=not reasons,
        reason="; ".join(reasons) or None,
    )
    return result


def _run(
    torch: Any,
    region: Callable[..., Any],
    inputs: Inputs,
    case: Case,
    outputs: int,
    gradients: bool,
    seed: int,
    device: str,
    wide: Any = None,
) -> Run:
    """Forward and, where asked, backward with the same random cotangents for the same outputs."""
    given, leaves = inputs.give(wide)
    torch.manual_seed(seed)
    autocast: Any = contextlib.nullcontext()
    if case.autocast is not None and wide is None:
        autocast = torch.autocast(device, dtype=getattr(torch, case.autocast))
    with torch.set_grad_enabled(gradients), autocast:
        back = region(given)
    flat = list(_flatten(torch, _selected(back, outputs)))
    slopes: dict[str, Any] = dict.fromkeys(leaves)
    if gradients and leaves:
        reached = [
            (index, one) for index, one in enumerate(flat) if isinstance(one, torch.Tensor) and one.requires_grad
        ]
        if reached:
            cotangents = [_cotangent(torch, one, seed + index) for index, one in reached]
            found = torch.autograd.grad(
                [one for _, one in reached], list(leaves.values()), cotangents, allow_unused=True
            )
            slopes = dict(zip(leaves, found, strict=True))
    return Run([one.detach() if isinstance(one, torch.Tensor) else one for one in flat], slopes)


def _reference(
    torch: Any,
    region: Callable[..., Any],
    inputs: Inputs,
    case: Case,
    outputs: int,
    gradients: bool,
    seed: int,
    device: str,
) -> Run | None:
    """The original in float64, else float32 where it cannot take float64, else nothing."""
    wider = [torch.float64, torch.float32] if device == "cpu" else [torch.float32]
    for wide in wider:
        try:
            return _run(torch, region, inputs, case, outputs, gradients, seed, device, wide)
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


def _flatten(torch: Any, value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _flatten(torch, one)
    elif isinstance(value, Mapping):
        for key in value:
            yield from _flatten(torch, value[key])
    else:
        yield value


def _region(plan: Mapping[str, Any], which: str) -> Region:
    function, names = namespace.function_of(plan["setup"], plan[which], which)
    return Region(function, names, tuple(plan["values"]))


def _captured_case(one: Mapping[str, Any]) -> Case:
    return Case(
        (),
        one["dtype"],
        one["parameter_dtype"],
        "as captured",
        captured=one["values"],
        label=one["label"],
        autocast=one.get("autocast"),
        gradients=one.get("gradients", True),
    )


def _with_all_tensors(kinds: Kinds, pattern: Pattern | None, module: Any, example: Example, rule: Rule) -> Kinds:
    """For a variant without a pattern (a structural one), every tensor of the example is an activation."""
    if pattern is not None:
        return kinds
    torch = module["torch"]
    values = make(module, example, Case(example.shapes[0], rule.dtypes[0], rule.dtypes[0], "contiguous"), 0)
    tensors = {name for name, value in values.items() if isinstance(value, torch.Tensor)}
    return Kinds(frozenset(tensors), frozenset())


def _summed_up(results: list[Outcome], left_out: list[str], approximate: bool, lost_gradients: bool) -> Outcome:
    failed = [one for one in results if not one["passed"]]
    counted = [one for one in failed if not (approximate and one["layout"] == "near zero")]
    reason: str | None = None
    if counted:
        first = counted[0]
        where = f"{first['shape']} {first['dtype']} {first['layout']}"
        reason = f"{len(counted)} of {len(results)} cases failed; {where}: {first['reason']}"
    elif failed:
        reason = f"differs near zero, as the rule says: {failed[0]['reason']}"
    elif lost_gradients:
        reason = "run without gradients, since the original raises with them"
    elif left_out:
        reason = f"{len(left_out)} cases left out, since the original raises in them; {left_out[0]}"
    return {
        "status": "failed" if counted else "passed",
        "cases": len(results),
        "worst_cosine": _smallest(one["cosine"] for one in results),
        "worst_abs_diff": _largest(one["abs_diff"] for one in results),
        "worst_grad_cosine": _smallest(one["grad_cosine"] for one in results),
        "dtype_equal": _all_equal([one["dtype_equal"] for one in results]),
        "reason": reason,
        "per_case": [{key: value for key, value in one.items() if key != "dtype_equal"} for one in results],
    }


def skipped(reason: str) -> Outcome:
    """The outcome of a plan that said nothing, with the reason."""
    return {
        "status": "skipped",
        "cases": 0,
        "worst_cosine": None,
        "worst_abs_diff": None,
        "worst_grad_cosine": None,
        "dtype_equal": None,
        "reason": reason,
        "per_case": [],
    }


def failed(reason: str) -> Outcome:
    """The outcome of a plan that is wrong before anything was measured."""
    return {**skipped(reason), "status": "failed"}


def seed_of(case: Case) -> int:
    """Equal for the same case, so that every run of it sees the same random numbers."""
    return zlib.crc32(f"{case.shape_text} {case.layout}".encode()) % 2**31


def _tensors(torch: Any, outputs: Iterable[Any]) -> list[Any]:
    return [one for one in outputs if isinstance(one, torch.Tensor)]


def _dtypes(torch: Any, outputs: Iterable[Any]) -> str:
    return ", ".join(dtype_name(one.dtype) for one in _tensors(torch, outputs))


def _cast(torch: Any, value: Any, dtype: Any) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _all_equal(answers: list[bool | None]) -> bool | None:
    """None when no case got as far as an output."""
    given = [one for one in answers if one is not None]
    return all(given) if given else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((one for one in values if one is not None), default=None)


def _smallest(values: Iterable[float | None]) -> float | None:
    return min((one for one in values if one is not None), default=None)


def _short(value: Any) -> str:
    text = f"tensor {tuple(value.shape)}" if hasattr(value, "shape") else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _said(problem: BaseException) -> str:
    """Class and first line of an error, and the line of the plan's code that raised it."""
    first = (str(problem).strip().splitlines() or [""])[0][:300]
    frames = [one for one in traceback.extract_tb(problem.__traceback__) if one.filename.startswith("<")]
    where = f" ({frames[-1].filename.strip('<>')} line {frames[-1].lineno})" if frames else ""
    if isinstance(problem, KeyboardInterrupt):
        sys.exit(130)
    return f"{type(problem).__name__}: {first}{where}"
