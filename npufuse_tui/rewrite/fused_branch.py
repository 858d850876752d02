"""The statements of the fused branch: what stays of the region, and the fused call where the chain stood."""

from __future__ import annotations

import ast
import copy
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from npufuse_tui.dataflow.graph import Node, strip_upcasts
from npufuse_tui.dataflow.lower import Environment, FunctionGraph, written_names
from npufuse_tui.dataflow.match import Match
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.language import Text
from npufuse_tui.rewrite.output_dtype import output_cast, primary_input
from npufuse_tui.rewrite.region import CHEAP, CannotRewrite, Region, Root, live_after, site_of
from npufuse_tui.rewrite.render import Place, is_simple, render, render_input
from npufuse_tui.rewrite.text import SourceText, dedented
from npufuse_tui.rules import Replacement

MADE_CONTIGUOUS = frozenset({"module_linear", "linear", "matmul", "cat", "contiguous"})
"""Operations whose result is contiguous."""


@dataclass(frozen=True, slots=True)
class Call:
    """The fused call of one root: statements before it, the expression, and the code that each input is."""

    root: Root
    match: Match
    before: tuple[str, ...]
    expression: str
    inputs: dict[str, str]
    extras: tuple[tuple[Node, str], ...] = ()


@dataclass(eq=False, slots=True)
class FusedBranch:
    """The code of the branch, one string a statement, and what it needs. `without` are names that it gives None."""

    statements: list[str]
    calls: list[Call]
    names_after: list[str]
    entry: Place
    kept: list[ast.stmt] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def build(function: FunctionGraph, text: SourceText, region: Region, matches: Sequence[Match]) -> FusedBranch:
    """The fused branch of a region. Raises CannotRewrite."""
    return _Builder(function, text, region, matches).build()


