"""The dataflow graph of a function: what the code computes, whatever its spelling.

Nodes are hash-consed: the same operation on the same values is one node, wherever it is written. The places where
it is written are kept with it, so that a match leads back to statements. `Graph.make` brings every node into a
canonical form first (x*x, x**2 and torch.square(x) are one node), so that a pattern covers every spelling.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Site(NamedTuple):
    """Where a node is written: the statement and the expression of the analysed function.

    Code of an inlined helper has the site of the call; `depth` counts the helpers in between.
    """

    statement: ast.stmt
    expression: ast.expr
    depth: int


@dataclass(slots=True, eq=False)
class Node:
    """One value. `op` names the operation, `args` are its operands, `attrs` its literals."""

    id: int
    op: str
    args: tuple[Node, ...] = ()
    attrs: tuple[object, ...] = ()
    sites: list[Site] = field(default_factory=list)

    def __repr__(self) -> str:
        inside = ", ".join([*(repr(arg) for arg in self.args), *(f"{value!r}" for value in self.attrs)])
        return f"{self.op}({inside})" if inside else self.op

    @property
    def is_constant(self) -> bool:
        return self.op == "constant"

    @property
    def value(self) -> object:
        """The literal of a constant; None for anything else."""
        return self.attrs[0] if self.op == "constant" else None

    def walk(self) -> Iterator[Node]:
        """This node and all that it is computed from, each once, operands after their users."""
        seen: set[int] = set()
        stack = [self]
        while stack:
            node = stack.pop()
            if node.id in seen:
                continue
            seen.add(node.id)
            yield node
            stack.extend(reversed(node.args))


FLOAT_CASTS = {
    "float": "float32",
    "float32": "float32",
    "half": "float16",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
    "float64": "float64",
}

COMMUTATIVE = frozenset({"add", "mul"})


FOLDABLE = frozenset({"add", "sub", "mul", "div", "floordiv", "pow", "neg", "sqrt"})


class Graph:
    """Makes nodes, each in canonical form and once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[object, ...], Node] = {}
        self.site: Site | None = None
        self._by_op: tuple[int, dict[str, list[Node]]] | None = None

    def fresh(self, op: str, *args: Node, attrs: tuple[object, ...] = ()) -> Node:
        """A node that equals no other: the result of something that is not known to be pure."""
        node = Node(len(self.nodes), op, args, attrs)
        self.nodes.append(node)
        return self._seen_here(node)

    def constant(self, value: object) -> Node:
        return self._intern("constant", (), (value,))

    def make(self, op: str, *args: Node, attrs: tuple[object, ...] = ()) -> Node:
        """The node for `op(*args, *attrs)` in canonical form."""
        rewritten = self._canonical(op, args, attrs)
        return self._seen_here(rewritten if rewritten is not None else self._intern(op, args, attrs))

    def by_op(self) -> dict[str, list[Node]]:
        """The nodes that the analysed function itself makes, by their operation, in the order in which they were made."""
        if self._by_op is None or self._by_op[0] != len(self.nodes):
            found: dict[str, list[Node]] = {}
            for node in self.nodes:
                if any(not site.depth for site in node.sites):
                    found.setdefault(node.op, []).append(node)
            self._by_op = (len(self.nodes), found)
        return self._by_op[1]

    def _intern(self, op: str, args: tuple[Node, ...], attrs: tuple[object, ...]) -> Node:
        # 1, 1.0 and True are equal in Python and are not the same literal
        key: tuple[object, ...]
        if attrs:
            key = (op, tuple([arg.id for arg in args]), tuple([(type(value).__name__, _key(value)) for value in attrs]))
        else:
            key = (op, tuple([arg.id for arg in args]))
        node = self._known.get(key)
        if node is None:
            node = Node(len(self.nodes), op, args, attrs)
            self.nodes.append(node)
            self._known[key] = node
        return node

    def _seen_here(self, node: Node) -> Node:
        site = self.site
        if site is not None and node.op != "constant" and (not node.sites or node.sites[-1] is not site):
            node.sites.append(site)
        return node

    def _canonical(self, op: str, args: tuple[Node, ...], attrs: tuple[object, ...]) -> Node | None:
        if op in FOLDABLE and args[0].op == "constant":
            folded = self._folded(op, args)
            if folded is not None:
                return folded
        if op == "pow" and len(args) == 2:
            return self._power(args[0], args[1])
        if op == "sub":
            return self.make("add", args[0], self.make("neg", args[1]))
        if op == "neg":
            return self.make("mul", self.constant(-1), args[0])
        if op == "div":
            return self._quotient(args[0], args[1])
        if op == "reciprocal":
            return self._reciprocal(args[0])
        if op == "mul":
            return self._product(args[0], args[1])
        if op == "matmul" and len(args) == 2:
            return None
        if op in ("contiguous", "clone") and args and args[0].op in ("contiguous", "clone"):
            return args[0]
        if op == "getitem" and args[0].op == "tuple" and args[1].is_constant and isinstance(args[1].value, int):
            index = args[1].value
            if -len(args[0].args) <= index < len(args[0].args):
                return args[0].args[index]
        if op == "getitem" and args[0].op == "shape" and args[1].is_constant and isinstance(args[1].value, int):
            return self.make("size", args[0].args[0], attrs=(args[1].value,))
        if op == "size":
            return self._size(args[0], attrs[0])
        if op == "getitem" and args[0].op == "unbind" and args[1].is_constant:
            return self._unbound(args[0], args[1].value)
        if op == "getitem" and args[0].op == "chunk" and args[1].is_constant:
            return self._intern("piece", (args[0].args[0],), (*args[0].attrs, args[1].value))
        return None

    def _unbound(self, unbind: Node, which: object) -> Node | None:
        """One of the two tensors that a last dim, seen as (2, d) or (d, 2), is unbound into: a half, or every second value."""
        whole, dim = unbind.args[0], unbind.attrs[0]
        if whole.op == "unflatten" and whole.args[1].value in (-1, 3) and whole.args[2].op == "tuple":
            base, sizes = whole.args[0], whole.args[2].args
        elif whole.op == "reshape" and whole.args[1].op == "tuple":
            base, sizes = whole.args[0], whole.args[1].args[-2:]
        else:
            return None
        if len(sizes) != 2 or which not in (0, 1):
            return None
        if sizes[0].value == 2 and dim == -2:
            return self._intern("piece", (base,), (2, -1, which))
        if sizes[1].value == 2 and dim == -1:
            none, start = self.constant(None), self.constant(1 if which else None)
            every_second = self._intern("slice", (start, none, self.constant(2)), ())
            return self._intern("index", (base, self.constant(...), every_second), ())
        return None

    def size_of(self, of: Node, dim: int) -> Node:
        """The node of `of.size(dim)`, without saying that it is written anywhere."""
        return self._size(of, dim) or self._intern("size", (of,), (dim,))

    def _size(self, of: Node, dim: object) -> Node | None:
        """A size that a reshape or an expand spells out, or that both arms of a choice share."""
        if not isinstance(dim, int):
            return None
        if of.op in ("cast", "contiguous", "clone", "dropout", "softmax", "mul_scalar"):
            return self.size_of(of.args[0], dim)
        if of.op in ("reshape", "expand") and len(of.args) == 2 and of.args[1].op == "tuple":
            sizes = of.args[1].args
            if -len(sizes) <= dim < len(sizes) and not any(size.op == "starred" for size in sizes):
                chosen = sizes[dim]
                return chosen if chosen.value != -1 and chosen.op != "mul" else None
        if of.op == "phi":
            one, other = (self.size_of(arm, dim) for arm in of.args[1:])
            return one if one is other else None
        return None

    def _folded(self, op: str, args: tuple[Node, ...]) -> Node | None:
        """Arithmetic on numbers, done now."""
        if not args or not all(arg.is_constant and isinstance(arg.value, (int, float)) for arg in args):
            return None
        values = [arg.value for arg in args]
        try:
            match op, values:
                case "add", [a, b]:
                    return self.constant(a + b)  # type: ignore[operator]
                case "sub", [a, b]:
                    return self.constant(a - b)  # type: ignore[operator]
                case "mul", [a, b]:
                    return self.constant(a * b)  # type: ignore[operator]
                case "div", [a, b]:
                    return self.constant(a / b)  # type: ignore[operator]
                case "floordiv", [a, b]:
                    return self.constant(a // b)  # type: ignore[operator]
                case "pow", [a, b]:
                    result = a**b  # type: ignore[operator]
                    return self.constant(result) if isinstance(result, (int, float)) else None
                case "neg", [a]:
                    return self.constant(-a)  # type: ignore[operator]
                case "sqrt", [a]:
                    return self.constant(math.sqrt(a))  # type: ignore[arg-type]
        except (ArithmeticError, ValueError):
            return None
        return None

    def _power(self, base: Node, exponent: Node) -> Node | None:
        value = exponent.value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if value == 2:
                return self._intern("square", (base,), ())
            if value == 1:
                return base
            if value == 0.5:
                return self.make("sqrt", base)
            if value == -0.5:
                return self.make("rsqrt", base)
            if value == -1:
                return self._reciprocal(base)
        return None

    def _quotient(self, top: Node, bottom: Node) -> Node:
        if isinstance(bottom.value, (int, float)) and bottom.value:
            return self.make("mul", top, self.constant(1.0 / bottom.value))
        return self.make("mul", top, self._reciprocal(bottom))

    def _reciprocal(self, of: Node) -> Node:
        plain = strip_casts(of)
        if plain.op == "sqrt":
            return self.make("rsqrt", plain.args[0])
        if plain.op == "rsqrt":
            return self.make("sqrt", plain.args[0])
        if plain.op == "reciprocal":
            return plain.args[0]
        return self._intern("reciprocal", (of,), ())

    def _product(self, left: Node, right: Node) -> Node | None:
        if left.value == 1 and not isinstance(left.value, bool):
            return right
        if right.value == 1 and not isinstance(right.value, bool):
            return left
        if not left.is_constant and strip_casts(left) is strip_casts(right):
            return self._intern("square", (left,), ())
        for gate, value in ((left, right), (right, left)):
            plain = strip_casts(gate)
            if plain.op == "sigmoid" and strip_casts(plain.args[0]) is strip_casts(value):
                return self._intern("silu", (value,), ())
        # a sum of squares over a dim, divided by the size of that dim, is their mean
        for total, factor in ((left, right), (right, left)):
            plain = strip_casts(total)
            if plain.op == "sum" and factor.op == "reciprocal" and factor.args[0].op == "size":
                size, dim = factor.args[0], _only(plain.attrs[0])
                summed = strip_elementwise(plain.args[0])
                if isinstance(dim, int) and (size.attrs[0] == dim and same_shape(size.args[0], summed)):
                    return self._intern("mean", plain.args, plain.attrs)
        return None


def _key(value: object) -> object:
    return repr(value) if isinstance(value, float) else value


def _only(dims: object) -> object:
    return dims[0] if isinstance(dims, tuple) and len(dims) == 1 else dims


def strip_casts(node: Node) -> Node:
    """The value beneath casts between floating types, copies and `contiguous`, on every path the same."""
    while True:
        beneath = step_over(node)
        if beneath is None:
            return node
        node = beneath


def step_over(node: Node) -> Node | None:
    """The value that this node passes on unchanged but for its dtype or its layout in memory; None when it computes."""
    if node.op in ("cast", "contiguous", "clone"):
        return node.args[0]
    if node.op == "phi":
        one, other = strip_casts(node.args[1]), strip_casts(node.args[2])
        return one if one is other else None
    return None


def strip_upcasts(node: Node) -> Node:
    """The value beneath casts to float32, which lose nothing that a half tensor holds."""
    while node.op == "cast" and node.attrs == ("float32",) and len(node.args) == 1:
        node = node.args[0]
    return node


def same_shape(one: Node, other: Node) -> bool:
    """Whether two values have one shape, for all that the graph shows: equal beneath elementwise steps."""
    return strip_elementwise(one) is strip_elementwise(other)


def strip_elementwise(node: Node) -> Node:
    """The value beneath elementwise steps of one operand."""
    while node.op in ("cast", "contiguous", "clone", "square", "pow", "sqrt", "rsqrt", "abs") and node.args:
        node = node.args[0]
    return node
