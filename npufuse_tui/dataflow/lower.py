"""Python syntax → graph: the statements. Expressions are in expressions.py, calls in calls.py.

Every path through the function is followed once. Where paths meet, a name that differs becomes a `phi` of the
condition and both values. What cannot be followed (a loop's carried names, a call of something unknown) becomes a
fresh node that equals nothing, and is noted under `stops` when it hides something.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from npufuse_tui.dataflow.graph import Graph, Node, Site
from npufuse_tui.dataflow.source import ClassInfo, FunctionNode, Scope, SourceModule, add_import
from npufuse_tui.dataflow.syntax import names_bound, walk

INLINE_DEPTH = 4
INLINE_STATEMENTS = 40
MOST_NODES = 4000
"""Nodes of one function beyond which no more helpers are inlined into it."""

Environment = dict[str, Node]


@dataclass(frozen=True, slots=True)
class Returned:
    """A value that the function may return, and the conditions of the `if`s around that return."""

    statement: ast.stmt
    node: Node
    conditions: tuple[Node, ...]


@dataclass(eq=False, slots=True)
class FunctionGraph:
    """A lowered function, with the way back to its statements.

    `before` is what each statement of the function sees; `returns` are the values that it may return; `helpers` names,
    for nodes that come out of inlined helpers, the helper's syntax node; `values` is what each expression of the function
    itself computes; `held` are the attributes that hold an operator (self.act = nn.SiLU()), with the operator.
    """

    scope: Scope
    module: SourceModule
    graph: Graph
    parameters: dict[str, Node]
    before: dict[ast.stmt, Environment] = field(default_factory=dict)
    after: dict[ast.stmt, Environment] = field(default_factory=dict)
    returns: list[Returned] = field(default_factory=list)
    helpers: dict[int, FunctionNode] = field(default_factory=dict)
    values: dict[ast.expr, Node] = field(default_factory=dict)
    held: dict[Node, tuple[str, tuple[object, ...]]] = field(default_factory=dict)
    mutated: list[tuple[Node, ast.stmt]] = field(default_factory=list)
    stops: list[tuple[int, str]] = field(default_factory=list)
    autocast: dict[ast.stmt, ast.expr] = field(default_factory=dict)


@dataclass(eq=False)
class Frame:
    """One function being lowered: the analysed one, or a helper that is inlined into it."""

    into: FunctionGraph
    module: SourceModule
    owner: ClassInfo | None
    environment: Environment
    depth: int
    function: FunctionNode | ast.Lambda | None
    stack: tuple[int, ...] = ()
    enclosing: tuple[FunctionNode, ...] = ()
    statement: ast.stmt | None = None
    returns: list[Returned] = field(default_factory=list)
    conditions: list[Node] = field(default_factory=list)
    local_functions: dict[int, tuple[FunctionNode | ast.Lambda, Environment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph: Graph = self.into.graph

    def at(self, expression: ast.expr) -> None:
        """Say which expression the nodes made from now on come from."""
        if self.depth == 0 and self.statement is not None:
            site = self.graph.site
            if site is None or site.depth or site.expression is not expression or site.statement is not self.statement:
                self.graph.site = Site(self.statement, expression, 0)

    def make(self, expression: ast.expr, op: str, *args: Node, attrs: tuple[object, ...] = ()) -> Node:
        self.at(expression)
        node = self.graph.make(op, *args, attrs=attrs)
        self._from_helper(node)
        return node

    def fresh(self, expression: ast.expr, op: str, *args: Node, attrs: tuple[object, ...] = ()) -> Node:
        self.at(expression)
        node = self.graph.fresh(op, *args, attrs=attrs)
        self._from_helper(node)
        return node

    def _from_helper(self, node: Node) -> None:
        if self.depth and isinstance(self.function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.into.helpers.setdefault(node.id, self.function)


def lower_function(module: SourceModule, scope: Scope) -> FunctionGraph:
    """The graph of one function of a file."""
    graph = Graph()
    parameters = {
        argument.arg: graph.fresh("parameter", attrs=(argument.arg,)) for argument in _arguments(scope.node.args)
    }
    result = FunctionGraph(scope, module, graph, parameters)
    frame = Frame(
        result, module, scope.owner, dict(parameters), 0, scope.node, (id(scope.node),), enclosing=scope.enclosing
    )
    run(frame, scope.node.body)
    result.returns = frame.returns
    return result


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return found


def run(frame: Frame, body: list[ast.stmt]) -> bool:
    """Lower a suite. Returns whether its end can be reached."""
    for statement in body:
        if frame.depth == 0:
            frame.into.before[statement] = dict(frame.environment)
        frame.statement = statement
        reachable = _statement(frame, statement)
        if frame.depth == 0:
            frame.into.after[statement] = dict(frame.environment)
        if not reachable:
            return False
    return True


def _statement(frame: Frame, statement: ast.stmt) -> bool:
    from npufuse_tui.dataflow.expressions import lower

    match statement:
        case ast.Assign(targets=targets, value=value):
            node = lower(frame, value)
            for target in targets:
                assign(frame, target, node, value)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            assign(frame, target, lower(frame, value), value)
        case ast.AugAssign(target=target, op=op, value=value):
            _augmented(frame, target, op, value)
        case ast.Return(value=value):
            node = lower(frame, value) if value is not None else frame.graph.constant(None)
            frame.returns.append(Returned(statement, node, tuple(frame.conditions)))
            return False
        case ast.Expr(value=value):
            lower(frame, value)
        case ast.If():
            return _if(frame, statement)
        case ast.For() | ast.AsyncFor() | ast.While():
            _loop(frame, statement)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            for item in items:
                manager = lower(frame, item.context_expr)
                if frame.depth == 0 and _is_autocast(manager):
                    frame.into.autocast[statement] = item.context_expr
                if item.optional_vars is not None:
                    assign(frame, item.optional_vars, frame.fresh(item.context_expr, "entered", manager), None)
            return run(frame, body)
        case ast.Try():
            return _try(frame, statement)
        case ast.Import() | ast.ImportFrom():
            add_import(frame.module, statement)
            for alias in statement.names:
                frame.environment.pop((alias.asname or alias.name).split(".")[0], None)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            node = frame.graph.fresh("function", attrs=(statement.name,))
            frame.local_functions[node.id] = (statement, frame.environment)
            frame.environment[statement.name] = node
        case ast.ClassDef():
            frame.environment[statement.name] = frame.graph.fresh("class", attrs=(statement.name,))
        case ast.Delete(targets=targets):
            for target in targets:
                if isinstance(target, ast.Name):
                    frame.environment.pop(target.id, None)
        case ast.Raise() | ast.Break() | ast.Continue():
            return False
        case ast.Match(subject=subject, cases=cases):
            lower(frame, subject)
            _branches(frame, statement, [case.body for case in cases])
        case ast.Assert(test=test):
            lower(frame, test)
    return True


def _is_autocast(manager: Node) -> bool:
    function = manager.args[0] if manager.op == "call" and manager.args else manager
    return any(isinstance(attr, str) and "autocast" in attr for attr in function.attrs)


def assign(frame: Frame, target: ast.expr, node: Node, value: ast.expr | None) -> None:
    """Bind what an assignment binds."""
    from npufuse_tui.dataflow.expressions import lower

    match target:
        case ast.Name(id=name):
            frame.environment[name] = node
        case ast.Starred(value=inner):
            assign(frame, inner, frame.fresh(target, "rest", node), None)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(frame, target, targets, node)
        case ast.Attribute(value=base, attr=name):
            holder = lower(frame, base)
            frame.environment[f"{holder.id}.{name}"] = node
        case ast.Subscript(value=base):
            lower(frame, base)
            lower(frame, target.slice)
            if isinstance(base, ast.Name):
                before = frame.environment.get(base.id)
                if before is not None:
                    frame.into.mutated.append((before, frame.statement or ast.Pass()))
                    frame.environment[base.id] = frame.fresh(target, "stored", before, node)


def _unpack(frame: Frame, target: ast.expr, targets: list[ast.expr], node: Node) -> None:
    graph = frame.graph
    starred = any(isinstance(one, ast.Starred) for one in targets)
    for place, one in enumerate(targets):
        if starred:
            if isinstance(one, ast.Starred):
                part = frame.fresh(target, "rest", node)
            else:
                passed = any(isinstance(before, ast.Starred) for before in targets[:place])
                part = frame.make(target, "getitem", node, graph.constant(place - len(targets) if passed else place))
        elif node.op == "shape":
            # unpacking tells the rank, so every size can be counted from the end
            part = frame.make(target, "size", node.args[0], attrs=(place - len(targets),))
        elif node.op == "tuple" and len(node.args) == len(targets):
            part = node.args[place]
        else:
            part = frame.make(target, "getitem", node, graph.constant(place))
        assign(frame, one, part, None)


def _augmented(frame: Frame, target: ast.expr, op: ast.operator, value: ast.expr) -> None:
    from npufuse_tui.dataflow.expressions import binary, lower

    if isinstance(target, ast.Name):
        before = lower(frame, target)
        node = binary(frame, value, op, before, lower(frame, value))
        if before.op == "parameter":
            frame.into.mutated.append((before, frame.statement or ast.Pass()))
        frame.environment[target.id] = node
    elif isinstance(target, ast.Attribute):
        holder = lower(frame, target.value)
        node = binary(frame, value, op, lower(frame, target), lower(frame, value))
        frame.environment[f"{holder.id}.{target.attr}"] = node
    else:
        lower(frame, value)
        assign(frame, target, frame.fresh(value, "unknown"), None)


def _if(frame: Frame, statement: ast.If) -> bool:
    from npufuse_tui.dataflow.expressions import lower

    condition = lower(frame, statement.test)
    before = frame.environment

    frame.environment = dict(before)
    frame.conditions.append(condition)
    body_goes_on = run(frame, statement.body)
    after_body = frame.environment

    frame.environment = dict(before)
    frame.conditions[-1] = frame.graph.make("not", condition)
    else_goes_on = run(frame, statement.orelse)
    after_else = frame.environment
    frame.conditions.pop()

    frame.statement = statement
    if body_goes_on and else_goes_on:
        frame.environment = _merged(frame, statement.test, condition, after_body, after_else)
    elif body_goes_on:
        frame.environment = after_body
    elif else_goes_on:
        frame.environment = after_else
    return body_goes_on or else_goes_on


def _merged(frame: Frame, test: ast.expr, condition: Node, one: Environment, other: Environment) -> Environment:
    merged: Environment = {}
    for name in {**one, **other}:
        left, right = one.get(name), other.get(name)
        if left is right and left is not None:
            merged[name] = left
        elif left is not None and right is not None:
            merged[name] = frame.make(test, "phi", condition, left, right)
        else:
            known = left if left is not None else right
            if known is not None:
                merged[name] = known
    return merged


def _branches(frame: Frame, statement: ast.stmt, bodies: list[list[ast.stmt]]) -> None:
    before = dict(frame.environment)
    written: set[str] = set()
    for body in bodies:
        frame.environment = dict(before)
        run(frame, body)
        written |= {name for name, node in frame.environment.items() if before.get(name) is not node}
    frame.environment = before
    frame.statement = statement
    for name in written:
        frame.environment[name] = frame.graph.fresh("unknown", attrs=(name,))


def _loop(frame: Frame, statement: ast.For | ast.AsyncFor | ast.While) -> None:
    from npufuse_tui.dataflow.expressions import lower

    if isinstance(statement, ast.While):
        lower(frame, statement.test)
        iterated = None
    else:
        iterated = lower(frame, statement.iter)
    carried = written_names(statement.body) | _changed_in_place(statement.body)
    before = dict(frame.environment)
    started = {name: frame.graph.fresh("carried", attrs=(name,)) for name in sorted(carried & set(before))}
    frame.environment.update(started)
    if iterated is not None and not isinstance(statement, ast.While):
        assign(frame, statement.target, frame.fresh(statement.iter, "element", iterated), None)
    run(frame, statement.body)
    frame.statement = statement
    after = frame.environment
    for name in sorted(carried):
        if name in started and iterated is not None and not isinstance(statement, ast.While):
            # a name that each round builds on: its value before, what is looped over, and what a round makes of it
            ended = after.get(name, started[name])
            after[name] = frame.fresh(statement.iter, "loop", before[name], iterated, ended, started[name])
        else:
            after[name] = frame.graph.fresh("carried", attrs=(name,))
    run(frame, statement.orelse)


def _changed_in_place(body: list[ast.stmt]) -> set[str]:
    """Names whose tensors a suite changes by a method that ends in an underscore."""
    return {
        node.func.value.id
        for statement in body
        for node in walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and not node.func.attr.startswith("_")
        and isinstance(node.func.value, ast.Name)
    }


def _try(frame: Frame, statement: ast.Try) -> bool:
    before = dict(frame.environment)
    goes_on = run(frame, statement.body) and run(frame, statement.orelse)
    after = frame.environment
    for handler in statement.handlers:
        frame.environment = dict(before)
        if handler.name:
            frame.environment[handler.name] = frame.graph.fresh("exception")
        if run(frame, handler.body):
            for name, node in frame.environment.items():
                if after.get(name) is not node:
                    after[name] = frame.graph.fresh("unknown", attrs=(name,)) if goes_on else node
            goes_on = True
    frame.environment = after
    frame.statement = statement
    return run(frame, statement.finalbody) and goes_on


def written_names(body: list[ast.stmt]) -> set[str]:
    """The plain names that a suite binds, nested suites included, nested functions not."""
    return {name for statement in body for name in names_bound(statement)}