class _Builder:
    def __init__(self, function: FunctionGraph, text: SourceText, region: Region, matches: Sequence[Match]) -> None:
        self.function = function
        self.text = text
        self.region = region
        self.kept: set[ast.stmt] = set()
        self.roots: dict[ast.stmt, list[tuple[Root, Match]]] = {root.site.statement: [] for root in region.roots}
        by_node = {match.root: match for match in matches}
        for root in region.roots:
            self.roots[root.site.statement].append((root, by_node[_matched(root.node, by_node)]))
        self.extras = {node for match in matches for node in match.extras}
        self.inside = {node for match in matches for node in match.inside}
        self.live = sorted(name for name in written_names(region.statements) if live_after(name, region))

    def build(self) -> FusedBranch:
        for _ in range(len(self.region.statements) + 2):
            before = len(self.kept)
            branch = self._attempt()
            if branch is not None and len(self.kept) == before:
                return branch
        raise CannotRewrite(
            Text(
                "a value that the fused call needs cannot be named where the call would stand",
                "融合调用所需的某个值在调用处无法命名",
            )
        )

    def _attempt(self) -> FusedBranch | None:
        entry = self.function.before.get(self.region.statements[0], {})
        names: Environment = dict(entry)
        lines: list[str] = []
        calls: list[Call] = []
        missing = False
        for statement in self.region.statements:
            if statement in self.roots:
                place = Place(self.function, self.text, dict(names))
                made = self._root_statement(statement, place)
                if made is None:
                    missing = True
                    continue
                code, new = made
                lines.extend(code)
                calls.extend(new)
                self._bind(statement, names)
            elif statement in self.kept or self._has_effect(statement):
                self._keep(statement)
                if not self._reads_the_same(statement, None, names):
                    missing = True
                    continue
                lines.append(dedented(self._verbatim(statement)))
                self._bind(statement, names)
        if missing:
            return None
        after = self.function.after.get(self.region.statements[-1], {})
        without: list[str] = []
        for name in self.live:
            if names.get(name) is not after.get(name):
                given = {node: code for call in calls for node, code in call.extras}
                value = after.get(name)
                if value is not None and value in given:
                    lines.append(f"{name} = {given[value]}")
                elif self._may_be_none(name):
                    lines.append(f"{name} = None")
                    without.append(name)
                else:
                    self._keep_definer(name, self.region.statements[-1], True)
        return FusedBranch(
            lines, calls, self.live, Place(self.function, self.text, dict(entry)), list(self.kept), without
        )

    def _bind(self, statement: ast.stmt, names: Environment) -> None:
        before = self.function.before.get(statement, {})
        for name, node in self.function.after.get(statement, {}).items():
            if before.get(name) is not node:
                names[name] = node

    def _verbatim(self, statement: ast.stmt) -> str:
        start = self.text.line_start(statement.lineno)
        return self.text.between(start, self.text.end(statement))

    def _root_statement(self, statement: ast.stmt, place: Place) -> tuple[list[str], list[Call]] | None:
        pairs = self.roots[statement]
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            expressions: list[ast.expr | ast.stmt] = [statement]  # the loop goes, whole
        else:
            expressions = [root.site.expression for root, _ in pairs]
        if not self._reads_the_same(statement, expressions, place.names):
            return None
        calls: list[Call] = []
        for root, match in pairs:
            made = self._call(root, match, place)
            if made is None:
                return None
            calls.append(made)
        lines = [line for call in calls for line in call.before]
        given = {node: code for call in calls for node, code in call.extras}
        before = self.function.before.get(statement, {})
        for name in sorted({node.id for node in walk(statement) if isinstance(node, ast.Name)} & set(before)):
            if before[name] in given and place.names.get(name) is not before[name]:
                lines.append(f"{name} = {given[before[name]]}")
        lines.append(self._substituted(statement, calls))
        return lines, calls

    def _substituted(self, statement: ast.stmt, calls: list[Call]) -> str:
        """The statement with the fused calls in the place of the roots' expressions."""
        if isinstance(statement, ast.AugAssign):
            return f"{self.text.of(statement.target)} = {calls[0].expression}"
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            after = self.function.after[statement]
            name = next(name for name, node in after.items() if node is calls[0].root.node)
            return f"{name} = {calls[0].expression}"
        start = self.text.line_start(statement.lineno)
        code = self.text.between(start, self.text.end(statement))
        pieces: list[str] = []
        position = start
        for call in sorted(calls, key=lambda one: self.text.start(one.root.site.expression)):
            expression = call.root.site.expression
            pieces.append(self.text.between(position, self.text.start(expression)))
            pieces.append(call.expression)
            position = self.text.end(expression)
        pieces.append(self.text.between(position, self.text.end(statement)))
        code = "".join(pieces)
        return dedented(code) if "\n" in code else code.strip()

    def _call(self, root: Root, match: Match, place: Place) -> Call | None:
        rule = match.pattern.rule
        replacement = rule.replacement_for(match.variant)
        if replacement is None:
            raise CannotRewrite(Text("no replacement is known for this form", "这种写法没有已知的替换方式"))
        inputs: dict[str, str] = {}
        passed = {name: strip_upcasts(node) for name, node in match.values.items()}
        wanted = {*_parameters(replacement.function), primary_input(match)}
        for name, node in match.values.items():
            if name not in wanted:
                continue
            code, given = self._input(node, place)
            if code is None:
                return None
            inputs[name], passed[name] = code, given
        fresh = {name for name, node in match.values.items() if node.op in MADE_CONTIGUOUS}
        before, expression, *more = expand(replacement, inputs, set(place.names), rule.defaults, fresh)
        cast = output_cast(match, root.node, passed, inputs, place)
        extras = tuple(zip(match.extras, more, strict=True))
        return Call(root, match, tuple(before), f"{expression}{cast}", inputs, extras)

    def _input(self, node: Node, place: Place) -> tuple[str | None, Node]:
        code = render_input(node, place)
        if code is not None:
            lowest = strip_upcasts(node)
            return code, lowest if render(lowest, place) is not None else node
        for wanted in (strip_upcasts(node), node):
            for statement in self.region.statements:
                after = self.function.after.get(statement, {})
                if any(after.get(name) is wanted for name in written_names([statement])):
                    self._keep(statement)
        return None, node

    def _reads_the_same(self, statement: ast.stmt, besides: Sequence[ast.AST] | None, names: Environment) -> bool:
        """Whether what the statement reads (outside of the roots) means in the branch what it means in the original."""
        skipped = {id(node) for expression in besides or () for node in walk(expression)}
        before = self.function.before.get(statement, {})
        same = True
        for node in walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in skipped:
                if before.get(node.id) is not names.get(node.id) and before.get(node.id) not in self.extras:
                    self._keep_definer(node.id, statement, False)
                    same = False
        return same

    def _keep_definer(self, name: str, until: ast.stmt, inclusive: bool) -> None:
        for statement in reversed(self.region.statements):
            if statement.lineno > until.lineno or (statement is until and not inclusive):
                continue
            if name in written_names([statement]):
                if statement not in self.roots:
                    self._keep(statement)
                return

    def _keep(self, statement: ast.stmt) -> None:
        if statement in self.kept:
            return
        for node in self.inside:
            if node.op in CHEAP:
                continue
            site = site_of(node, None)
            if site is not None and statement in self.region.layout.path(site.statement):
                names = ", ".join(sorted(written_names([statement]))) or "…"
                raise CannotRewrite(
                    Text(
                        "the intermediate value {names} of the chain is used outside of it (line {line})",
                        "计算链的中间值 {names} 在链外被使用（第 {line} 行）",
                    ).format(names=names, line=statement.lineno)
                )
        self.kept.add(statement)

    def _may_be_none(self, name: str) -> bool:
        """Whether the rule allows None for a value of the chain, and the function does nothing with it but return it."""
        rule = next(iter(self.roots.values()))[0][1].pattern.rule
        if not rule.may_be_none:
            return False
        inside = {id(node) for statement in self.region.statements for node in walk(statement)}
        returned = _only_handed_out(self.region.layout.function)
        later = [
            node
            for node in walk(self.region.layout.function)
            if isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Load)
            and id(node) not in inside
            and node.lineno > self.region.end_line
        ]
        return bool(later) and all(id(node) in returned for node in later)

    def _has_effect(self, statement: ast.stmt) -> bool:
        """Whether leaving the statement out would leave out more than values: a call for its effect, a store."""
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            plain = all(
                isinstance(one, (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context))
                for target in targets
                for one in walk(target)
            )
            return not plain
        if isinstance(statement, ast.If):
            return any(self._has_effect(inner) for inner in (*statement.body, *statement.orelse))
        if isinstance(statement, ast.With):
            quiet = all(ast.unparse(item.context_expr).endswith("no_grad()") for item in statement.items)
            return not quiet or any(self._has_effect(inner) for inner in statement.body)
        if isinstance(statement, ast.Expr):
            return not isinstance(statement.value, ast.Constant)
        return not isinstance(statement, ast.Pass)


