"""How a rule is written: the vocabulary of `knowledge/`.

A rule says which fused operator takes the place of which chain of small operators. Its patterns and replacements are
ordinary functions, written as the code that they match. npufuse reads their source and never runs them in its own
process; the proof and the tests run them in a child, where `torch` and `torch_npu` are put into the module first.

This module knows neither the engine nor torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Risk, Severity, Verdict

Function = TypeVar("Function", bound=Callable[..., Any])


class Tensor:
    """Annotation of a pattern's parameter: any tensor value."""


class Parameter(Tensor):
    """Annotation: a tensor that the module holds (self.weight), a buffer, or an argument of the function; no activation."""


class Scalar:
    """Annotation: a Python number, an attribute that holds one, or arithmetic on such."""


class Flag:
    """Annotation: a value that is only tested: a mask that may be None, a bool, a config field."""


class Mask(Tensor):
    """Annotation: a tensor that decides or shifts, and that no gradient is asked of: an attention mask."""


def contiguous(tensor: Any) -> Any:
    """In a replacement: the tensor, made contiguous wherever the matched code does not show that it is."""
    return tensor.contiguous()


@cache
def _source_of(function: Callable[..., Any]) -> str:
    return inspect.getsource(function)


class MatchView(Protocol):
    """What a rule may ask about a match. Names are the parameters of the pattern."""

    variant: str
    file: str
    qualname: str

    def source(self, name: str) -> str:
        """The code that the input is, as it can be written where the fused call will stand."""

    def line(self, name: str) -> int | None:
        """The line on which the input is made."""

    def origin(self, name: str) -> str:
        """The operation that made the input: "parameter", "attribute", "call", "chunk", "transpose", "cat", "linear" …"""

    def constant(self, name: str) -> object:
        """The literal that the input is (also one that the constructor gives to the attribute), or None."""

    def same_source(self, one: str, other: str) -> bool:
        """Whether two inputs are computed by one call each, from the same value: gate_proj(x) and up_proj(x)."""

    def made_with(self, name: str) -> frozenset[str]:
        """The operations that the input is made with, a few steps back: "mean" says that a norm's input was centred."""

    def constructed(self, name: str) -> str | None:
        """The expression that the constructor gives to the attribute that the input is, or None."""

    def uses(self, word: str) -> int | None:
        """The line of the function, its decorators or its class on which the identifier `word` stands, or None."""

    def file_uses(self, word: str) -> int | None:
        """The first line of the file on which the identifier `word` stands, or None."""

    @property
    def first_line(self) -> int: ...


@dataclass(frozen=True)
class Pattern:
    """One way of writing the chain. `function` is read as source; see `Rule.pattern`."""

    rule: str
    variant: str
    function: Callable[..., Any]
    verdict: Verdict
    reason: Text | None
    priority: Priority | None

    @property
    def source(self) -> str:
        return _source_of(self.function)

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters)


@dataclass(frozen=True)
class Replacement:
    """The fused code for some variants (all, when `variants` is empty). Its parameters are the pattern's."""

    function: Callable[..., Any]
    variants: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return _source_of(self.function)


