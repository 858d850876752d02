"""Python syntax → graph: the expressions."""

from __future__ import annotations

import ast

from npufuse_tui.dataflow.calls import call
from npufuse_tui.dataflow.graph import FLOAT_CASTS, Node
from npufuse_tui.dataflow.lower import Frame, assign

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}


def lower(frame: Frame, expression: ast.expr) -> Node:
    """The node that an expression computes."""
    node = _lower(frame, expression)
    if frame.depth == 0:
        frame.into.values[expression] = node
    return node


def _lower(frame: Frame, expression: ast.expr) -> Node:
    match expression:
        case ast.Name(id=name):
            return _name(frame, expression, name)
        case ast.Constant(value=value):
            return frame.graph.constant(value if not isinstance(value, complex) else repr(value))
        case ast.Attribute():
            return _attribute(frame, expression)
        case ast.BinOp(left=left, op=op, right=right):
            return binary(frame, expression, op, lower(frame, left), lower(frame, right))
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(frame, expression, op, lower(frame, operand))
        case ast.Call():
            return call(frame, expression)
        case ast.Subscript():
            return _subscript(frame, expression)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return _sequence(frame, expression, elements)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition = lower(frame, test)
            yes, no = lower(frame, body), lower(frame, orelse)
            return yes if yes is no else frame.make(expression, "phi", condition, yes, no)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operands = [lower(frame, left), *(lower(frame, one) for one in comparators)]
            names = tuple(type(op).__name__ for op in ops)
            return frame.make(expression, "compare", *operands, attrs=names)
        case ast.BoolOp(op=op, values=values):
            name = "and" if isinstance(op, ast.And) else "or"
            return frame.make(expression, name, *(lower(frame, value) for value in values))
        case ast.NamedExpr(target=target, value=value):
            node = lower(frame, value)
            assign(frame, target, node, value)
            return node
        case ast.Starred(value=value):
            return frame.make(expression, "starred", lower(frame, value))
        case ast.Lambda():
            node = frame.fresh(expression, "function", attrs=("<lambda>",))
            frame.local_functions[node.id] = (expression, frame.environment)
            return node
        case ast.Slice(lower=low, upper=high, step=step):
            parts = [lower(frame, one) if one is not None else frame.graph.constant(None) for one in (low, high, step)]
            return frame.make(expression, "slice", *_plain_slice(frame, parts))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return _comprehension(frame, expression)
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr):
            lower(frame, child)
    return frame.fresh(expression, "unknown")


def _plain_slice(frame: Frame, parts: list[Node]) -> list[Node]:
    low, high, step = parts
    none = frame.graph.constant(None)
    return [none if low.value == 0 and low.is_constant else low, high, none if step.value == 1 else step]


def _name(frame: Frame, expression: ast.expr, name: str) -> Node:
    node = frame.environment.get(name)
    if node is not None:
        return node
    return global_name(frame, name)


def global_name(frame: Frame, name: str) -> Node:
    """The node of a name that no statement of the function binds."""
    dotted = frame.module.imports.get(name, name)
    constant = frame.module.constants.get(name)
    if constant is not None and isinstance(constant, ast.Constant) and isinstance(constant.value, (int, float)):
        return frame.graph.make("constant_name", frame.graph.constant(constant.value), attrs=(name,))
    return frame.graph.make("global", attrs=(dotted, name))


def _attribute(frame: Frame, expression: ast.Attribute) -> Node:
    base = lower(frame, expression.value)
    return attribute_of(frame, expression, base, expression.attr)


def attribute_of(frame: Frame, expression: ast.expr, base: Node, name: str) -> Node:
    """`base.name`."""
    stored = frame.environment.get(f"{base.id}.{name}")
    if stored is not None:
        return stored
    if base.op == "global":
        dotted = f"{base.attrs[0]}.{name}"
        if dotted.startswith("torch.") and name in FLOAT_CASTS and dotted.count(".") == 1:
            return frame.graph.make("dtype_name", attrs=(FLOAT_CASTS[name],))
        return frame.graph.make("global", attrs=(dotted, f"{base.attrs[1]}.{name}"))
    if name == "shape":
        return frame.make(expression, "shape", base)
    if name == "dtype":
        return frame.make(expression, "dtype", base)
    if name in ("T", "mT"):
        return frame.make(expression, "transpose", base, attrs=(-2, -1))
    return frame.make(expression, "attribute", base, attrs=(name,))