def _only_handed_out(function: ast.AST) -> set[int]:
    """Names (their syntax nodes) that are put into what the function returns, or are asked for by `output_attentions`."""
    found: set[int] = set()
    for node in walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            found.update(id(element) for element in node.value.elts)
        elif isinstance(node, (ast.If, ast.IfExp)) and "output_attentions" in ast.unparse(node.test):
            asked = node.body if isinstance(node.body, list) else [node.body]
            found.update(id(inner) for one in asked for inner in walk(one))
    return found


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _matched(node: Node, by_node: dict[Node, Match]) -> Node:
    """The matched node beneath the casts that were taken into the root."""
    while node not in by_node and node.op == "cast":
        node = node.args[0]
    return node


def expand(
    replacement: Replacement,
    inputs: dict[str, str],
    taken: set[str],
    defaults: dict[str, object] | None = None,
    fresh: Collection[str] = (),
) -> tuple[Any, ...]:
    """The replacement's statements and what it returns (the parts of a tuple one by one), with the inputs' code in the
    place of its parameters. Names that it binds are added to `taken`.
    """
    before, values, bound = _expanded(
        replacement.source,
        tuple(inputs.items()),
        frozenset(taken),
        tuple((defaults or {}).items()),
        frozenset(fresh),
    )
    taken.update(bound)
    return list(before), *values


