"""Which statements a match takes the place of: a run of whole statements in one suite."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npufuse_tui.dataflow.graph import Node, Site
from npufuse_tui.dataflow.lower import FunctionGraph, written_names
from npufuse_tui.dataflow.match import Match
from npufuse_tui.dataflow.syntax import names_read, walk
from npufuse_tui.language import Text
from npufuse_tui.rewrite.text import SourceText

Suite = list[ast.stmt]

CHEAP = frozenset(
    {"cast", "contiguous", "clone", "piece", "chunk", "split", "getitem", "index", "transpose", "permute", "unsqueeze"}
    | {
        "squeeze",
        "reshape",
        "view_as_complex",
        "view_as_real",
        "size",
        "shape",
        "dtype",
        "tuple",
        "attribute",
        "parameter",
        "phi",
        "expand",
        "unbind",
    }
)
"""Operations that move or view data: keeping one of them computes nothing of the chain twice."""


class CannotRewrite(Exception):
    """The match is real and no edit of it would be right; `text` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


@dataclass(frozen=True, slots=True)
class Home:
    """Where a statement stands: its suite, its place there, and the statement that the suite belongs to."""

    suite: Suite
    place: int
    parent: ast.stmt


@dataclass(eq=False, slots=True)
class Layout:
    """The suites of a function and how it is indented."""

    function: ast.FunctionDef | ast.AsyncFunctionDef
    homes: dict[ast.stmt, Home]
    text: SourceText

    def path(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement and those around it, innermost first."""
        found = [statement]
        while found[-1] in self.homes and self.homes[found[-1]].parent is not self.function:
            found.append(self.homes[found[-1]].parent)
        return found

    def indentation(self, statement: ast.stmt) -> str:
        line = self.text.line_text(statement.lineno)
        return line[: len(line) - len(line.lstrip())]

    def unit(self) -> str:
        """One step of indentation, as the function itself uses it."""
        outer = self.indentation(self.function)
        inner = self.indentation(self.function.body[-1])
        if inner.startswith(outer) and len(inner) > len(outer) and self.function.body[-1].lineno > self.function.lineno:
            return inner[len(outer) :]
        return "\t" if "\t" in outer else "    "


def layout(function: ast.FunctionDef | ast.AsyncFunctionDef, text: SourceText) -> Layout:
    homes: dict[ast.stmt, Home] = {}

    def visit(parent: ast.stmt) -> None:
        for suite in _suites(parent):
            for place, statement in enumerate(suite):
                homes[statement] = Home(suite, place, parent)
                if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    visit(statement)

    visit(function)
    return Layout(function, homes, text)


def _suites(statement: ast.stmt) -> Iterator[Suite]:
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(statement, name, None)
        if isinstance(suite, list) and suite and isinstance(suite[0], ast.stmt):
            yield suite
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    for case in getattr(statement, "cases", []):
        yield case.body


@dataclass(eq=False, slots=True)
class Root:
    """A value that the fused call computes, and the expression that it takes the place of."""

    node: Node
    site: Site


@dataclass(eq=False, slots=True)
class Region:
    """The statements [first, last] of a suite, and the roots in them."""

    layout: Layout
    suite: Suite
    first: int
    last: int
    roots: list[Root]

    @property
    def statements(self) -> Suite:
        return self.suite[self.first : self.last + 1]

    @property
    def start_line(self) -> int:
        return self.statements[0].lineno

    @property
    def end_line(self) -> int:
        return self.statements[-1].end_lineno or self.statements[-1].lineno

    def holds(self, statement: ast.stmt) -> bool:
        return any(one in self.statements for one in self.layout.path(statement))

    def ends_function(self) -> bool:
        return isinstance(self.statements[-1], ast.Return)


_SPREAD = Text(
    "the chain is spread over branches that cannot be replaced as one block",
    "计算链分散在多个分支中，无法作为一个整体替换",
)


def site_of(node: Node, before: ast.stmt | None) -> Site | None:
    """Where the node is written, nearest before (or in) the statement of the root."""
    sites = list(node.sites)
    if before is None:
        own = [site for site in sites if site.depth == 0]
        return own[-1] if own else None
    at_root = [site for site in sites if site.statement is before]
    earlier = [site for site in sites if site.statement.lineno <= before.lineno]
    nearest = at_root or earlier or sites
    return nearest[-1] if nearest else None


def find_region(function: FunctionGraph, text: SourceText, root: Node, inside: Iterable[Node]) -> Region:
    """The statements that compute `root` through `inside`. Raises CannotRewrite."""
    placed = layout(function.scope.node, text)
    root_site = _root_site(function, root)
    if root_site is None:
        raise CannotRewrite(_SPREAD)
    statements = {root_site.statement}
    for node in inside:
        site = site_of(node, root_site.statement)
        if site is not None and not _only_passes_on(node):
            statements.add(site.statement)
    statements |= _chunk_statements(function, root_site.statement, inside)
    suite, first, last = _common(placed, statements, root_site.statement)
    region = Region(placed, suite, first, last, [Root(root, root_site)])
    _take_in_what_only_serves(region)
    return region


def shortened(region: Region, matches: Iterable[Match]) -> bool:
    """Let the region begin at the first statement that computes something of the chain; whether that changes it."""
    computing = {
        site.statement
        for match in matches
        for node in match.inside
        if node.op not in CHEAP and (site := site_of(node, None)) is not None
    }
    for place in range(region.first, region.last + 1):
        if any(region.suite[place] in region.layout.path(statement) for statement in computing):
            changed = place > region.first
            region.first = place
            return changed
    return False


def _chunk_statements(function: FunctionGraph, root: ast.stmt, inside: Iterable[Node]) -> set[ast.stmt]:
    """Where pieces of the block are cut (`x = x.chunk(2)`), when what is cut there serves the block alone."""
    found: set[ast.stmt] = set()
    for node in list(inside):
        if node.op != "piece":
            continue
        whole = function.graph.make("chunk", node.args[0], attrs=node.attrs[:2])
        for site in whole.sites:
            names = written_names([site.statement])
            later = [
                one
                for one in walk(function.scope.node)
                if isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load)
            ]
            inside_root = {id(one) for one in walk(root)}
            own = {id(one) for one in walk(site.statement)}
            after = [one for one in later if id(one) not in own and one.lineno > site.statement.lineno]
            if after and all(id(one) in inside_root for one in after):
                found.add(site.statement)
    return found


def _root_site(function: FunctionGraph, root: Node) -> Site | None:
    """The last expression of the function whose value the root is; the code is put in its place."""
    for site in reversed(root.sites):
        looped = isinstance(site.statement, (ast.For, ast.AsyncFor)) and root.op == "loop" and site.depth == 0
        augmented = isinstance(site.statement, ast.AugAssign) and site.expression is site.statement.value
        if function.values.get(site.expression) is root or augmented or looped:
            return site
    return None


def _only_passes_on(node: Node) -> bool:
    return node.op in ("parameter", "attribute", "global", "constant", "size", "shape", "dtype")


def _common(placed: Layout, statements: set[ast.stmt], root: ast.stmt) -> tuple[Suite, int, int]:
    """The innermost suite that holds all the statements, as a range of its own statements."""
    paths = [placed.path(statement) for statement in statements]
    for outer in placed.path(root):
        if outer not in placed.homes:
            break
        suite = placed.homes[outer].suite
        places = []
        for path in paths:
            own = [placed.homes[one].place for one in path if one in placed.homes and placed.homes[one].suite is suite]
            if not own:
                break
            places.append(own[0])
        else:
            if suite[max(places)] is not outer and outer is not root:
                raise CannotRewrite(_SPREAD)
            return suite, min(places), max(max(places), placed.homes[outer].place)
    raise CannotRewrite(_SPREAD)


def _take_in_what_only_serves(region: Region) -> None:
    """Statements right above that only prepare names for the block (`input_dtype = x.dtype`) belong to it."""
    while region.first > 0:
        above = region.suite[region.first - 1]
        if not (isinstance(above, ast.Assign) and _is_metadata(above.value)):
            return
        names = written_names([above])
        if not names or not all(isinstance(target, ast.Name) for target in above.targets):
            return
        if any(loaded_outside(name, region, above) for name in names) or not any(
            loads(name, region.statements) for name in names
        ):
            return
        region.first -= 1


def _is_metadata(value: ast.expr) -> bool:
    """`x.dtype`, `x.shape[-1]`, `x.size(-1)`, `x.device`: reads nothing from the device and changes nothing."""
    if isinstance(value, ast.Attribute):
        return value.attr in ("dtype", "device", "shape", "ndim") and isinstance(value.value, (ast.Name, ast.Attribute))
    if isinstance(value, ast.Subscript):
        return _is_metadata(value.value) and isinstance(value.slice, (ast.Constant, ast.UnaryOp))
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in ("size", "dim", "chunk") and isinstance(value.func.value, (ast.Name, ast.Attribute))
    return False


def loads(name: str, statements: Iterable[ast.AST]) -> bool:
    """Whether the name is read anywhere in the statements."""
    return any(name in names_read(statement) for statement in statements)


def loaded_outside(name: str, region: Region, besides: ast.stmt) -> bool:
    """Whether the name is read in the function outside of the region (and of one statement more)."""
    if name not in names_read(region.layout.function):
        return False
    held = {id(node) for statement in (*region.statements, besides) for node in walk(statement)}
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and id(node) not in held
        for node in walk(region.layout.function)
    )


def live_after(name: str, region: Region) -> bool:
    """Whether the value that the region gives to the name can be read after it."""
    if region.ends_function() and region.layout.homes[region.statements[-1]].suite is region.suite:
        return False
    if _declared_outer(name, region.layout.function) or _captured(name, region):
        return True
    suite, place = region.suite, region.last + 1
    parent = region.layout.homes[region.statements[0]].parent
    while True:
        for statement in suite[place:]:
            if loads(name, [statement]):
                return True
            if _surely_binds(statement, name):
                return False
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
            for statement in parent.body if suite is parent.body else ():
                if statement in region.statements:
                    break
                if loads(name, [statement]):
                    return True
                if _surely_binds(statement, name):
                    return False
            if isinstance(parent, ast.While) and loads(name, [parent.test]):
                return True
            if loads(name, region.statements) and _read_before_bound(name, region.statements):
                return True
        if parent is region.layout.function:
            return False
        if isinstance(parent, ast.Try) and any(loads(name, handler.body) for handler in parent.handlers):
            return True
        home = region.layout.homes[parent]
        suite, place, parent = home.suite, home.place + 1, home.parent


def _read_before_bound(name: str, statements: Suite) -> bool:
    for statement in statements:
        if (
            isinstance(statement, ast.AugAssign)
            and isinstance(statement.target, ast.Name)
            and statement.target.id == name
        ):
            return True
        if loads(name, [statement]):
            return True
        if _surely_binds(statement, name):
            return False
    return False


def _surely_binds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Assign):
        return any(_binds(target, name) for target in statement.targets)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None and _binds(statement.target, name)
    return False


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_binds(one, name) for one in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def _declared_outer(name: str, function: ast.AST) -> bool:
    return any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in walk(function))


def _captured(name: str, region: Region) -> bool:
    """Whether a nested function reads the name: it may be called later."""
    if name not in names_read(region.layout.function):
        return False
    return any(
        node is not region.layout.function and loads(name, [node])
        for node in walk(region.layout.function)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    )
