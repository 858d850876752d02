"""Source files as the lowering needs them: imports, functions and classes by name, and what other files define."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from npufuse_tui.dataflow.syntax import walk

if TYPE_CHECKING:
    from npufuse_tui.dataflow.repository import Repository

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

LARGEST_IMPORTED = 120_000
"""Bytes of an imported file beyond which it is not opened to look for a helper."""


@dataclass(eq=False, slots=True)
class ClassInfo:
    """A class of a file: its methods and what `__init__` gives to `self`."""

    node: ast.ClassDef
    module: SourceModule
    methods: dict[str, FunctionNode]
    _first: dict[str, list[ast.expr]] | None = None
    _later: dict[str, list[ast.expr]] | None = None
    _bases: tuple[ClassInfo, ...] | None = None

    @property
    def name(self) -> str:
        return self.node.name

    def given(self, name: str) -> list[ast.expr]:
        """The expressions assigned to `self.<name>` in the constructor; in other methods or the class body when not there."""
        if self._first is None:
            self._first = {}
            for method in ("__init__", "setup", "__post_init__"):
                if method in self.methods:
                    _gather(self._first, _self_assignments(self.methods[method]))
        if name in self._first:
            return self._first[name]
        if self._later is None:
            self._later = {}
            for method, node in self.methods.items():
                if method not in ("__init__", "setup", "__post_init__"):
                    _gather(self._later, _self_assignments(node))
            _gather(self._later, _class_assignments(self.node))
        return self._later.get(name, [])

    def bases(self) -> tuple[ClassInfo, ...]:
        """The classes of the repo that this one inherits from, nearest first."""
        if self._bases is None:
            self._bases = ()  # a class that inherits from itself by way of others ends here
            seen = {id(self.node)}
            queue = list(self._direct_bases())
            found: list[ClassInfo] = []
            while queue:
                base = queue.pop(0)
                if id(base.node) not in seen:
                    seen.add(id(base.node))
                    found.append(base)
                    queue.extend(base._direct_bases())
            self._bases = tuple(found)
        return self._bases

    def _direct_bases(self) -> Iterator[ClassInfo]:
        for expression in self.node.bases:
            name = dotted_name(expression)
            found = self.module.find_class(name) if name else None
            if found is not None:
                yield found

    def method(self, name: str) -> tuple[ClassInfo, FunctionNode] | None:
        """The method as it is inherited, with the class that defines it."""
        if name in self.methods:
            return self, self.methods[name]
        for base in self.bases():
            if name in base.methods:
                return base, base.methods[name]
        return None

    def attribute(self, name: str) -> list[tuple[ClassInfo, ast.expr]]:
        """What the constructors give to `self.<name>`: of this class when it does, else of the nearest base that does."""
        for owner in (self, *self.bases()):
            values = owner.given(name)
            if values:
                return [(owner, value) for value in values]
        return []


@dataclass(eq=False, slots=True)
class SourceModule:
    """One parsed file."""

    file: str
    source: bytes
    tree: ast.Module
    repository: Repository | None
    imports: dict[str, str] = field(default_factory=dict)
    relative: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    functions: dict[str, FunctionNode] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    _line_starts: list[int] | None = None

    def lines(self, node: FunctionNode) -> bytes:
        """The lines of the file that a function stands on."""
        if self._line_starts is None:
            starts = [0]
            for line in self.source.splitlines(keepends=True):
                starts.append(starts[-1] + len(line))
            self._line_starts = starts
        return self.source[self._line_starts[node.lineno - 1] : self._line_starts[node.end_lineno or node.lineno]]

    def find_function(self, name: str) -> tuple[SourceModule, FunctionNode] | None:
        """A function by the name that this file knows it under, here or in the file of the repo that it is imported from."""
        if name in self.functions:
            return self, self.functions[name]
        home = self._imported(name, b"def ")
        if home is not None:
            module, original = home
            if original in module.functions:
                return module, module.functions[original]
        return None

    def find_class(self, name: str) -> ClassInfo | None:
        if name in self.classes:
            return self.classes[name]
        home = self._imported(name, b"class ")
        if home is not None:
            module, original = home
            return module.classes.get(original)
        return None

    def _imported(self, name: str, keyword: bytes) -> tuple[SourceModule, str] | None:
        if self.repository is None or name not in self.relative:
            return None
        level, module, original = self.relative[name]
        found = self.repository.resolve(self.file, level, module, keyword + original.encode())
        return (found, original) if found is not None else None


def read_module(file: str, source: bytes, repository: Repository | None = None) -> SourceModule:
    """Parse a file. Raises SyntaxError or ValueError when it does not parse."""
    if not source.isascii():
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        source.decode(encoding)  # Python runs no file that cannot be decoded; `ast` lets comments pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's docstrings
        tree = ast.parse(source)
    module = SourceModule(file, source, tree, repository)
    _collect(module, tree.body)
    return module


def _collect(module: SourceModule, body: list[ast.stmt]) -> None:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            module.functions[statement.name] = statement
        elif isinstance(statement, ast.ClassDef):
            module.classes[statement.name] = class_info(statement, module)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            add_import(module, statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            if isinstance(statement.targets[0], ast.Name):
                module.constants[statement.targets[0].id] = statement.value
        elif isinstance(statement, ast.If):
            _collect(module, statement.orelse)
            _collect(module, statement.body)
        elif isinstance(statement, ast.Try):
            for handler in statement.handlers:
                _collect(module, handler.body)
            _collect(module, statement.orelse)
            _collect(module, statement.body)


def class_info(node: ast.ClassDef, module: SourceModule) -> ClassInfo:
    methods: dict[str, FunctionNode] = {}
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            methods[statement.name] = statement
        elif isinstance(statement, ast.If):
            for inner in (*statement.orelse, *statement.body):
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    methods[inner.name] = inner
    return ClassInfo(node, module, methods)


def add_import(module: SourceModule, statement: ast.Import | ast.ImportFrom) -> None:
    """Note what names an import gives to the file."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                module.imports[alias.asname] = alias.name
            else:
                top = alias.name.split(".")[0]
                module.imports[top] = top
        return
    for alias in statement.names:
        local = alias.asname or alias.name
        if statement.level == 0 and statement.module:
            module.imports[local] = f"{statement.module}.{alias.name}"
        module.relative[local] = (statement.level, statement.module or "", alias.name)


