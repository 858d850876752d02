"""Python syntax → graph: calls. A call is an operator of torch, a helper that is inlined, or something unknown."""

from __future__ import annotations

import ast
import re

from npufuse_tui.dataflow.einsum import einsum
from npufuse_tui.dataflow.graph import FLOAT_CASTS, Node
from npufuse_tui.dataflow.lower import INLINE_DEPTH, INLINE_STATEMENTS, MOST_NODES, Environment, Frame, Returned, run
from npufuse_tui.dataflow.operators import (
    ACTIVATIONS,
    DEFAULTS,
    FUNCTION_HOMES,
    IGNORED,
    IN_PLACE,
    LITERALS,
    MODULES,
    SIGNATURES,
    VARIADIC,
    canonical_name,
)
from npufuse_tui.dataflow.rearrange import rearrange
from npufuse_tui.dataflow.source import ClassInfo, FunctionNode, SourceModule, dotted_name
from npufuse_tui.dataflow.syntax import walk

PURE_BUILTINS = frozenset(
    {"float", "int", "len", "getattr", "isinstance", "max", "min", "tuple", "list", "bool", "str"}
)

ACTIVATION_WORDS = (
    "act_fn",
    "activation",
    "activation_fn",
    "act_func",
    "act",
    "hidden_act",
    "activation_func",
    "act_layer",
)


def call(frame: Frame, expression: ast.Call) -> Node:
    """The node of a call."""
    from npufuse_tui.dataflow.expressions import attribute_of, lower

    function = expression.func
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Call) and dotted_name(function.value.func) == "super":
            return _unknown(frame, expression, frame.fresh(function, "super", attrs=(function.attr,)))
        base = lower(frame, function.value)
        if base.op == "global":
            return _named(
                frame,
                expression,
                f"{base.attrs[0]}.{function.attr}",
                attribute_of(frame, function, base, function.attr),
            )
        if _is_self(frame, base):
            return _of_self(frame, expression, base, function.attr)
        return _method(frame, expression, base, function)
    if isinstance(function, ast.Name) and function.id not in frame.environment:
        node = lower(frame, function)
        return _named(frame, expression, str(node.attrs[0]) if node.attrs else function.id, node)
    return call_value(frame, expression, lower(frame, function))


def _is_self(frame: Frame, base: Node) -> bool:
    return frame.owner is not None and base.op == "parameter" and base.attrs[0] in ("self", "cls")


def _named(frame: Frame, expression: ast.Call, dotted: str, function: Node) -> Node:
    """A call by a name that no statement of the function binds: `torch.rsqrt(x)`, `rotate_half(q)`, `rearrange(…)`."""
    home, _, last = dotted.rpartition(".")
    if last == "rearrange" and dotted.startswith("einops"):
        return rearrange(frame, expression)
    name = _torch_function(dotted)
    if name is not None:
        return operator(frame, expression, name, None, expression.args, expression.keywords)
    if home in FUNCTION_HOMES and last.endswith("_") and last[:-1] in IN_PLACE:
        return operator(frame, expression, last[:-1], None, expression.args, expression.keywords)
    if home == "torch.Tensor" and expression.args:
        known = canonical_name(last)
        if known is not None:
            return operator(frame, expression, known, None, expression.args, expression.keywords)
        if last in FLOAT_CASTS:
            return _cast_to(frame, expression, _lowered(frame, expression.args[0]), FLOAT_CASTS[last])
    local = function.attrs[-1] if function.op == "global" else None
    if isinstance(local, str) and "." not in local:
        found = frame.module.find_function(local)
        if found is not None:
            module, node = found
            inlined = inline(frame, expression, module, None, node, _arguments(frame, expression), {})
            if inlined is not None:
                return inlined
        if local in PURE_BUILTINS:
            return _builtin(frame, expression, local)
    elif isinstance(local, str) and local.count(".") == 1:
        owner_name, method = local.split(".")
        owner = frame.module.find_class(owner_name)
        found_method = owner.method(method) if owner is not None else None
        if found_method is not None:
            definer, node = found_method
            inlined = inline(frame, expression, definer.module, definer, node, _arguments(frame, expression), {})
            if inlined is not None:
                return inlined
    if last in ACTIVATION_WORDS and len(expression.args) == 1 and not expression.keywords:
        return frame.make(expression, "activation", _lowered(frame, expression.args[0]), function, attrs=(None,))
    return _unknown(frame, expression, function)


