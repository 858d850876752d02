"""A region and its fused branch → the plan of the executable proof.

The region becomes the body of a function of its free names; so does the fused branch. Names that the pattern binds get
the inputs of the rule's example; objects are stubs that hold the bound attributes; helpers are cut verbatim out of the
user's files.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from functools import lru_cache

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.source import FunctionNode, SourceModule
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.language import Text
from npufuse_tui.model import ProofPlan
from npufuse_tui.rewrite.edit import Guarded
from npufuse_tui.rewrite.fused_branch import MADE_CONTIGUOUS, Call, FusedBranch
from npufuse_tui.rewrite.output_dtype import primary_input
from npufuse_tui.rewrite.region import Region
from npufuse_tui.rewrite.render import render
from npufuse_tui.rewrite.text import SourceText, dedented, lines_inside_strings
from npufuse_tui.rules import Rule

PROVIDED = frozenset(
    {"torch", "nn", "F", "math", "functools", "torch_npu", "np", "numpy", "einops", "rearrange", "repeat"}
)


DERIVED = frozenset({"chunk", "piece", "transpose", "unsqueeze", "squeeze", "contiguous"})
"""Operations that a value of the example can be put through to become another value that the region reads."""


class _NotPlanned(Exception):
    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


def plan(rule: Rule, region: Region, branch: FusedBranch, guarded: Guarded) -> ProofPlan:
    """The plan; when none can be made, its `not_run` says why."""
    variant = branch.calls[0].match.variant
    try:
        return _Planner(rule, region, branch, guarded).plan()
    except _NotPlanned as reason:
        return ProofPlan(rule.id, variant, "", "", "", (), (), 0, reason.text)


class _Planner:
    def __init__(self, rule: Rule, region: Region, branch: FusedBranch, guarded: Guarded) -> None:
        self.rule = rule
        self.region = region
        self.branch = branch
        self.guarded = guarded
        self.function = branch.calls[0].match.function
        self.module = self.function.module
        self.setup: dict[str, str] = {}
        self.stubs: dict[str, dict[str, object]] = {}
        self.values: dict[str, str] = {}
        self.cuts: dict[str, str] = {}

    def plan(self) -> ProofPlan:
        ending, outputs = self._ending()
        original = dedented(self.guarded.original)
        fused = self.guarded.replacement
        entry = self.branch.entry.names
        first = self._inputs(self.branch.calls[0])
        for node, (op, attrs) in self.function.held.items():
            if op == "rms_norm":  # before what is asked of its weight
                self._give_held(node, op, attrs)
        for number, call in enumerate(self.branch.calls, 1):
            for name, code in self._inputs(call).items():
                # a query and a key are two tensors: with one for both, mixing them up would go unseen
                given = name if code == first.get(name, code) else f"{name}_{number}"
                # what the code makes contiguous is so in the proof too; the fused call relies on it
                made = call.match.values[name].op in MADE_CONTIGUOUS
                self._give(code, f"{given}.contiguous()" if made else given, call.match.pattern.kinds[name])
            for node, op, attrs in call.match.activations:
                self._give_held(node, op, attrs)
        for node, (op, attrs) in self.function.held.items():
            self._give_held(node, op, attrs)
        limits = [one for one in self.guarded.conditions if _free_names(one) & set(self.rule.helpers)]
        guard = " and ".join(limits)
        if self.cuts:
            original, fused = _cut(original, self.cuts), _cut(fused, self.cuts)
            guard = _cut(guard, self.cuts) if guard else ""
        used = _free_names(original) | _free_names(fused) | _free_names(guard)
        parameters = sorted(name for name in used if name in entry or name in self.cuts.values())
        self._helpers(used - set(entry) - set(self.cuts.values()), "\n".join((original, fused, guard)))
        self._methods(original)
        values = tuple(self._value(name) for name in parameters)
        signature = ", ".join(parameters)
        return ProofPlan(
            self.rule.id,
            self.branch.calls[0].match.variant,
            _function("original", signature, original, ending),
            _function("fused", signature, fused, ending),
            "\n\n".join(self.setup.values()),
            tuple(parameters),
            values,
            outputs if self.rule.outputs is None else min(self.rule.outputs, outputs),
            guard=guard,
        )

    def _inputs(self, call: Call) -> dict[str, str]:
        """The code of the call's inputs, and of those that only the original reads."""
        read = {name: render(node, self.branch.entry) for name, node in call.match.values.items()}
        return {**{name: code for name, code in read.items() if code is not None}, **call.inputs}

    def _ending(self) -> tuple[str, int]:
        last = self.region.statements[-1]
        if isinstance(last, ast.Return):
            count = len(last.value.elts) if isinstance(last.value, ast.Tuple) else 1
            return "", count
        if any(isinstance(node, ast.Return) for one in self.region.statements for node in walk(one)):
            raise _NotPlanned(Text("the region returns from inside", "区域内部存在提前返回"))
        names = [name for name in self.branch.names_after if name not in self.branch.without]
        if not names:
            stored = [one for one in self.region.statements if isinstance(one, ast.Expr)]
            raise _NotPlanned(
                Text("the result goes into a call or an attribute", "结果写入调用或属性")
                if stored
                else Text("the region gives its result to no name", "区域没有把结果赋给任何名称")
            )
        return f"return ({', '.join(names)},)" if len(names) > 1 else f"return {names[0]}", len(names)

    def _give(self, code: str, value: str, kind: str) -> None:
        """Let the code of a binding evaluate to an input of the example."""
        try:
            expression = ast.parse(code, mode="eval").body
        except SyntaxError:
            return
        if kind == "scalar" and not isinstance(expression, (ast.Name, ast.Attribute)):
            self._give_numbers(expression)
        else:
            self._assign(expression, value)

    def _give_numbers(self, expression: ast.expr) -> None:
        """Arithmetic on attributes (`self.head_dim ** -0.5`): any number will do, since both sides read the same one."""
        stack: list[ast.expr] = [expression]
        while stack:
            node = stack.pop()
            path = _dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            if path is None:
                stack.extend(one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
            elif path[0] not in PROVIDED and not {"shape", "dtype", "size"} & set(path):
                if len(path) == 1:
                    self.values.setdefault(path[0], "4")
                else:
                    self._put(path, "4")

    def _cut_at(self, expression: ast.expr, value: str) -> None:
        """No stub can make the expression give the input, so both functions take it as a parameter instead."""
        name = f"input_{value.split('.')[0].lstrip('~-')}"
        self.cuts[ast.dump(expression)] = name
        self.values[name] = value

    def _assign(self, expression: ast.expr, value: str) -> None:
        match expression:
            case ast.Name(id=name):
                self.values.setdefault(name, value)
            case ast.Attribute():
                path = _dotted(expression)
                if path is not None and path[-1] not in ("shape", "dtype"):
                    self._put(path, value)
            case ast.UnaryOp(op=ast.Invert(), operand=inner):
                self._assign(inner, f"~{value}")
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                self._assign(inner, f"-{value}")
            case ast.Compare(left=inner, ops=[ast.Eq()], comparators=[ast.Constant(value=0 | False)]):
                self._assign(inner, f"~{value}")
            case ast.Compare(left=inner, ops=[ast.Eq()], comparators=[ast.Constant(value=1 | True)]):
                self._assign(inner, value)
            case ast.Compare(left=inner, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                pass
            case ast.Subscript(value=ast.Attribute() as inner):
                self._assign(inner, f"Everywhere({value})")
            case ast.Call(func=ast.Attribute(value=inner, attr="contiguous" | "float" | "clone")):
                self._assign(inner, value)
            case ast.Call(func=ast.Attribute(value=inner, attr="to" | "type_as")):
                self._assign(inner, value)
            case ast.Call(func=ast.Attribute(value=inner, attr="transpose"), args=[one, other]):
                self._assign(inner, f"{value}.transpose({ast.unparse(one)}, {ast.unparse(other)})")
            case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze"), args=[ast.Constant(value=1)]):
                self._assign(inner, f"{value}.squeeze(1)")
            case ast.Call(func=function):
                path = _dotted(function)
                if path is not None and path[0] not in PROVIDED:
                    if len(path) == 1:
                        self.values.setdefault(path[0], f"Returns({value})")
                    else:
                        self._put(path, f"Returns({value})")
                else:
                    self._cut_at(expression, value)
            case ast.Constant() | ast.Tuple():
                pass
            case _:
                self._cut_at(expression, value)

    def _put(self, path: tuple[str, ...], value: str) -> None:
        holder = self.stubs.setdefault(path[0], {})
        for name in path[1:-1]:
            inner = holder.setdefault(name, {})
            if not isinstance(inner, dict):
                return
            holder = inner
        holder.setdefault(path[-1], value)

    def _give_held(self, holder: Node, op: str, attrs: tuple[object, ...]) -> None:
        """Let an attribute that holds an operator be that operator."""
        first = attrs[0] if attrs else None
        code = {
            "silu": "nn.SiLU()",
            "gelu": f"nn.GELU(approximate={first or 'none'!r})",
            "relu": "nn.ReLU()",
            "sigmoid": "nn.Sigmoid()",
            "tanh": "nn.Tanh()",
            "softmax": f"nn.Softmax(dim={first!r})",
            "rms_norm": "HeldNorm(weight, eps)",
        }.get(op)
        path = _path_of(holder)
        if path is None and (said := render(holder, self.branch.entry)) is not None:
            path = _dotted(ast.parse(said, mode="eval").body)
        if code is None or path is None:
            return
        if len(path) == 1:
            self.values.setdefault(path[0], code)
        else:
            self._put(path, code)

    def _value(self, name: str) -> str:
        if name in self.stubs:
            return _stub(self.stubs[name])
        if name in self.values:
            return self.values[name]
        default = _default_of(name, self.function.scope.node)
        if default is not None:
            return default
        if name in ("self", "module", "config", "cls"):
            return "Stub()"
        node = self.branch.entry.names[name]
        derived = self._derived(node)
        if derived is not None:
            return derived
        if node.op in ("size", "floordiv", "builtin"):
            return "2"
        return primary_input(self.branch.calls[0].match)

    def _derived(self, node: Node) -> str | None:
        """Code that makes a value out of the example's inputs, when the graph shows how it is made of them."""
        for call in self.branch.calls:
            for name, bound in call.match.values.items():
                if bound is node and call.match.pattern.kinds[name] != "scalar":
                    return f"{name}.contiguous()" if node.op in MADE_CONTIGUOUS else name
        inner = self._derived(node.args[0]) if node.args and node.op in DERIVED else None
        if inner is None:
            return None
        if node.op == "chunk":
            return f"{inner}.chunk({node.attrs[0]}, dim={node.attrs[1]})"
        if node.op == "piece":
            return f"{inner}.chunk({node.attrs[0]}, dim={node.attrs[1]})[{node.attrs[2]}]"
        return f"{inner}.{node.op}({', '.join(map(str, node.attrs))})"

    def _helpers(self, names: Iterable[str], code: str) -> None:
        """Cut what the code calls, and what that calls, out of the files."""
        todo = [(self.module, name) for name in sorted(names)]
        seen: set[str] = set()
        while todo:
            module, name = todo.pop(0)
            if name in seen or name in PROVIDED or hasattr(builtins, name):
                continue
            seen.add(name)
            if name in self.rule.helpers:
                self.setup[name] = self.rule.helpers[name]
                continue
            found = module.find_function(name)
            if found is not None:
                home, node = found
                source = function_source(home, node)
                self.setup[name] = source
                todo.extend((home, inner) for inner in sorted(_free_names(source)))
            elif name in module.constants and _is_plain(module.constants[name]):
                self.setup[name] = f"{name} = {ast.unparse(module.constants[name])}"
                todo.extend((module, inner) for inner in sorted(_free_names(ast.unparse(module.constants[name]))))
            elif module.imports.get(name, "").startswith(("torch", "math", "functools", "numpy", "einops", "typing")):
                dotted = module.imports[name]
                if dotted != name:
                    home_name, _, last = dotted.rpartition(".")
                    self.setup[name] = (
                        f"from {home_name} import {last} as {name}" if home_name else f"import {dotted} as {name}"
                    )

    def _methods(self, code: str) -> None:
        owner = self.function.scope.owner
        if owner is None:
            return
        todo, seen = sorted(_self_calls(code)), set[str]()
        while todo:
            name = todo.pop()
            found = owner.method(name)
            if name in seen or found is None:
                continue
            seen.add(name)
            definer, node = found
            static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
            source = function_source(definer.module, node).replace(f"def {name}(", f"def _method_{name}(", 1)
            self.setup[f"_method_{name}"] = source
            stub = self.stubs.setdefault("self", {})
            if static:
                stub.setdefault(name, f"_method_{name}")
            else:
                methods = stub.setdefault("_methods", {})
                assert isinstance(methods, dict)
                methods[name] = f"_method_{name}"
            self._helpers(_free_names(source), source)
            todo += sorted(_self_calls(source))


def _cut(code: str, cuts: dict[str, str]) -> str:
    """The code with each expression that is cut replaced by its parameter."""

    class Cutter(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            name = cuts.get(ast.dump(node)) if isinstance(node, ast.expr) else None
            return ast.Name(name, ast.Load()) if name is not None else self.generic_visit(node)

    tree = Cutter().visit(ast.parse(dedented(code)))
    return ast.unparse(ast.fix_missing_locations(tree))


def _path_of(node: Node) -> tuple[str, ...] | None:
    parts: list[str] = []
    while node.op == "attribute":
        parts.append(str(node.attrs[0]))
        node = node.args[0]
    if node.op == "parameter":
        parts.append(str(node.attrs[0]))
        return tuple(reversed(parts))
    return None


def _stub(attributes: dict[str, object]) -> str:
    parts = []
    for name, value in attributes.items():
        if name == "_methods" and isinstance(value, dict):
            inside = ", ".join(f"{method!r}: {code}" for method, code in value.items())
            parts.append(f"_methods={{{inside}}}")
        elif isinstance(value, dict):
            parts.append(f"{name}={_stub(value)}")
        else:
            parts.append(f"{name}={value}")
    return f"Stub({', '.join(parts)})"


def _function(name: str, signature: str, body: str, ending: str) -> str:
    lines = [*body.split("\n"), *([ending] if ending else [])]
    inside = lines_inside_strings(body)
    indented = [line if number in inside or not line.strip() else f"    {line}" for number, line in enumerate(lines, 1)]
    return f"def {name}({signature}):\n" + "\n".join(indented) + "\n"


def _dotted(expression: ast.expr) -> tuple[str, ...] | None:
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if isinstance(expression, ast.Name):
        return (expression.id, *reversed(parts))
    return None


@lru_cache(maxsize=1024)
def _free_names(code: str) -> frozenset[str]:
    """Names that are read in the code before it could have bound them all: a superset of the free ones."""
    try:
        tree = ast.parse(dedented(code))
    except SyntaxError:
        return frozenset()
    return frozenset(node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


@lru_cache(maxsize=1024)
def _self_calls(code: str) -> frozenset[str]:
    return frozenset(
        node.func.attr
        for node in walk(ast.parse(dedented(code)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("self", "cls")
    )


def _default_of(name: str, function: FunctionNode) -> str | None:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True))
    pairs += [
        (one, value)
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    ]
    for argument, value in pairs:
        if argument.arg == name and isinstance(value, (ast.Constant, ast.UnaryOp)):
            return ast.unparse(value)
    return None


def _is_plain(expression: ast.expr) -> bool:
    return not any(isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)) for node in walk(expression))


def function_source(module: SourceModule, node: FunctionNode) -> str:
    """The function verbatim, without its decorators and not indented."""
    text = SourceText(module.source)
    return dedented(text.between(text.line_start(node.lineno), text.end(node)))
