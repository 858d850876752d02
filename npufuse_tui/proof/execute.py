"""One plan, executed: every case as the original, as the fused code and as a float64 reference. Runs in the child."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npufuse_tui.language import Text
from npufuse_tui.model import Verdict
from npufuse_tui.proof import namespace
from npufuse_tui.proof.cases import Case, Inputs, Kinds, cases_of, kinds_of, make, with_other_names, with_others
from npufuse_tui.proof.compare import Difference, difference, dtype_name
from npufuse_tui.proof.outcome import KEPT, Outcome, joined, largest, said, skipped, smallest, summed_up
from npufuse_tui.proof.run import Region, Run, reference, run
from npufuse_tui.rules import Example, Pattern, Rule


@dataclass(frozen=True)
class PlannedRegion:
    """A plan's function, how its parameters are made out of the inputs of a case, and what it asks of them (or "")."""

    function: Callable[..., Any]
    names: dict[str, Any]
    values: Sequence[str]
    parameters: Sequence[str] = ()
    guard: str = ""

    def __call__(self, inputs: dict[str, Any]) -> Any:
        return self.function(*self._arguments(inputs))

    def holds(self, inputs: dict[str, Any]) -> bool:
        """Whether the edited code would take the fused branch for these inputs."""
        if not self.guard:
            return True
        given = dict(zip(self.parameters, self._arguments(inputs), strict=True))
        return bool(namespace.evaluate(self.guard, self.names, given))

    def _arguments(self, inputs: dict[str, Any]) -> list[Any]:
        return [namespace.evaluate(value, self.names, inputs) for value in self.values]


@dataclass(frozen=True)
class Manner:
    """How the cases of one plan are run and judged.

    `approximate`: the rule itself says that the variant differs near epsilon, so a case near zero is shown and not
    held against it. `dtype_as`: the input whose dtype the fused output must have, where that is not the original's
    (patterns, which stand for every placement of casts).
    """

    kinds: Kinds
    outputs: int
    gradients: bool
    device: str
    approximate: bool
    dtype_as: str | None = None


def prepare_rule(rule: Rule) -> dict[str, Any]:
    """Put torch, its usual short names and the rule's own helpers into the rule's module; the module's namespace."""
    functions: list[Any] = [*rule.examples, *rule.replacements, *rule.patterns]
    module: dict[str, Any] = functions[0].function.__globals__ if functions else {}
    # a rule may take patterns over from another one; they run with that module's names
    places = {id(one.function.__globals__): one.function.__globals__ for one in functions}
    for place in places.values():
        for name, value in namespace.fresh().items():
            if name not in ("__name__", "__builtins__"):
                place.setdefault(name, value)
        place.setdefault("contiguous", _contiguous)
        for text in rule.helpers.values():
            namespace.run_source(text, place, "helper")
    return module


def _contiguous(tensor: Any) -> Any:
    """What `contiguous(x)` of a replacement stands for; the rewriter writes it only where it may be needed."""
    return tensor.contiguous()


def execute(plan: Mapping[str, Any], rule: Rule, options: Mapping[str, Any]) -> Outcome:
    """Run a plan (as `npufuse_tui.proof.plan.as_json` made it) over the cases of its rule's example.

    `options`: "device" ("cpu" or "npu"), "dtypes" (names, empty for all of the rule's) and, for an operator check,
    "captured": calls as `npufuse_tui.proof.captured.materialised` gives them, in place of the example's cases.
    """
    variant = plan["variant"]
    pattern = next((one for one in rule.patterns if one.variant == variant), None)
    example = rule.example_for(variant)
    module = prepare_rule(rule)
    captured = options.get("captured")
    if example is None and not captured:
        return skipped(
            Text(
                "the rule {rule} has no example for its variant {variant}", "规则 {rule} 的变体 {variant} 没有示例"
            ).format(rule=rule.id, variant=variant)
        )
    kinds = with_other_names(_kinds(pattern, module, example, rule), plan["values"])
    if captured:
        cases = [_captured_case(one) for one in captured]
    else:
        assert example is not None
        cases = list(cases_of(rule, example, kinds, options.get("dtypes") or ()))
    try:
        original, fused, exact = (_region(plan, which) for which in ("original", "fused", "original"))
    except BaseException as problem:
        return skipped(
            Text(
                "the code of the plan does not compile or its setup fails: {why}",
                "验证计划的代码无法编译，或其准备步骤失败：{why}",
            ).format(why=said(problem))
        )

    def values_of(case: Case) -> Mapping[str, Any]:
        if case.captured is not None:
            return case.captured
        assert example is not None
        return with_others(make(module, example, case), plan["values"], lambda seed: make(module, example, case, seed))

    manner = Manner(
        kinds=kinds,
        outputs=int(plan["outputs"]),
        gradients=rule.training,
        device=options.get("device", "cpu"),
        approximate=pattern is not None and pattern.verdict is not Verdict.RECOMMENDED,
    )
    return run_cases(cases, values_of, (original, fused, exact), manner)