@dataclass(frozen=True)
class Example:
    """Makes the tensors for the executable proof: function(shape, dtype, parameter_dtype) → {pattern parameter: value}.

    dtypes are torch dtypes. `variants` empty means all.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class RiskCheck:
    code: str
    function: Callable[[MatchView], Risk | None]


@dataclass(frozen=True)
class Refusal:
    """What a condition answers when the match must not be replaced, or not without a second look.

    A `verdict` of None says that this is not a candidate at all: nothing is shown.
    """

    reason: Text
    verdict: Verdict | None = Verdict.REFUSED
    line: int | None = None


@dataclass
class Rule:
    """A fused operator, the chains that it can take the place of, and what must be known about doing so.

    Attributes:
        id: the rule's name in reports, commands and environment switches.
        family: groups rules in reports: "norm", "activation", "rotary", "attention", "moe", "affinity".
        api: the fused operator.
        title: what is replaced, for people.
        training: the operator has a backward.
        inference: the operator serves without one.
        dtypes: names of the dtypes that it takes.
        since: the first train of torch_npu whose schema has it (information; the installed schema decides).
        products: Ascend products that support it.
        docs: where its facts are from.
        needs: groups of regular expressions over bytes: where a match is, one of each group is found, in the function or
            in a helper that it calls.
        output_dtype: the pattern parameter whose dtype the fused output has.
        fixed_cost: what the replacement adds (a concat, a mask), said in the estimate.
        launches, memory_passes: of the fused operator itself.
        merge: neighbouring matches of one function are one block (a query and a key that rotate).
        outputs: how many of the values that the block returns are compared; None: all.
        helpers: functions that replacements and guards call, put once into a file that needs them: name → source.
        may_be_none: values of the chain that the function only returns (attention weights) may be None in the fused branch.
        sibling: the rule that serves the same code in training; this one is proposed for inference alone.
        defaults: keyword arguments of the fused call that are left out when they have these values.
        free_dtypes: groups of tensor parameters whose dtype may differ from the output's (a float32 table of cosines).
        at_most, multiple_of: the operator's limits on sizes that configurations name: "head_dim", "heads", …
    """

    id: str
    family: str
    api: str
    title: Text
    training: bool
    dtypes: tuple[str, ...]
    since: str
    products: tuple[str, ...]
    docs: str
    needs: tuple[tuple[bytes, ...], ...]
    inference: bool = True
    output_dtype: str = "x"
    priority: Priority = Priority.HIGH
    launches: int = 1
    memory_passes: int = 2
    version: int = 1
    merge: bool = False
    outputs: int | None = None
    free_dtypes: tuple[tuple[str, ...], ...] = ()
    may_be_none: bool = False
    sibling: str | None = None
    at_most: dict[str, int] = field(default_factory=dict)
    multiple_of: dict[str, int] = field(default_factory=dict)
    defaults: dict[str, object] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    patterns: list[Pattern] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    risks: list[RiskCheck] = field(default_factory=list)
    conditions: list[tuple[tuple[str, ...], Callable[[MatchView], Refusal | None]]] = field(default_factory=list)
    structures: list[Callable[..., Any]] = field(default_factory=list)
    guards: list[tuple[tuple[str, ...], Replacement]] = field(default_factory=list)

    def pattern(
        self,
        variant: str,
        *,
        verdict: Verdict = Verdict.RECOMMENDED,
        reason: Text | None = None,
        priority: Priority | None = None,
    ) -> Callable[[Function], Function]:
        """Declare one way of writing the chain.

        Parameters annotated `Tensor`, `Parameter`, `Scalar` or `Flag` match any value of that kind. A pattern stands
        for every spelling that computes the same (method or function, any order of commuting operands, names in
        between), and for every placement of casts: what casts change is settled by the dtype of the output.
        """

        def declare(function: Function) -> Function:
            self.patterns.append(Pattern(self.id, variant, function, verdict, reason, priority))
            return function

        return declare

    def replacement(self, function: Function | None = None, *, variants: Sequence[str] = ()) -> Any:
        """Declare the fused code. The body is one `return`; statements before it are put before the call."""

        def declare(function: Function) -> Function:
            self.replacements.append(Replacement(function, tuple(variants)))
            return function

        return declare(function) if function is not None else declare

    def example(
        self, *, shapes: Iterable[tuple[int, ...]], variants: Sequence[str] = ()
    ) -> Callable[[Function], Function]:
        """Declare how the inputs of the proof are made."""

        def declare(function: Function) -> Function:
            self.examples.append(Example(function, tuple(shapes), tuple(variants)))
            return function

        return declare

    def risk(self, code: str) -> Callable[[Function], Function]:
        """Declare a risk: looks at a match, returns a `Risk` with the line that shows it, or None."""

        def declare(function: Function) -> Function:
            self.risks.append(RiskCheck(code, function))
            return function

        return declare

    def condition(self, *variants: str) -> Callable[[Function], Function]:
        """Declare what must hold of a match: returns a `Refusal`, or None when all is well."""

        def declare(function: Function) -> Function:
            self.conditions.append((variants, function))
            return function

        return declare

    def guard(self, *variants: str) -> Callable[[Function], Function]:
        """Declare what must hold at run time for the fused branch to be taken: its `return` is put into the `if`.

        Its parameters are (some of) the pattern's; what it returns may call the rule's `helpers`.
        """

        def declare(function: Function) -> Function:
            self.guards.append((variants, Replacement(function)))
            return function

        return declare

    def structure(self, function: Function) -> Function:
        """Declare a matcher for code that is no expression (a loop over experts).

        function(view) → an iterable of `StructuralMatch`; `view` is described in docs/adding-an-operator.md.
        """
        self.structures.append(function)
        return function

    def replacement_for(self, variant: str) -> Replacement | None:
        """The replacement that names the variant, else the one that names none, else None (such matches are refused)."""
        named = [one for one in self.replacements if variant in one.variants]
        general = [one for one in self.replacements if not one.variants]
        return next(iter(named or general), None)

    def example_for(self, variant: str) -> Example | None:
        named = [one for one in self.examples if variant in one.variants]
        general = [one for one in self.examples if not one.variants]
        return next(iter(named or general), None)


def warning(code: str, message: Text, line: int | None = None) -> Risk:
    return Risk(code, Severity.WARNING, message, line)


def danger(code: str, message: Text, line: int | None = None) -> Risk:
    return Risk(code, Severity.DANGER, message, line)


def information(code: str, message: Text, line: int | None = None) -> Risk:
    return Risk(code, Severity.INFO, message, line)


def load_rules(extra: Iterable[Path] = ()) -> tuple[Rule, ...]:
    """Every rule of the `knowledge` package and of the folders or files in `extra`, in the order of their ids.

    `extra` is code: give only what the person asked for by name.
    """
    from npufuse_tui import knowledge

    modules = [
        importlib.import_module(f"{knowledge.__name__}.{info.name}")
        for info in pkgutil.iter_modules(knowledge.__path__)
    ]
    modules += [_load(path) for place in extra for path in _sources(place)]
    rules = [module.rule for module in modules if isinstance(getattr(module, "rule", None), Rule)]
    return tuple(sorted(rules, key=lambda rule: rule.id))


def _sources(place: Path) -> list[Path]:
    return sorted(place.glob("*.py")) if place.is_dir() else [place]


def _load(path: Path) -> ModuleType:
    name = f"npufuse_rules_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