def binary(frame: Frame, expression: ast.expr, op: ast.operator, left: Node, right: Node) -> Node:
    """`left op right`."""
    name = BINARY.get(type(op), "unknown")
    if name == "add" and left.op == "tuple" and right.op == "tuple":
        return frame.make(expression, "tuple", *left.args, *right.args)
    return frame.make(expression, name, left, right)


def _unary(frame: Frame, expression: ast.expr, op: ast.unaryop, operand: Node) -> Node:
    if isinstance(op, ast.USub):
        return frame.make(expression, "neg", operand)
    if isinstance(op, ast.UAdd):
        return operand
    if isinstance(op, ast.Not):
        return frame.make(expression, "not", operand)
    return frame.make(expression, "invert", operand)


def _sequence(frame: Frame, expression: ast.expr, elements: list[ast.expr]) -> Node:
    nodes: list[Node] = []
    for element in elements:
        node = lower(frame, element)
        if node.op == "starred" and node.args[0].op == "tuple":
            nodes.extend(node.args[0].args)
        else:
            nodes.append(node)
    return frame.make(expression, "tuple", *nodes)


def _subscript(frame: Frame, expression: ast.Subscript) -> Node:
    base = lower(frame, expression.value)
    index = expression.slice
    if isinstance(index, ast.Tuple):
        parts = [lower(frame, element) for element in index.elts]
        return _index(frame, expression, base, parts)
    node = lower(frame, index)
    if node.is_constant and isinstance(node.value, (int, str)):
        return frame.make(expression, "getitem", base, node)
    if node.op == "slice" and base.op in ("tuple", "shape"):
        return _part_of_sequence(frame, expression, base, node)
    return _index(frame, expression, base, [node])


def _part_of_sequence(frame: Frame, expression: ast.expr, base: Node, part: Node) -> Node:
    low, high, step = (one.value for one in part.args)
    if base.op == "tuple" and all(one.is_constant for one in part.args):
        return frame.make(expression, "tuple", *base.args[slice(low, high, step)])  # type: ignore[arg-type]
    return frame.make(expression, "index", base, part)


def _index(frame: Frame, expression: ast.expr, base: Node, parts: list[Node]) -> Node:
    """`base[...]`. The first and the second half of the last dim are pieces, as chunk(2, -1) gives them."""
    if len(parts) >= 2 and parts[-1].op == "slice" and all(_is_whole(part) for part in parts[:-1]):
        # x[:, :, :, ::2] of four dims is x[..., ::2]
        parts = [frame.graph.constant(...), parts[-1]]
    if len(parts) == 2 and parts[0].value is Ellipsis and parts[1].op == "slice":
        low, high, step = parts[1].args
        if step.value is None and step.is_constant:
            if low.value is None and low.is_constant and _is_half(frame, high, base):
                return frame.make(expression, "piece", base, attrs=(2, -1, 0))
            if high.value is None and high.is_constant and _is_half(frame, low, base):
                return frame.make(expression, "piece", base, attrs=(2, -1, 1))
    return frame.make(expression, "index", base, *parts)


def _is_whole(part: Node) -> bool:
    return part.op == "slice" and all(bound.is_constant and bound.value is None for bound in part.args)


def _is_half(frame: Frame, bound: Node, of: Node) -> bool:
    if bound.op != "floordiv" or bound.args[1].value != 2:
        return False
    whole = bound.args[0]
    counted = whole.op == "size" and whole.attrs[0] in (2, 3) and whole.args[0] is of
    return whole is frame.graph.size_of(of, -1) or counted


def _comprehension(frame: Frame, expression: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Node:
    outer = dict(frame.environment)
    sources = []
    for generator in expression.generators:
        source = lower(frame, generator.iter)
        sources.append(source)
        assign(frame, generator.target, frame.fresh(generator.iter, "element", source), None)
        for test in generator.ifs:
            lower(frame, test)
    if isinstance(expression, ast.DictComp):
        results = [lower(frame, expression.key), lower(frame, expression.value)]
    else:
        results = [lower(frame, expression.elt)]
    frame.environment = outer
    source = sources[0]
    if (
        not isinstance(expression, ast.DictComp)
        and len(sources) == 1
        and source.op == "tuple"
        and len(source.args) <= 8
        and isinstance(expression.generators[0].target, ast.Name)
        and not expression.generators[0].ifs
    ):
        parts = []
        for element in source.args:
            frame.environment = {**outer, expression.generators[0].target.id: element}
            parts.append(lower(frame, expression.elt))
        frame.environment = outer
        return frame.make(expression, "tuple", *parts)
    return frame.fresh(expression, "comprehension", *sources, *results)