def run_cases(
    cases: Sequence[Case],
    values_of: Callable[[Case], Mapping[str, Any]],
    regions: tuple[Region, Region, Region],
    manner: Manner,
) -> Outcome:
    """Run every case through original, fused and reference, compare, and sum up.

    An original that raises with gradients in every case (inference code that writes in place) is run without them.
    """
    results: list[Outcome] = []
    left_out: list[Text] = []
    with_gradients = manner.gradients
    for with_gradients in (True, False) if manner.gradients else (False,):
        left_out.clear()
        for case in cases:
            inputs = Inputs(values_of(case), case, manner.kinds, manner.device, with_gradients and case.gradients)
            try:
                results.append(_one_case(inputs, regions, manner))
            except _OriginalRaises as problem:
                where = f"{case.shape_text} {case.dtype_text} {case.layout}"
                left_out.append(Text("{where}: {why}", "{where}：{why}").format(where=where, why=problem.text))
        if results:
            break
    if not results:
        reason = left_out[0] if left_out else Text("the rule's dtypes were all excluded", "规则的 dtype 均被排除")
        return skipped(
            Text(
                "the original code does not run outside of its class: {why}", "原代码无法脱离其所在的类单独运行：{why}"
            ).format(why=reason)
        )
    return summed_up(results, left_out, manner.approximate, lost_gradients=manner.gradients and not with_gradients)