def _torch_function(dotted: str) -> str | None:
    home, _, last = dotted.rpartition(".")
    if home == "math":
        return last if last in ("sqrt", "exp") else None
    if home in FUNCTION_HOMES:
        if home == "torch.linalg" and last == "vector_norm":
            return "norm"
        return canonical_name(last)
    if dotted in ("einops.rearrange", "einops.einsum", "einops.repeat"):
        return None
    return None


def _builtin(frame: Frame, expression: ast.Call, name: str) -> Node:
    args = [_lowered(frame, arg) for arg in expression.args]
    if name in ("float", "int") and len(args) == 1 and args[0].is_constant:
        return args[0]
    if name == "float" and len(args) == 1:
        return args[0]
    if name in ("tuple", "list") and len(args) == 1 and args[0].op in ("tuple", "shape"):
        return args[0]
    if name == "getattr" and len(args) >= 2 and isinstance(args[1].value, str):
        return frame.make(expression, "attribute", args[0], attrs=(args[1].value,))
    if name == "len" and len(args) == 1 and args[0].op == "tuple":
        return frame.graph.constant(len(args[0].args))
    return frame.make(expression, "builtin", *args, attrs=(name,))


def _lowered(frame: Frame, expression: ast.expr) -> Node:
    from npufuse_tui.dataflow.expressions import lower

    return lower(frame, expression)


def _of_self(frame: Frame, expression: ast.Call, base: Node, name: str) -> Node:
    """`self.name(…)`: a method, or something that the constructor put there."""
    from npufuse_tui.dataflow.expressions import attribute_of

    owner = frame.owner
    assert owner is not None
    found = owner.method(name)
    if found is not None:
        definer, node = found
        static = any(dotted_name(one) == "staticmethod" for one in node.decorator_list)
        bound = {} if static else {"self": base}
        inlined = inline(frame, expression, definer.module, owner, node, _arguments(frame, expression), bound)
        if inlined is not None:
            return inlined
        return _unknown(frame, expression, attribute_of(frame, expression.func, base, name))
    return call_value(frame, expression, attribute_of(frame, expression.func, base, name))


def call_value(frame: Frame, expression: ast.Call, function: Node) -> Node:
    """A call of a value: a local function, or a module that an attribute holds."""
    if function.op == "function" and function.id in frame.local_functions:
        node, environment = frame.local_functions[function.id]
        if isinstance(node, ast.Lambda):
            return _inline_lambda(frame, expression, node, environment)
        inlined = inline(
            frame, expression, frame.module, frame.owner, node, _arguments(frame, expression), {}, dict(environment)
        )
        return inlined if inlined is not None else _unknown(frame, expression, function)
    if function.op == "attribute" and expression.args and len(function.args) == 1:
        held = held_operator(frame.owner, function, frame.depth)
        if held is not None:
            op, attrs = held
            frame.into.held[function] = held
            value = _lowered(frame, expression.args[0])
            if op == "identity":
                return value
            if op == "activation":
                usual = usual_activation(frame, function)
                return frame.make(expression, "activation", value, function, attrs=(usual,))
            if op == "dropout":
                rate = frame.make(expression, "attribute", function, attrs=("p",))
                training = frame.make(expression, "attribute", function, attrs=("training",))
                return frame.make(expression, "dropout", value, rate, training)
            if op == "linear":
                return frame.make(expression, "module_linear", value, function)
            if op == "rms_norm":
                weight = frame.make(expression, "attribute", function, attrs=("weight",))
                epsilon = frame.make(expression, "attribute", function, attrs=("eps",))
                return frame.make(expression, "rms_norm", value, frame.graph.constant(None), weight, epsilon)
            return frame.make(expression, op, value, attrs=attrs)
    inlined = _stateless_module(frame, expression, function)
    if inlined is not None:
        return inlined
    if function.op in ("parameter", "phi", "attribute") and len(expression.args) == 1 and not expression.keywords:
        word = str(function.attrs[0]) if function.attrs else ""
        if word in ACTIVATION_WORDS:
            value = _lowered(frame, expression.args[0])
            return frame.make(expression, "activation", value, function, attrs=(usual_activation(frame, function),))
    return _unknown(frame, expression, function)


