"""The cast behind a fused call that gives its output the dtype of the original's, for every dtype of the inputs."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from npufuse_tui.dataflow.dtypes import WEAK, DtypeOf, combinations, promoted
from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.match import Match
from npufuse_tui.language import Text
from npufuse_tui.rewrite.region import CannotRewrite
from npufuse_tui.rewrite.render import Place, render

Table = list[tuple[dict[str, str], str | None]]


def output_cast(match: Match, root: Node, passed: dict[str, Node], inputs: dict[str, str], place: Place) -> str:
    """ "" or ".to(…)": the cast that makes the dtypes equal. Raises CannotRewrite when none is found.

    `passed` are the nodes that the fused call is given, `inputs` the code that they are.
    """
    primary = primary_input(match)
    others = _other_dtypes(match, root, passed, place)
    table = output_table(match, root, passed, others)
    if all(out is None for _, out in table):
        return _same_cast(root, place)
    if any(out is None for _, out in table):
        raise CannotRewrite(
            Text(
                "the dtype of the result depends on something that cannot be read from the code",
                "结果的 dtype 取决于无法从代码中读出的条件",
            )
        )
    if all(out == dtypes[primary] for dtypes, out in table):
        return ""
    codes = {name: f"{inputs[name]}.dtype" for name in _tensors(match, passed) if name != primary and name in inputs}
    codes.update(others)
    for name, code in codes.items():
        if all(out == dtypes[name] for dtypes, out in table):
            return f".to({code})"
    for literal in ("float32", "bfloat16", "float16", "float64"):
        if all(out == literal for _, out in table):
            return ".float()" if literal == "float32" else f".to(torch.{literal})"
    codes = {primary: f"{inputs[primary]}.dtype", **codes}
    for (one, code), (other, its) in itertools.combinations(codes.items(), 2):
        if all(out == promoted(dtypes[one], dtypes[other]) for dtypes, out in table):
            return f".to(torch.promote_types({code}, {its}))"
    raise CannotRewrite(
        Text(
            "the original's output dtype changes with its inputs in a way that the fused call cannot follow",
            "原代码输出的 dtype 随输入变化，融合算子无法保持一致",
        )
    )


def primary_input(match: Match) -> str:
    """The pattern's parameter whose dtype and device the fused call follows."""
    kinds, wanted = match.pattern.kinds, match.pattern.rule.output_dtype
    if wanted in kinds:
        return wanted
    return next((name for name, kind in kinds.items() if kind == "tensor"), next(iter(kinds)))


def _other_dtypes(match: Match, root: Node, passed: dict[str, Node], place: Place) -> dict[str, str]:
    """dtypes that the chain casts to and that are of no input: `input_dtype`, taken before something else was done."""
    inputs = {node.id for node in passed.values()}
    found: dict[str, str] = {}
    for node in (root, *match.inside):
        target = node.args[1] if node.op == "cast" and len(node.args) == 2 else None
        if target is not None and target.op == "dtype" and target.args[0].id not in inputs:
            code = render(target, place)
            if code is not None:
                found[f"@{target.args[0].id}"] = code
    return found


def output_table(match: Match, root: Node, passed: dict[str, Node], others: Collection[str] = ()) -> Table:
    """The dtype of the original's output for every combination of input dtypes; None where it cannot be told."""
    tensors = {**_tensors(match, passed), **{name: name for name in others}}
    table: Table = []
    for chosen in combinations(tensors):
        known = {int(name[1:]) if name in others else passed[name].id: dtype for name, dtype in chosen.items()}
        known.update(
            {passed[name].id: WEAK for name, kind in match.pattern.kinds.items() if kind in ("scalar", "flag")}
        )
        table.append((chosen, DtypeOf(known)(root)))
    return table


def _tensors(match: Match, passed: dict[str, Node]) -> dict[str, str]:
    """Tensor inputs, and the group that each shares its dtype with ("" for that of the primary input)."""
    free = {name: "+".join(group) for group in match.pattern.rule.free_dtypes for name in group}
    found: dict[str, str] = {}
    for name, kind in match.pattern.kinds.items():
        if kind == "parameter":
            found[name] = free.get(name, name)
        elif kind in ("tensor", "mask"):
            found[name] = free.get(name, "")
    return found


def _same_cast(root: Node, place: Place) -> str:
    """The cast that the original itself ends with, when its target can be said."""
    if root.op == "cast" and len(root.args) == 2:
        target = render(root.args[1], place)
        if target is not None:
            return f".to({target})"
    raise CannotRewrite(
        Text(
            "the dtype of the result cannot be read from the code",
            "无法从代码中读出结果的 dtype",
        )
    )
