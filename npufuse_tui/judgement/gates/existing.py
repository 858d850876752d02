"""Switches that a repo has already, as they can be written where the fused branch will stand.

Looked for, nearest first: an argument of the function, what `self` holds, the configuration that it holds, names of the
file (its own constants and helpers, and imported ones). A switch counts when its name says that it is about an NPU
or about fused operators of this kind.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from npufuse_tui.dataflow.lower import FunctionGraph, written_names
from npufuse_tui.dataflow.source import ClassInfo, FunctionNode, SourceModule, dotted_name
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.gates.defaults import asks, default, is_truth, parameters_of
from npufuse_tui.judgement.gates.parsers import parsers
from npufuse_tui.judgement.npu_words import names_an_npu, names_fusion
from npufuse_tui.rules import Rule

HOLDERS = ("config", "cfg", "conf", "args", "opts", "options", "opt", "hparams", "settings")
"""Names under which a module keeps what it was configured with."""

_NAMESPACES = ("args", "opts", "opt", "options")
"""Names under which an argparse namespace is handed around."""

CONSTRUCTORS = ("__init__", "setup", "__post_init__")

_ASKED_FROM_LIBRARIES = frozenset({"is_torch_npu_available", "is_npu_available"})
_LIBRARIES = ("transformers", "diffusers", "accelerate", "peft", "trl")

_FAMILY_WORDS = {
    "norm": ("norm", "rms", "rmsnorm"),
    "activation": ("swiglu", "geglu", "glu", "mlp", "activation"),
    "rotary": ("rope", "rotary"),
    "attention": ("attn", "attention", "flash"),
    "moe": ("moe", "expert", "experts", "grouped"),
}
_GENERAL = ("ops", "op", "kernels", "kernel", "operators", "operator", "modules", "layers", "npu")


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch: the code that asks it, where it is, and whether it is on when nobody says anything (None: not known).

    `sure`: its name says that it is about an NPU, or about fused operators of the rule's kind.
    """

    expression: str
    file: str
    line: int
    on: bool | None
    sure: bool


def existing_switches(function: FunctionGraph, rule: Rule) -> list[Switch]:
    """The switches that can be asked in a function, the one to be preferred first."""
    module = function.module
    taken = _local_names(function)
    found: dict[str, Switch] = {}
    for switch in (
        *_arguments(function, rule),
        *_held(function, rule),
        *_configured(function, rule),
        *(one for one in _of_file(module) if one.expression.partition("(")[0] not in taken),
    ):
        if names_an_npu(switch.expression) or names_fusion(switch.expression):
            found.setdefault(switch.expression, switch)
    return sorted(found.values(), key=lambda one: (not one.sure, one.on is not True))


def is_about(name: str, rule: Rule) -> bool:
    """Whether a switch's name says that it is about an NPU, or about fused operators of the rule's kind (or of any)."""
    last = name.rpartition(".")[2]
    if names_an_npu(last):
        return True
    words = set(re.findall(r"[a-z]+", last.lower()))
    return names_fusion(last) and bool(words & {*_kind_words(rule), *_GENERAL})


def is_of_kind(name: str, rule: Rule) -> bool:
    """Whether a name says what the rule's block is: a norm, a rotation, an attention …"""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
    return bool(words & _kind_words(rule))


def _kind_words(rule: Rule) -> set[str]:
    """Words that only names of such blocks have: "fused" is in every switch's name, "add" in too many others."""
    return {*rule.id.split("_"), *_FAMILY_WORDS.get(rule.family, ())} - {"fused", "fusion", "add", "infer", *_GENERAL}


def _local_names(function: FunctionGraph) -> set[str]:
    nodes = (function.scope.node, *function.scope.enclosing)
    names = set(function.parameters)
    for node in nodes:
        names |= written_names(node.body) | set(parameters_of(node))
    return names


def _is_switch_name(name: str) -> bool:
    return (names_an_npu(name) or names_fusion(name)) and asks(name)


