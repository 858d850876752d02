"""Of all matches of a function, those that stand for a block each: the largest, one a place."""

from __future__ import annotations

from collections.abc import Sequence

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.lower import FunctionGraph
from npufuse_tui.dataflow.match import Match


def largest(matches: Sequence[Match]) -> list[Match]:
    """Of matches of one rule, those that no other one holds; of equal ones the first."""
    ordered = sorted(enumerate(matches), key=lambda pair: (-len(pair[1].inside), pair[0]))
    kept: list[tuple[int, Match]] = []
    for place, match in ordered:
        nodes = {node for node in match.inside if _computes(node)} | {match.root}
        if not any(nodes <= (other.inside | {other.root}) or match.root is other.root for _, other in kept):
            kept.append((place, match))
    return [match for _, match in sorted(kept, key=lambda pair: (_line(pair[1]), pair[0]))]


def _computes(node: Node) -> bool:
    return node.op not in ("cast", "contiguous", "clone", "phi")


def _line(match: Match) -> tuple[int, int]:
    site = match.root.sites[0]
    return (site.statement.lineno, site.expression.col_offset)


def outermost(match: Match) -> Node:
    """The match's root with the casts above it that nothing else needs: `(…).type_as(x)` belongs to the block."""
    users = _users(match.function)
    returned = {one.node for one in match.function.returns}
    root = match.root
    while True:
        above = users.get(root, [])
        if len(above) != 1 or above[0].op != "cast" or root in returned:
            return root
        cast = above[0]
        if cast.args[0] is not root or not any(site.depth == 0 for site in cast.sites):
            return root
        root = cast


def _users(function: FunctionGraph) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {}
    for node in function.graph.nodes:
        for arg in dict.fromkeys(node.args):
            users.setdefault(arg, []).append(node)
    return users