def _stateless_module(frame: Frame, expression: ast.Call, function: Node) -> Node | None:
    """A call of an attribute that holds a small module of the repo without weights of its own: an activation class."""
    base = function.args[0] if function.op == "attribute" else None
    if frame.owner is None or base is None or base.op != "parameter" or base.attrs[0] != "self":
        return None
    values = frame.owner.attribute(str(function.attrs[0]))
    if len(values) != 1:
        return None
    definer, value = values[0]
    if not isinstance(value, ast.Call):
        return None
    name = dotted_name(value.func)
    held = definer.module.find_class(name) if name is not None else None
    if held is None or len(held.methods) > 2 or "forward" not in held.methods or held.given("weight"):
        return None
    node = held.methods["forward"]
    return inline(frame, expression, held.module, held, node, _arguments(frame, expression), {"self": function})


def held_operator(owner: ClassInfo | None, function: Node, depth: int = 0) -> tuple[str, tuple[object, ...]] | None:
    """What calling `self.<attribute>` computes, read off the constructor: (operator, attributes).

    "activation" is one that is looked up at run time (ACT2FN[config.hidden_act]).
    """
    base, name = function.args[0], str(function.attrs[0])
    if owner is None or base.op != "parameter" or base.attrs[0] != "self":
        return None
    values = owner.attribute(name)
    kinds = {_held(definer.module, value) for definer, value in values}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds and name in ACTIVATION_WORDS:
        return ("activation", ())
    return ("activation", ()) if not values and name in ACTIVATION_WORDS else None


def _held(module: SourceModule, value: ast.expr) -> tuple[str, tuple[object, ...]] | None:
    if isinstance(value, ast.IfExp):
        one, other = _held(module, value.body), _held(module, value.orelse)
        if one == other:
            return one
        return ("activation", ()) if one and other and {one[0], other[0]} <= _ACTIVATION_OPS else None
    if isinstance(value, ast.Subscript) and (dotted_name(value.value) or "").rsplit(".", 1)[-1] in (
        "ACT2FN",
        "ACT2CLS",
        "ACTIVATION_FUNCTIONS",
        "ACT_FN",
    ):
        key = value.slice
        if isinstance(key, ast.Constant) and key.value in ACTIVATIONS:
            return ACTIVATIONS[str(key.value)]
        return ("activation", ())
    if isinstance(value, ast.Call):
        dotted = _imported_name(module, value.func)
        last = dotted.rsplit(".", 1)[-1]
        if dotted in MODULES:
            op, parameters = MODULES[dotted]
            given = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
            given.update(zip(parameters, value.args, strict=False))
            attrs: list[object] = []
            for parameter in parameters:
                literal = _literal(given.get(parameter)) if parameter in given else DEFAULTS.get((op, parameter))
                attrs.append(literal)
            return (op, tuple(attrs))
        if dotted == "torch.nn.Linear":
            return ("linear", ())
        if dotted == "torch.nn.Dropout":
            return ("dropout", ())
        if dotted == "torch.nn.RMSNorm":
            return ("rms_norm", ())
        if last in ("get_activation", "get_act_fn", "get_activation_fn", "ACT2CLS"):
            asked = value.args[0] if value.args else None
            if isinstance(asked, ast.Constant) and asked.value in ACTIVATIONS:
                return ACTIVATIONS[str(asked.value)]
            return ("activation", ())
        if isinstance(value.func, ast.Subscript):
            return _held(module, value.func)
        return None
    if isinstance(value, (ast.Name, ast.Attribute)):
        dotted = _imported_name(module, value)
        name = _torch_function(dotted)
        if name in ("silu", "gelu", "relu", "sigmoid", "tanh"):
            return (name, ("none",) if name == "gelu" else ())
        if isinstance(value, ast.Name) and value.id in ACTIVATION_WORDS:
            return ("activation", ())
    return None