def _arguments(function: FunctionGraph, rule: Rule) -> Iterator[Switch]:
    node = function.scope.node
    rebound = written_names(node.body)
    for name, value in parameters_of(node).items():
        truth = value is not None and isinstance(value, ast.Constant) and isinstance(value.value, bool)
        if (names_an_npu(name) or names_fusion(name)) and (truth or asks(name)) and name not in rebound:
            yield Switch(
                name,
                function.module.file,
                node.lineno,
                default(value) if value is not None else None,
                is_about(name, rule),
            )


def self_name(function: FunctionGraph) -> str | None:
    """What the function calls its object, or None when it has none at hand."""
    node, owner = function.scope.node, function.scope.owner
    decorators = {dotted_name(one) for one in node.decorator_list}
    if owner is None or owner.node not in _parents(function) or decorators & {"staticmethod", "classmethod"}:
        return None
    first = [*node.args.posonlyargs, *node.args.args][:1]
    name = first[0].arg if first else None
    return name if name is not None and name not in written_names(node.body) else None


def _parents(function: FunctionGraph) -> list[ast.ClassDef]:
    """The class that the function is a method of; none for a function inside of a method."""
    owner = function.scope.owner
    if owner is None or function.scope.node not in owner.methods.values():
        return []
    return [owner.node]


def _held(function: FunctionGraph, rule: Rule) -> Iterator[Switch]:
    """What the constructor gave to `self` under such a name."""
    self, owner = self_name(function), function.scope.owner
    if self is None or owner is None:
        return
    for definer in (owner, *owner.bases()):
        for constructor in (definer.methods[one] for one in CONSTRUCTORS if one in definer.methods):
            first = constructor.args.args[0].arg if constructor.args.args else "self"
            for name, value in _assigned(constructor, first):
                if not (names_an_npu(name) or names_fusion(name)):
                    continue
                if not (is_truth(value) or (asks(name) and isinstance(value, (ast.Name, ast.Attribute, ast.Call)))):
                    continue
                on = _default_in(value, definer, constructor)
                yield Switch(f"{self}.{name}", definer.module.file, value.lineno, on, is_about(name, rule))


def _assigned(constructor: FunctionNode, self: str) -> Iterator[tuple[str, ast.expr]]:
    for node in walk(constructor):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == self:
                assert node.value is not None  # type: ignore[attr-defined]
                yield target.attr, node.value  # type: ignore[attr-defined]


def _default_in(value: ast.expr, owner: ClassInfo, constructor: FunctionNode) -> bool | None:
    """The default of what a constructor gives: of its parameter, or of a field of its configuration."""
    if isinstance(value, ast.Attribute):
        holder = config_of(value.value, owner, constructor)
        if holder is None:
            return None
        given = fields(holder).get(value.attr)
        return default(given[0]) if given is not None and given[0] is not None else None
    return default(value, parameters_of(constructor))


def _configured(function: FunctionGraph, rule: Rule) -> Iterator[Switch]:
    """Fields of the configuration that is at hand: of its class where that is found, and those that the file names."""
    for expression, config, may_be_none in holders(function):
        if config is not None:
            for name, (value, line) in fields(config).items():
                plain = value is not None and isinstance(value, ast.Constant) and isinstance(value.value, bool)
                if (names_an_npu(name) or names_fusion(name)) and (plain or asks(name)):
                    on = default(value) if value is not None else None
                    code = _asked(expression, name, may_be_none)
                    yield Switch(code, config.module.file, line, on, is_about(name, rule))
        elif function.module.repository is not None and expression.rpartition(".")[2] in _NAMESPACES:
            for option in (one for parser in parsers(function.module.repository) for one in parser.options):
                if (names_an_npu(option.name) or names_fusion(option.name)) and option.on is not None:
                    code = _asked(expression, option.name, True)
                    yield Switch(code, option.file, option.line, option.on, is_about(option.name, rule))
        for name, line in _named_fields(function.module):
            if asks(name) and (config is None or name not in fields(config)):
                yield Switch(_asked(expression, name, True), function.module.file, line, None, False)


def _asked(holder: str, field: str, may_lack: bool) -> str:
    """The code that asks a field of a configuration; where it may lack the field (or be None), it counts as off."""
    return f'getattr({holder}, "{field}", False)' if may_lack else f"{holder}.{field}"