def _gather(into: dict[str, list[ast.expr]], pairs: Iterable[tuple[str, ast.expr]]) -> None:
    for name, value in pairs:
        into.setdefault(name, []).append(value)


def _class_assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            yield statement.target.id, statement.value


def _self_assignments(method: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    first = method.args.args[0].arg if method.args.args else "self"
    for node in walk(method):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("register_buffer", "register_parameter", "add_module", "register_module")
            and len(node.args) >= 2
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.args[0].value, node.args[1]
            continue
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == first:
                yield target.attr, value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                for one, given in zip(target.elts, value.elts, strict=True):
                    if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == first:
                        yield one.attr, given


def dotted_name(expression: ast.expr) -> str | None:
    """`a.b.c` as text, or None for anything else."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if isinstance(expression, ast.Name):
        parts.append(expression.id)
        return ".".join(reversed(parts))
    return None


@dataclass(frozen=True, slots=True)
class Scope:
    """A function of a file with the names of what encloses it."""

    qualname: str
    node: FunctionNode
    owner: ClassInfo | None
    enclosing: tuple[FunctionNode, ...]


def scopes(module: SourceModule) -> Iterator[Scope]:
    """Every function of the file, nested ones too, in the order of their lines."""

    def visit(
        body: list[ast.stmt], prefix: str, owner: ClassInfo | None, enclosing: tuple[FunctionNode, ...]
    ) -> Iterator[Scope]:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                qualname = prefix + statement.name
                yield Scope(qualname, statement, owner, enclosing)
                yield from visit(statement.body, f"{qualname}.<locals>.", owner, (*enclosing, statement))
            elif isinstance(statement, ast.ClassDef):
                known = module.classes.get(statement.name)
                info = known if known is not None and known.node is statement else class_info(statement, module)
                yield from visit(statement.body, f"{prefix}{statement.name}.", info, enclosing)
            else:
                for _, value in ast.iter_fields(statement):
                    if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                        yield from visit(value, prefix, owner, enclosing)
                    elif isinstance(value, list) and value and isinstance(value[0], ast.ExceptHandler):
                        for handler in value:
                            yield from visit(handler.body, prefix, owner, enclosing)

    yield from visit(module.tree.body, "", None, ())