def usual_activation(frame: Frame, function: Node) -> str | None:
    """The activation that the repo's own configuration gives by default ("silu", "gelu none", "gelu tanh"), if it says."""
    owner = frame.owner
    if owner is None or function.op != "attribute" or frame.module.repository is None:
        return None
    for definer, value in owner.attribute(str(function.attrs[0])):
        fields = [node.attr for node in walk(value) if isinstance(node, ast.Attribute)]
        fields += [str(node.value) for node in walk(value) if isinstance(node, ast.Constant)]
        for name in fields:
            said = frame.module.repository.default_of(definer.module.file, name)
            if said in ACTIVATIONS:
                op, attrs = ACTIVATIONS[said]
                return " ".join([op, *map(str, attrs)])
    return None


_ACTIVATION_OPS = {"silu", "gelu", "relu", "sigmoid", "tanh", "activation"}


def _imported_name(module: SourceModule, expression: ast.expr) -> str:
    dotted = dotted_name(expression) or ""
    top, _, rest = dotted.partition(".")
    home = module.imports.get(top, top)
    return f"{home}.{rest}" if rest else home


def _literal(expression: ast.expr | None) -> object:
    if expression is None:
        return None
    try:
        value = ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return tuple(value) if isinstance(value, list) else value


def _method(frame: Frame, expression: ast.Call, base: Node, function: ast.Attribute) -> Node:
    """`value.name(…)`."""
    from npufuse_tui.dataflow.expressions import attribute_of

    name = function.attr
    if name in FLOAT_CASTS and not expression.args:
        return _cast_to(frame, expression, base, FLOAT_CASTS[name])
    if name in ("to", "type", "type_as"):
        return _to(frame, expression, base, name)
    if name == "size":
        if not expression.args:
            return frame.make(expression, "shape", base)
        dim = _lowered(frame, expression.args[0])
        if isinstance(dim.value, int):
            return frame.make(expression, "size", base, attrs=(dim.value,))
        return frame.make(expression, "builtin", base, dim, attrs=("size",))
    if name == "dim" and not expression.args:
        return frame.make(expression, "attribute", base, attrs=("ndim",))
    known = canonical_name(name)
    if known is not None and base.op != "function" and not _holds_module(base):
        return operator(frame, expression, known, base, expression.args, expression.keywords)
    if name.endswith("_") and name[:-1] in IN_PLACE:
        node = operator(frame, expression, name[:-1], base, expression.args, expression.keywords)
        frame.into.mutated.append((base, frame.statement or ast.Pass()))
        if isinstance(function.value, ast.Name):
            frame.environment[function.value.id] = node
        return node
    return call_value(frame, expression, attribute_of(frame, function, base, name))


def _holds_module(base: Node) -> bool:
    return base.op == "global"


def _cast_to(frame: Frame, expression: ast.expr, value: Node, dtype: str) -> Node:
    return frame.make(expression, "cast", value, attrs=(dtype,))


def _to(frame: Frame, expression: ast.Call, base: Node, name: str) -> Node:
    """`.to(…)`, `.type(…)`, `.type_as(…)`: a cast where the dtype changes, the value itself where only the device does."""
    args = [_lowered(frame, arg) for arg in expression.args]
    keywords = {keyword.arg: _lowered(frame, keyword.value) for keyword in expression.keywords if keyword.arg}
    if name == "type_as" and args:
        return frame.make(expression, "cast", base, frame.make(expression, "dtype", args[0]))
    target = keywords.get("dtype")
    if target is None:
        for argument in args:
            if _is_dtype(argument):
                target = argument
        if target is None and args and _could_be_tensor(args[0]):
            target = frame.make(expression, "dtype", args[0])
    if target is None:
        return base
    if target.op == "dtype_name":
        return _cast_to(frame, expression, base, str(target.attrs[0]))
    if target.op == "global" and str(target.attrs[0]).startswith("torch."):
        return frame.make(expression, "other_cast", base, attrs=(target.attrs[0],))
    return frame.make(expression, "cast", base, target)


