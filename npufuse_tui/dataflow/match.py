"""A pattern's graph against a function's graph.

Sums and products match in any order and any grouping; casts in the code are stepped over (what they change is settled
afterwards, by the dtype of the output); an activation that is looked up at run time matches the one that the pattern
names, on a condition that goes into the guard.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from npufuse_tui.dataflow.calls import UNKNOWN
from npufuse_tui.dataflow.graph import COMMUTATIVE, Node, step_over, strip_casts
from npufuse_tui.dataflow.lower import FunctionGraph
from npufuse_tui.dataflow.pattern import CompiledPattern

MOST_CUTS = 24

NOT_TENSORS = frozenset(
    {
        "constant",
        "tuple",
        "dtype",
        "dtype_name",
        "shape",
        "size",
        "slice",
        "floordiv",
        "function",
        "constant_name",
    }
)

SCALAR_OPS = frozenset(
    {
        "constant",
        "constant_name",
        "attribute",
        "parameter",
        "size",
        "global",
        "floordiv",
        "builtin",
        "getitem",
        "phi",
        "compare",
    }
)


class Bound(NamedTuple):
    """What a partial match has found so far."""

    values: dict[str, Node]
    inside: frozenset[Node]
    activations: tuple[tuple[Node, str, tuple[object, ...]], ...] = ()
    watched: frozenset[int] = frozenset()

    def with_value(self, name: str, node: Node) -> Bound:
        return Bound({**self.values, name: node}, self.inside, self.activations, self.watched)

    def with_inside(self, *nodes: Node) -> Bound:
        return Bound(self.values, self.inside.union(nodes), self.activations, self.watched)


@dataclass(eq=False, slots=True)
class Match:
    """A place where a function computes what a pattern computes."""

    pattern: CompiledPattern
    function: FunctionGraph
    root: Node
    values: dict[str, Node]
    inside: frozenset[Node]
    activations: tuple[tuple[Node, str, tuple[object, ...]], ...]
    extras: tuple[Node, ...] = ()

    @property
    def variant(self) -> str:
        return self.pattern.variant


def find(pattern: CompiledPattern, function: FunctionGraph) -> Iterator[Match]:
    """Every place in the function that the pattern matches; places may overlap."""
    nodes = function.graph.by_op()
    wanted = pattern.root.op
    found = nodes.get(wanted, [])
    if wanted in ("silu", "gelu"):
        found = [*found, *nodes.get("activation", [])]
    for node in list(found):
        watched = frozenset(extra.id for extra in pattern.extras)
        for bound in unify(pattern.root, node, Bound({}, frozenset(), (), watched)):
            values = dict(bound.values)
            for name, default in pattern.optional.items():
                values.setdefault(name, function.graph.constant(default))
            values = {name: value for name, value in values.items() if name in pattern.kinds}
            if len(values) == len(pattern.kinds):
                extras = tuple(bound.values[f"={extra.id}"] for extra in pattern.extras)
                yield Match(pattern, function, node, values, bound.inside, bound.activations, extras)
                break


def unify(pattern: Node, subject: Node, bound: Bound) -> Iterator[Bound]:
    """All ways in which `subject` is what `pattern` says."""
    if pattern.id in bound.watched:
        bound = bound.with_value(f"={pattern.id}", strip_casts(subject))
    if pattern.op == "wildcard":
        yield from _wildcard(pattern, subject, bound)
        return
    if pattern.is_constant:
        if _equal_constants(pattern, subject):
            yield bound
        return
    if pattern.op == "phi":
        while subject.op in ("cast", "contiguous", "clone"):
            bound, subject = bound.with_inside(subject), subject.args[0]
    elif stepped := _steps(subject):
        bound, subject = bound.with_inside(*stepped), strip_casts(subject)
    if subject.op == "activation" and pattern.op in ("silu", "gelu"):
        usual = subject.attrs[0] or "silu"
        if usual != " ".join([pattern.op, *map(str, pattern.attrs)]):
            return
        inner = Bound(
            bound.values,
            bound.inside | {subject},
            (*bound.activations, (subject.args[1], pattern.op, pattern.attrs)),
            bound.watched,
        )
        yield from unify(pattern.args[0], subject.args[0], inner)
        return
    if pattern.op == "dropout" and subject.op != "dropout" and all(map(_is_optional, pattern.args[1:])):
        yield from unify(pattern.args[0], subject, bound)
        return
    if pattern.op in COMMUTATIVE and (pattern.op != subject.op or any(map(_is_optional, _operands(pattern)))):
        required = [one for one in _operands(pattern) if not _is_optional(one)]
        if len(required) == 1:
            yield from unify(required[0], subject, bound)
    if pattern.op != subject.op:
        return
    if pattern.op in COMMUTATIVE:
        yield from _commuting(pattern, subject, bound)
        return
    if pattern.op in ("carried", "element"):
        # a loop's own names: each stands for the same one throughout
        name = f"@{pattern.id}"
        known = bound.values.get(name)
        if known is None:
            yield from _in_order(pattern.args, subject.args, bound.with_value(name, subject))
        elif known is subject:
            yield bound
        return
    if pattern.op == "global":
        if pattern.attrs[0] == subject.attrs[0]:
            yield bound
        return
    if not _same_attrs(pattern, subject) or len(pattern.args) != len(subject.args):
        return
    yield from _in_order(pattern.args, subject.args, bound.with_inside(subject))


def _in_order(patterns: tuple[Node, ...], subjects: tuple[Node, ...], bound: Bound) -> Iterator[Bound]:
    if not patterns:
        yield bound
        return
    for first in unify(patterns[0], subjects[0], bound):
        yield from _in_order(patterns[1:], subjects[1:], first)


def _wildcard(pattern: Node, subject: Node, bound: Bound) -> Iterator[Bound]:
    name, kind = str(pattern.attrs[0]), str(pattern.attrs[1])
    known = bound.values.get(name)
    if known is not None:
        if known is subject or strip_casts(known) is strip_casts(subject):
            stepped = _steps(subject)
            yield bound.with_inside(*stepped) if stepped else bound
        return
    if not _fits(kind, subject):
        return
    stepped = _steps(subject)
    yield (bound.with_inside(*stepped) if stepped else bound).with_value(name, subject)


def _steps(subject: Node) -> list[Node]:
    """The casts, copies and choices between casts that lie over a value."""
    steps: list[Node] = []
    while (beneath := step_over(subject)) is not None:
        steps.append(subject)
        if subject.op == "phi":
            steps.extend(step for arm in subject.args[1:] for step in _steps(arm))
        subject = beneath
    return steps


def _fits(kind: str, subject: Node) -> bool:
    plain = strip_casts(subject)
    if kind == "flag":
        return True
    if kind == "scalar":
        return is_scalar(plain)
    if plain.op in NOT_TENSORS:
        return False
    if kind == "parameter":
        return is_held(plain)
    return not (plain.op == "mul" and plain.args[0].is_constant and is_scalar(plain))


def is_held(node: Node) -> bool:
    """Whether a value is something that the module holds, or an argument of the function: no activation."""
    if node.op in ("attribute", "parameter", "global"):
        return True
    if node.op == "getitem" and node.args[0].op != "call":
        return is_held(node.args[0])
    return False


def is_scalar(node: Node) -> bool:
    """Whether a value can be a Python number, for all that the graph shows."""
    if node.op == "constant":
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if node.op in ("mul", "add", "pow", "sqrt", "rsqrt", "reciprocal", "square"):
        return all(is_scalar(arg) for arg in node.args)
    return node.op in SCALAR_OPS


def _equal_constants(pattern: Node, subject: Node) -> bool:
    subject = strip_casts(subject)
    if not subject.is_constant and subject.op != "constant_name":
        return False
    value = subject.value if subject.is_constant else subject.args[0].value
    expected = pattern.value
    if isinstance(expected, (int, float)) and isinstance(value, (int, float)) and not isinstance(expected, bool):
        return math.isclose(expected, value, rel_tol=1e-4)
    return bool(expected == value)


def _same_attrs(pattern: Node, subject: Node) -> bool:
    if pattern.attrs == subject.attrs:
        return True
    if UNKNOWN in subject.attrs or len(pattern.attrs) != len(subject.attrs):
        return False
    if pattern.op == "transpose":
        return _same_dims(pattern.attrs, subject.attrs)
    if pattern.op == "flatten":
        # stack(…, -1) of a 4-D tensor has five dims: its last two are flattened from the third on
        return pattern.attrs == (-2, -1) and subject.attrs[0] in (3, -2) and subject.attrs[1] in (-1, 4)
    if pattern.op in ("cat", "stack", "softmax"):
        # the third or the fourth dim, counted from the front, where the pattern says the last
        return pattern.attrs == (-1,) and subject.attrs[0] in (2, 3)
    return False


def _same_dims(wanted: tuple[object, ...], given: tuple[object, ...]) -> bool:
    """Whether two pairs of dims are one pair for tensors of three, four or five dims (counted from the end: -2, -1)."""
    for rank in (3, 4, 5):
        fits = all(isinstance(dim, int) and -rank <= dim < rank for dim in (*wanted, *given))
        if fits and {dim % rank for dim in wanted} == {dim % rank for dim in given}:  # type: ignore[operator]
            return True
    return False


def _commuting(pattern: Node, subject: Node, bound: Bound) -> Iterator[Bound]:
    patterns = sorted(_operands(pattern), key=_specificity)
    for leaves, passed in itertools.islice(_cuts(subject, len(patterns)), MOST_CUTS):
        yield from _assigned(patterns, leaves, bound.with_inside(*passed))


def _operands(pattern: Node) -> list[Node]:
    found: list[Node] = []
    for arg in pattern.args:
        found.extend(_operands(arg) if arg.op == pattern.op else [arg])
    return found


def _is_optional(pattern: Node) -> bool:
    return pattern.op == "wildcard" and bool(pattern.attrs[2])


def _specificity(pattern: Node) -> int:
    """The pickiest operand first, so that a wrong way is left early."""
    if pattern.is_constant:
        return 0
    if pattern.op != "wildcard":
        return 1
    return {"scalar": 3, "parameter": 2}.get(str(pattern.attrs[1]), 4)


def _cuts(subject: Node, count: int) -> Iterator[tuple[list[Node], list[Node]]]:
    """Every way to read a nested sum or product as `count` operands, with the nodes that are passed on the way."""
    if count == 1:
        yield [subject], []
        return
    passed = _steps(subject)
    plain = strip_casts(subject)
    if plain.op not in COMMUTATIVE:
        return
    passed.append(plain)
    for left in range(1, count):
        lefts = [([plain.args[0]], [])] if left == 1 else list(_same_op_cuts(plain.args[0], plain.op, left))
        right = count - left
        rights = [([plain.args[1]], [])] if right == 1 else list(_same_op_cuts(plain.args[1], plain.op, right))
        for (one, by), (other, way) in itertools.product(lefts, rights):
            yield [*one, *other], [*passed, *by, *way]


def _same_op_cuts(subject: Node, op: str, count: int) -> Iterator[tuple[list[Node], list[Node]]]:
    return _cuts(subject, count) if strip_casts(subject).op == op else iter(())


def _assigned(patterns: list[Node], leaves: list[Node], bound: Bound) -> Iterator[Bound]:
    if not patterns:
        yield bound
        return
    for place, leaf in enumerate(leaves):
        rest = leaves[:place] + leaves[place + 1 :]
        for first in unify(patterns[0], leaf, bound):
            yield from _assigned(patterns[1:], rest, first)