def holders(function: FunctionGraph) -> list[tuple[str, ClassInfo | None, bool]]:
    """The configurations at hand in a function: the code that they are, their class where the repo has it, and whether
    they may be None.
    """
    found: list[tuple[str, ClassInfo | None, bool]] = []
    node, owner = function.scope.node, function.scope.owner
    rebound = written_names(node.body)
    annotations = {one.arg: one.annotation for one in (*node.args.args, *node.args.kwonlyargs)}
    for name, annotation in annotations.items():
        if name in HOLDERS and name not in rebound:
            found.append((name, _class_of(annotation, function.module), _none_by_default(name, node)))
    self = self_name(function)
    if self is not None and owner is not None:
        for definer in (owner, *owner.bases()):
            for constructor in (definer.methods[one] for one in CONSTRUCTORS if one in definer.methods):
                first = constructor.args.args[0].arg if constructor.args.args else "self"
                for name, value in _assigned(constructor, first):
                    expression = f"{self}.{name}"
                    if name in HOLDERS and all(known != expression for known, *_ in found):
                        may_be_none = not isinstance(value, ast.Name) or _none_by_default(value.id, constructor)
                        found.append((expression, config_of(value, definer, constructor), may_be_none))
    return found


def _none_by_default(name: str, function: FunctionNode) -> bool:
    given = parameters_of(function)
    value = given.get(name)
    return name not in given or (isinstance(value, ast.Constant) and value.value is None)


def config_of(value: ast.expr, owner: ClassInfo, constructor: FunctionNode) -> ClassInfo | None:
    """The class of the configuration that a constructor's expression is, by the annotation of its parameter."""
    if isinstance(value, ast.Name):
        for argument in (*constructor.args.args, *constructor.args.kwonlyargs):
            if argument.arg == value.id:
                return _class_of(argument.annotation, owner.module)
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.attr in HOLDERS:
        for name, given in _assigned(constructor, value.value.id):
            if name == value.attr:
                return config_of(given, owner, constructor)
    return None


def _class_of(annotation: ast.expr | None, module: SourceModule) -> ClassInfo | None:
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                return _class_of(ast.parse(text, mode="eval").body, module)
            except SyntaxError:
                return None
        case ast.Subscript(value=outer, slice=inner) if (dotted_name(outer) or "").endswith("Optional"):
            return _class_of(inner, module)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _class_of(left, module) or _class_of(right, module)
        case ast.Name() | ast.Attribute():
            name = dotted_name(annotation)
            return module.find_class(name) if name is not None else None
    return None


def fields(config: ClassInfo) -> dict[str, tuple[ast.expr | None, int]]:
    """The fields of a configuration class with their defaults and lines: of its body and of its constructor."""
    found: dict[str, tuple[ast.expr | None, int]] = {}
    for definer in (*reversed(config.bases()), config):
        for statement in definer.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found[statement.target.id] = (_field_default(statement.value), statement.lineno)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                found[statement.targets[0].id] = (statement.value, statement.lineno)
        constructor = definer.methods.get("__init__")
        if constructor is not None:
            given = parameters_of(constructor)
            first = constructor.args.args[0].arg if constructor.args.args else "self"
            for name, value in _assigned(constructor, first):
                known = given.get(value.id) if isinstance(value, ast.Name) and value.id in given else value
                found[name] = (known, value.lineno)
    return found


def _field_default(value: ast.expr | None) -> ast.expr | None:
    """`field(default=True, …)` is True."""
    if isinstance(value, ast.Call) and (dotted_name(value.func) or "").rpartition(".")[2] in ("field", "Field"):
        for keyword in value.keywords:
            if keyword.arg == "default":
                return keyword.value
        return value.args[0] if value.args else None
    return value


_NAMED = re.compile(rb"\b(?:" + "|".join(HOLDERS).encode() + rb")\.(\w+)|getattr\(\s*[\w.]+,\s*[\"'](\w+)[\"']")