def _is_dtype(node: Node) -> bool:
    if node.op in ("dtype", "dtype_name"):
        return True
    if node.op == "global":
        last = str(node.attrs[0]).rsplit(".", 1)[-1]
        return last in ("long", "int", "bool", "int64", "int32", "uint8", "int8", "int16") or "dtype" in last
    if node.op == "phi":
        return any(_is_dtype(arm) for arm in node.args[1:])
    words = " ".join(str(attr) for attr in node.attrs)
    return "dtype" in words


def _could_be_tensor(node: Node) -> bool:
    words = " ".join(str(attr) for attr in node.attrs)
    return node.op not in ("constant", "global") and "device" not in words and "rank" not in words


def _arguments(frame: Frame, expression: ast.Call) -> tuple[list[Node], dict[str, Node]] | None:
    """The lowered arguments; None when a star hides which parameter gets which."""
    args: list[Node] = []
    for argument in expression.args:
        node = _lowered(frame, argument)
        if node.op == "starred":
            if node.args[0].op != "tuple":
                return None
            args.extend(node.args[0].args)
        else:
            args.append(node)
    keywords: dict[str, Node] = {}
    for keyword in expression.keywords:
        node = _lowered(frame, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = node
    return args, keywords


def _unknown(frame: Frame, expression: ast.Call, function: Node) -> Node:
    given = _arguments(frame, expression)
    args = [*given[0], *given[1].values()] if given is not None else []
    return frame.fresh(expression, "call", function, *args)


def operator(
    frame: Frame,
    expression: ast.Call,
    name: str,
    receiver: Node | None,
    args: list[ast.expr],
    keywords: list[ast.keyword],
) -> Node:
    """A call of one of torch's operators, arguments in the order of its signature."""
    signature = SIGNATURES[name]
    positional = [receiver] if receiver is not None else []
    positional += [_lowered(frame, arg) for arg in args]
    if name in VARIADIC and len(positional) > 2:
        tail = positional[1:]
        positional = [positional[0], frame.graph.make("tuple", *tail)]
    if any(one.op == "starred" for one in positional) and name not in VARIADIC:
        return frame.fresh(expression, "unknown", *positional)
    if name == "einsum":
        return einsum(frame, expression, positional[0].value, positional[1:])
    given: dict[str, Node] = dict(zip(signature, positional, strict=False))
    for keyword in keywords:
        if keyword.arg is not None:
            known = {"axis": "dim", "keepdims": "keepdim", "x": "input", "ord": "p", "tensor": "input"}.get(
                keyword.arg, keyword.arg
            )
            given[known] = _lowered(frame, keyword.value)
    dtype = given.pop("dtype", None)
    if dtype is not None and "input" in given and not dtype.is_constant:
        cast = ("cast", given["input"]) if dtype.op == "dtype_name" else ("cast", given["input"], dtype)
        attrs = dtype.attrs if dtype.op == "dtype_name" else ()
        given["input"] = frame.make(expression, cast[0], *cast[1:], attrs=attrs)
    literals = LITERALS.get(name, ())
    attrs_out: list[object] = []
    operands: list[Node] = []
    for parameter in signature:
        if parameter in IGNORED or parameter == "dtype":
            continue
        node = given.get(parameter)
        if parameter in literals:
            attrs_out.append(_literal_of(node) if node is not None else DEFAULTS.get((name, parameter)))
            if node is not None and _literal_of(node) is UNKNOWN:
                operands.append(node)
        elif node is not None:
            operands.append(node)
        elif (name, parameter) in DEFAULTS:
            operands.append(frame.graph.constant(DEFAULTS[name, parameter]))
    return _spelled(frame, expression, name, operands, tuple(attrs_out), given)


class _Unknown:
    def __repr__(self) -> str:
        return "?"


UNKNOWN = _Unknown()
"""The value of a literal argument that is not one."""


def _literal_of(node: Node) -> object:
    if node.is_constant:
        return node.value
    if node.op == "add" and any(arg.op == "attribute" and arg.attrs == ("ndim",) for arg in node.args):
        back = next((arg.value for arg in node.args if arg.is_constant), None)
        if isinstance(back, int) and back < 0:
            return back  # x.ndim - 1 is the last dim
    if node.op == "tuple" and all(arg.is_constant for arg in node.args):
        return tuple(arg.value for arg in node.args)
    return UNKNOWN


def _spelled(
    frame: Frame,
    expression: ast.Call,
    name: str,
    operands: list[Node],
    attrs: tuple[object, ...],
    given: dict[str, Node],
) -> Node:
    """Operators that are another one in disguise."""
    if name in ("mean", "sum", "norm"):
        dims = attrs[-2]
        if isinstance(dims, tuple) and len(dims) == 1:
            attrs = (*attrs[:-2], dims[0], attrs[-1])
    if name == "norm" and attrs[0] in (2, 2.0, "fro", None):
        squares = frame.make(expression, "square", operands[0])
        return frame.make(expression, "sqrt", frame.make(expression, "sum", squares, *operands[1:], attrs=attrs[1:]))
    if name == "transpose" and all(isinstance(dim, int) for dim in attrs):
        attrs = tuple(sorted(attrs, key=lambda dim: (dim < 0, dim)))  # type: ignore[operator]
    if name == "square":
        return frame.make(expression, "square", operands[0])
    if name == "bmm":
        return frame.make(expression, "matmul", *operands)
    if name == "baddbmm":
        return _baddbmm(frame, expression, operands, given)
    if name == "dropout" and len(operands) == 1:
        operands = [*operands, frame.graph.constant(0.5)]
    if name == "dropout" and len(operands) == 2:
        operands = [*operands, frame.graph.constant(True)]
    if name == "split" and len(operands) >= 2:
        dim = operands[2].value if len(operands) > 2 else 0
        size = operands[1]
        base = operands[0]
        halves = size.op == "floordiv" and size.args[1].value == 2 and isinstance(dim, int)
        if halves and size.args[0] is frame.graph.size_of(base, dim):  # type: ignore[arg-type]
            return frame.make(expression, "chunk", base, attrs=(2, dim))
        return frame.make(expression, "split", base, size, attrs=(dim,))
    if name == "silu" and given.get("inplace") is not None and given["inplace"].value is True:
        frame.into.mutated.append((operands[0], frame.statement or ast.Pass()))
    return frame.make(expression, name, *operands, attrs=attrs)


def _baddbmm(frame: Frame, expression: ast.Call, operands: list[Node], given: dict[str, Node]) -> Node:
    """beta * input + alpha * (batch1 @ batch2)."""
    product = frame.make(expression, "matmul", *operands[1:3])
    if "alpha" in given:
        product = frame.make(expression, "mul", product, given["alpha"])
    beta = given.get("beta")
    if beta is not None and beta.value == 0:
        return product
    added = operands[0] if beta is None else frame.make(expression, "mul", operands[0], beta)
    return frame.make(expression, "add", added, product)


def inline(
    frame: Frame,
    expression: ast.Call,
    module: SourceModule,
    owner: ClassInfo | None,
    function: FunctionNode,
    given: tuple[list[Node], dict[str, Node]] | None,
    bound: dict[str, Node],
    closure: Environment | None = None,
) -> Node | None:
    """The value of a call of a helper whose source is known, or None when it is not followed."""
    if given is None or frame.depth >= INLINE_DEPTH or id(function) in frame.stack:
        return None
    if len(frame.graph.nodes) > MOST_NODES or not _is_worth_inlining(module, function):
        return None
    inner = Frame(
        frame.into,
        module,
        owner,
        dict(closure or {}),
        frame.depth + 1,
        function,
        (*frame.stack, id(function)),
        local_functions=dict(frame.local_functions) if closure is not None else {},
    )
    frame.at(expression)
    if not _bind(inner, function, given, bound):
        return None
    site, mutated = frame.graph.site, len(frame.into.mutated)
    if site is not None and frame.depth == 0:
        frame.graph.site = type(site)(site.statement, expression, 1)
    run(inner, function.body)
    frame.graph.site = site
    del frame.into.mutated[mutated:]
    return _result(inner, expression, inner.returns)


_WORTH: dict[int, tuple[FunctionNode, bool]] = {}

_MATH = re.compile(
    rb"sqrt|pow\(|\*\*|square\(|mean\(|rms|silu|sigmoid|gelu|act_fn|softmax|\bcos\b|\bsin\b|rotate|complex|cat\(|chunk\("
    rb"|stack\(|expand\(|repeat|matmul|bmm|einsum|masked_fill|\[\.\.\.,| @ "
)
"""A helper without any of this computes nothing that a pattern could want to see."""


def _is_worth_inlining(module: SourceModule, function: FunctionNode) -> bool:
    """Whether a helper is small enough to be inlined, no generator, and computes with tensors."""
    known = _WORTH.get(id(function))
    if known is None or known[0] is not function:
        known = (function, _computes_with_tensors(module, function))
        if len(_WORTH) > 20_000:
            _WORTH.clear()
        _WORTH[id(function)] = known
    return known[1]


def _computes_with_tensors(module: SourceModule, function: FunctionNode) -> bool:
    if isinstance(function, ast.AsyncFunctionDef) or not _MATH.search(module.lines(function)):
        return False
    nodes = list(walk(function))
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return False
    return sum(isinstance(node, ast.stmt) for node in nodes) <= INLINE_STATEMENTS


def _result(frame: Frame, expression: ast.Call, returns: list[Returned]) -> Node | None:
    """What the helper returns; early returns become a phi of their condition."""
    if not returns:
        return None
    result = returns[-1].node
    for returned in reversed(returns[:-1]):
        if not returned.conditions:
            return None
        condition = returned.conditions[0]
        for more in returned.conditions[1:]:
            condition = frame.make(expression, "and", condition, more)
        if condition.op == "not":
            result = frame.make(expression, "phi", condition.args[0], result, returned.node)
        elif result is not returned.node:
            result = frame.make(expression, "phi", condition, returned.node, result)
    return result


def _bind(
    inner: Frame, function: FunctionNode, given: tuple[list[Node], dict[str, Node]], bound: dict[str, Node]
) -> bool:
    """Give the helper's parameters their values."""
    from npufuse_tui.dataflow.expressions import lower

    args, keywords = given
    parameters = [*function.args.posonlyargs, *function.args.args]
    names = [parameter.arg for parameter in parameters]
    environment = inner.environment
    if "self" in bound and names:
        environment[names.pop(0)] = bound["self"]
    if len(args) > len(names) and function.args.vararg is None:
        return False
    for name, node in zip(names, args, strict=False):
        environment[name] = node
    if function.args.vararg is not None:
        environment[function.args.vararg.arg] = inner.graph.make("tuple", *args[len(names) :])
    keyword_only = [parameter.arg for parameter in function.args.kwonlyargs]
    for name, node in keywords.items():
        if name in names or name in keyword_only:
            environment[name] = node
        elif function.args.kwarg is None:
            return False
    if function.args.kwarg is not None:
        environment[function.args.kwarg.arg] = inner.graph.fresh("keywords")
    defaults = dict(
        zip(
            [p.arg for p in parameters][len(parameters) - len(function.args.defaults) :],
            function.args.defaults,
            strict=False,
        )
    )
    defaults.update(
        (parameter.arg, default)
        for parameter, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if default is not None
    )
    for name in [*names, *keyword_only]:
        if name not in environment:
            if name not in defaults:
                return False
            environment[name] = lower(inner, defaults[name])
    return True


def _inline_lambda(frame: Frame, expression: ast.Call, function: ast.Lambda, closure: Environment) -> Node:
    given = _arguments(frame, expression)
    names = [parameter.arg for parameter in function.args.args]
    if given is None or len(given[0]) != len(names) or frame.depth >= INLINE_DEPTH:
        return frame.fresh(expression, "unknown")
    inner = Frame(
        frame.into,
        frame.module,
        frame.owner,
        {**closure, **dict(zip(names, given[0], strict=True))},
        frame.depth + 1,
        function,
        frame.stack,
    )
    frame.at(expression)
    return _lowered(inner, function.body)