@lru_cache(maxsize=1024)
def _expanded(
    source: str,
    inputs: tuple[tuple[str, str], ...],
    names: frozenset[str],
    defaults: tuple[tuple[str, object], ...],
    fresh: frozenset[str],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What `expand` gives, and the names that were taken: the same for equal functions of different files."""
    taken = set(names)
    body = _replacement_body(source)
    used = [node.id for one in body for node in walk(one) if isinstance(node, ast.Name)]
    before: list[str] = []
    substitutes: dict[str, ast.expr] = {}
    for name, code in inputs:
        if used.count(name) > 1 and not is_simple(code) and not _is_literal(code):
            local = _free_name(f"npu_{name}", taken)
            taken.add(local)
            before.append(f"{local} = {code}")
            code = local
        substitutes[name] = ast.parse(code, mode="eval").body
    renamed = {
        node.id: _free_name(node.id, taken)
        for one in body
        for node in walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    put_in = _Substitute(substitutes, renamed, fresh)
    simplify = _Simplify(dict(defaults))
    statements = [simplify.visit(put_in.visit(copy.deepcopy(one))) for one in body]
    last = statements.pop()
    assert isinstance(last, ast.Return) and last.value is not None
    before.extend(written(one) for one in statements)
    values = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    return tuple(before), tuple(written(value) for value in values), tuple(sorted(taken - names))


@lru_cache(maxsize=256)
def _replacement_body(source: str) -> tuple[ast.stmt, ...]:
    tree = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tuple(one for one in tree.body if not _is_docstring(one))


_SINGLE_QUOTED = re.compile(r"'([^'\"\\\\]*)'")


def written(node: ast.AST) -> str:
    """The code of a syntax node, its plain strings in double quotes as the field writes them."""
    return _SINGLE_QUOTED.sub(r'"\1"', ast.unparse(ast.fix_missing_locations(node)))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_literal(code: str) -> bool:
    try:
        ast.literal_eval(code)
    except (ValueError, SyntaxError):
        return False
    return True


def _free_name(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


class _Substitute(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr], renamed: dict[str, str], fresh: Collection[str]) -> None:
        self.values = values
        self.renamed = renamed
        self.fresh = fresh

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "contiguous" and isinstance(node.args[0], ast.Name):
            value = self.visit_Name(node.args[0])
            if node.args[0].id in self.fresh:
                return value
            return ast.Call(ast.Attribute(value, "contiguous", ast.Load()), [], [])
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.renamed:
            return ast.Name(self.renamed[node.id], node.ctx)
        if node.id in self.values and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self.values[node.id])
        return node


class _Simplify(ast.NodeTransformer):
    """Takes out of the fused code what the inputs have decided: choices of constants, arguments that are the default."""

    def __init__(self, defaults: dict[str, object]) -> None:
        self.defaults = defaults

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        if isinstance(node.body, ast.Constant) and ast.dump(node.body) == ast.dump(node.orelse):
            return node.body
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if (
            isinstance(node.left, ast.Constant)
            and isinstance(node.right, ast.Constant)
            and isinstance(node.op, ast.Sub)
        ):
            return ast.Constant(node.left.value - node.right.value)  # type: ignore[operator]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.keywords = [
            keyword
            for keyword in node.keywords
            if not (
                keyword.arg in self.defaults
                and isinstance(keyword.value, ast.Constant)
                and keyword.value.value == self.defaults[keyword.arg]
            )
        ]
        return node