class _OriginalRaises(Exception):
    """The original itself cannot run this case, so the case says nothing."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


def _one_case(inputs: Inputs, regions: tuple[Region, Region, Region], manner: Manner) -> Outcome:
    torch = importlib.import_module("torch")
    original, fused, exact = regions
    case = inputs.case
    try:
        old = run(torch, original, inputs, manner.outputs)
    except BaseException as problem:
        raise _OriginalRaises(said(problem)) from problem
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
        if isinstance(fused, PlannedRegion) and not fused.holds(inputs.give()[0]):
            return {**result, "passed": True, "reason": KEPT}
        new = run(torch, fused, inputs, manner.outputs)
    except BaseException as problem:
        result["reason"] = Text("the fused code raises {why}", "融合代码报错 {why}").format(why=said(problem))
        return result
    reasons: list[Text] = []
    if manner.dtype_as is not None:
        wanted = inputs.values[manner.dtype_as].dtype
        wrong = [dtype_name(one.dtype) for one in _tensors(torch, new.outputs) if one.dtype != wanted]
        result["dtype_equal"] = not wrong
        if wrong:
            reasons.append(
                Text("the output's dtype is {now} instead of {was}", "输出的 dtype 为 {now}，应为 {was}").format(
                    now=wrong[0], was=dtype_name(wanted)
                )
            )
        old = Run([_cast(torch, one, wanted) for one in old.outputs], old.gradients)
    else:
        result["dtype_equal"] = _dtypes(torch, new.outputs) == _dtypes(torch, old.outputs)
    wide = reference(torch, exact, inputs, manner.outputs)
    found = _outputs_compared(torch, old, new, wide, inputs, reasons)
    slopes = _gradients_compared(torch, old, new, wide, inputs, reasons)
    reasons += [one.reason for one in (*found, *slopes) if one.reason is not None]
    result.update(
        dtype_out=_dtypes(torch, new.outputs),
        cosine=smallest(one.cosine for one in found),
        abs_diff=largest(one.abs_diff for one in found),
        grad_cosine=smallest(one.cosine for one in slopes),
        grad_abs_diff=largest(one.abs_diff for one in slopes),
        reference_error_original=largest(one.error_original for one in found),
        reference_error_fused=largest(one.error_fused for one in found),
        passed=not reasons,
        reason=joined(reasons),
    )
    return result


def _outputs_compared(
    torch: Any, old: Run, new: Run, wide: Run | None, inputs: Inputs, reasons: list[Text]
) -> list[Difference]:
    """The differences of the outputs that are tensors; what is wrong besides is added to `reasons`."""
    if len(old.outputs) != len(new.outputs):
        reasons.append(
            Text("{now} outputs instead of {was}", "输出为 {now} 个，应为 {was} 个").format(
                now=len(new.outputs), was=len(old.outputs)
            )
        )
    found: list[Difference] = []
    for place, (was, now) in enumerate(zip(old.outputs, new.outputs, strict=False)):
        number = "" if len(old.outputs) == 1 else f" {place}"
        what = Text("output{number}", "输出{number}").format(number=number)
        if isinstance(was, torch.Tensor) and isinstance(now, torch.Tensor):
            truth = wide.outputs[place] if wide is not None and place < len(wide.outputs) else None
            truth = truth if isinstance(truth, torch.Tensor) else None
            found.append(_difference(was, now, truth, what, inputs, gradient=False))
        elif isinstance(was, torch.Tensor) or isinstance(now, torch.Tensor) or was != now:
            reasons.append(
                Text("{what}: {now} instead of {was}", "{what}：{now}，应为 {was}").format(
                    what=what, now=_short(now), was=_short(was)
                )
            )
    return found


def _gradients_compared(
    torch: Any, old: Run, new: Run, wide: Run | None, inputs: Inputs, reasons: list[Text]
) -> list[Difference]:
    """The differences of the gradients; one that the fused code no longer gives is a reason of its own."""
    slopes: list[Difference] = []
    for name, was in old.gradients.items():
        now, truth = new.gradients.get(name), (wide.gradients.get(name) if wide is not None else None)
        if was is None and now is None:
            continue
        if now is None and bool((was != 0).any()):
            reasons.append(Text("the gradient of {name} is lost", "{name} 的梯度丢失").format(name=name))
            slopes.append(Difference(0.0, float(was.abs().max()), None, None, None))
            continue
        before = was if was is not None else torch.zeros_like(now)
        after = now if now is not None else torch.zeros_like(was)
        what = Text("gradient of {name}", "{name} 的梯度").format(name=name)
        slopes.append(_difference(before, after, truth, what, inputs, gradient=True))
    return slopes


def _difference(was: Any, now: Any, truth: Any, what: Text, inputs: Inputs, *, gradient: bool) -> Difference:
    on_npu = inputs.device == "npu"
    return difference(was, now, truth, what=what, working=inputs.case.dtype, gradient=gradient, on_npu=on_npu)


def _region(plan: Mapping[str, Any], which: str) -> PlannedRegion:
    function, names = namespace.function_of(plan["setup"], plan[which], which)
    guard = plan.get("guard", "") if which == "fused" else ""
    return PlannedRegion(function, names, tuple(plan["values"]), tuple(plan["parameters"]), guard)


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


def _kinds(pattern: Pattern | None, module: dict[str, Any], example: Example | None, rule: Rule) -> Kinds:
    """For a variant without a pattern (a structural one), every tensor of the example is an activation."""
    if pattern is not None:
        return kinds_of(pattern)
    if example is None:
        return Kinds(frozenset(), frozenset())
    torch = module["torch"]
    values = make(module, example, Case(example.shapes[0], rule.dtypes[0], rule.dtypes[0], "contiguous"))
    return Kinds(frozenset(name for name, one in values.items() if isinstance(one, torch.Tensor)), frozenset())


def _tensors(torch: Any, outputs: Sequence[Any]) -> list[Any]:
    return [one for one in outputs if isinstance(one, torch.Tensor)]


def _dtypes(torch: Any, outputs: Sequence[Any]) -> str:
    return ", ".join(dtype_name(one.dtype) for one in _tensors(torch, outputs))


def _cast(torch: Any, value: Any, dtype: Any) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _short(value: Any) -> str:
    text = f"tensor {tuple(value.shape)}" if hasattr(value, "shape") else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