@lru_cache(maxsize=8)
def _named_fields(module: SourceModule) -> tuple[tuple[str, int], ...]:
    """Fields of configurations that the file asks for under a name that fits, with the line."""
    found: dict[str, int] = {}
    for match in _NAMED.finditer(module.source):
        name = (match.group(1) or match.group(2)).decode(errors="replace")
        if names_an_npu(name) or names_fusion(name):
            found.setdefault(name, module.source.count(b"\n", 0, match.start()) + 1)
    return tuple(found.items())


@lru_cache(maxsize=8)
def _of_file(module: SourceModule) -> tuple[Switch, ...]:
    """Names of the file that answer whether an NPU is there or fused operators are wanted."""
    return (
        *_constants(module, module.file, {name: name for name in module.constants}),
        *_helpers(module, {name: name for name in module.functions}),
        *_imported(module),
    )


def _constants(home: SourceModule, file: str, names: dict[str, str]) -> Iterator[Switch]:
    """Constants at the top of a file; `names`: as it is known here → as it is defined there."""
    for local, name in names.items():
        values = _top_values(home, name)
        told = names_an_npu(name) or names_fusion(name) or any(names_an_npu(ast.unparse(one)) for one in values)
        if not told or not values or not all(is_truth(value) for value in values):
            continue
        answers = [default(value) for value in values]
        # several assignments are the arms of a test or of an attempt: what the machine has decides
        on = True if True in answers else False if all(one is False for one in answers) else None
        sure = names_an_npu(name) or any(names_an_npu(ast.unparse(value)) for value in values)
        yield Switch(local, file, values[0].lineno, on, sure)


def _top_values(home: SourceModule, name: str) -> list[ast.expr]:
    found: list[ast.expr] = []
    stack: list[ast.stmt] = list(home.tree.body)
    while stack:
        statement = stack.pop(0)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets) and statement.value is not None:
                found.append(statement.value)
        elif isinstance(statement, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                stack.extend(getattr(statement, part, []))
            stack.extend(one for handler in getattr(statement, "handlers", ()) for one in handler.body)
    return found


def _helpers(home: SourceModule, names: dict[str, str]) -> Iterator[Switch]:
    """Functions without arguments that answer yes or no."""
    for local, name in names.items():
        node = home.functions[name]
        if not names_an_npu(name) or not asks(name):
            continue
        given = parameters_of(node)
        if any(value is None for value in given.values()) or not _answers(node):
            continue
        yield Switch(f"{local}()", home.file, node.lineno, True, True)


def _answers(node: FunctionNode) -> bool:
    """Whether the function returns something, and its annotation (if it has one) is bool."""
    if node.returns is not None and ast.unparse(node.returns) != "bool":
        return False
    returned = [one.value for one in walk(node) if isinstance(one, ast.Return)]
    return bool(returned) and all(one is not None for one in returned)


def _imported(module: SourceModule) -> Iterator[Switch]:
    for local, (level, origin, name) in module.relative.items():
        if not names_an_npu(name):
            continue
        found = _home(module, level, origin, name)
        if found is not None:
            home, original = found
            if original in home.functions:
                yield from _helpers(home, {local: original})
            elif original in home.constants:
                yield from _constants(home, home.file, {local: original})
        elif name in _ASKED_FROM_LIBRARIES and level == 0 and origin.split(".")[0] in _LIBRARIES:
            yield Switch(f"{local}()", module.file, _line_of_import(module, local), True, True)


def _home(module: SourceModule, level: int, origin: str, name: str, steps: int = 3) -> tuple[SourceModule, str] | None:
    """The file of the repo that defines an imported name, through files that only pass it on."""
    if module.repository is None or not steps:
        return None
    home = module.repository.resolve(module.file, level, origin, name.encode())
    if home is None or name in home.functions or name in home.constants:
        return (home, name) if home is not None else None
    if name in home.relative:
        return _home(home, *home.relative[name], steps - 1)
    return None


def _line_of_import(module: SourceModule, local: str) -> int:
    for node in walk(module.tree):
        if isinstance(node, ast.ImportFrom) and any((one.asname or one.name) == local for one in node.names):
            return node.lineno
    return 1
