"""The chain of small operators of a match, in the order in which they run, and what it launches and moves.

Counted from the graph: an operator that computes is one launch; a view is none. A full-size operand is one pass over
memory, and so is a full-size result; what a reduction over the last dim leaves is too small to count.
"""

from __future__ import annotations

import ast

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.match import Match
from npufuse_tui.model import Estimate, Step
from npufuse_tui.rewrite.region import site_of

VIEWS = frozenset(
    {"piece", "chunk", "split", "getitem", "index", "transpose", "permute", "unsqueeze", "squeeze", "reshape", "expand"}
    | {
        "size",
        "shape",
        "dtype",
        "tuple",
        "attribute",
        "parameter",
        "phi",
        "constant",
        "unbind",
        "slice",
        "compare",
        "global",
    }
    | {"view_as_complex", "view_as_real", "movedim", "flatten", "unflatten", "builtin", "floordiv", "dtype_name"}
)

REDUCTIONS = frozenset({"mean", "sum"})

COPIES = frozenset({"contiguous", "clone", "cat", "stack", "repeat", "repeat_interleave"})


def chain(match: Match) -> tuple[Step, ...]:
    """The operators of the match that launch something."""
    members = {node for node in match.inside if node.op not in VIEWS} | {match.root}
    small: dict[int, bool] = {}
    steps: list[Step] = []
    for node in sorted(members, key=lambda one: one.id):
        if node.op in VIEWS:
            continue
        tensors = [arg for arg in node.args if _is_tensor(arg)]
        operands = [inner for arg in tensors for inner in (arg.args if arg.op == "tuple" else (arg,))]
        reads = sum(not _is_small(arg, small) for arg in operands)
        writes = 0 if _is_small(node, small) else 1
        site = site_of(node, None) or (node.sites[0] if node.sites else None)
        kind = "cast" if node.op == "cast" else "copy" if node.op in COPIES else "compute"
        steps.append(
            Step(
                node.op,
                ast.unparse(site.expression) if site is not None else node.op,
                site.expression.lineno if site is not None else match.function.scope.node.lineno,
                kind,
                launches=1,
                reads=max(reads, 1) if node.op in REDUCTIONS else reads,
                writes=writes,
            )
        )
    return tuple(steps)


def _is_tensor(node: Node) -> bool:
    return node.op not in ("constant", "size", "dtype", "dtype_name", "compare", "shape", "constant_name")


def _is_small(node: Node, known: dict[int, bool]) -> bool:
    """Whether the value has lost its last dim in a reduction, or is a parameter: it is not counted."""
    if node.id not in known:
        known[node.id] = False
        if node.op in REDUCTIONS or node.op in ("attribute", "constant", "global"):
            known[node.id] = True
        elif node.op in ("add", "mul", "sqrt", "rsqrt", "reciprocal", "cast", "square", "pow") and node.args:
            known[node.id] = all(_is_small(arg, known) or not _is_tensor(arg) for arg in node.args)
    return known[node.id]


def estimate(match: Match, steps: tuple[Step, ...], added_launches: int, added_passes: int) -> Estimate:
    """Launches and passes over memory before and after; the additions are what the replacement brings (a concat)."""
    rule = match.pattern.rule
    return Estimate(
        launches_before=sum(step.launches for step in steps),
        launches_after=rule.launches + added_launches,
        memory_passes_before=sum(step.reads + step.writes for step in steps),
        memory_passes_after=rule.memory_passes + added_passes,
    )
