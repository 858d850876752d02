"""Whether a switch is on when nobody says anything: read off the code that gives it its value, never run."""

from __future__ import annotations

import ast

from npufuse_tui.dataflow.source import FunctionNode, dotted_name
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.judgement.npu_words import names_an_npu

_PROBES = frozenset({"hasattr", "find_spec", "is_available", "module_available", "package_available"})


def is_truth(value: ast.expr) -> bool:
    """Whether an expression is a truth value for all that its form shows: a comparison, a test, a call that asks."""
    match value:
        case ast.Constant(value=bool()):
            return True
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(is_truth(one) for one in values)
        case ast.IfExp(body=body, orelse=other):
            return is_truth(body) and is_truth(other)
        case ast.Call(func=function):
            return asks(dotted_name(function) or "")
    return False


def asks(name: str) -> bool:
    """Whether a function's name says that it answers yes or no."""
    last = name.rpartition(".")[2].lower()
    words = last.strip("_").split("_")
    return (
        last in ("bool", "hasattr", "strtobool", "any", "all", "callable", "isinstance")
        or words[0] in ("is", "has", "have", "use", "using", "uses", "enable", "enabled", "supports", "can", "with")
        or words[-1] in ("available", "enabled", "supported", "flag", "on")
    )


def default(value: ast.expr, parameters: dict[str, ast.expr | None] | None = None) -> bool | None:
    """The truth value that an expression has when no argument, variable or option says otherwise; None: not known.

    What is computed from the machine (an import that works, a device that is there) counts as on: where it is off, no
    fused call could run anyway. `parameters` are those of the function around it, with their defaults.
    """
    known = _evaluate(value, parameters or {})
    if known is not _UNKNOWN:
        return bool(known)
    match value:
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [default(one, parameters) for one in values]
            return False if False in parts else True if all(parts) else None
        case ast.BoolOp(op=ast.Or(), values=values):
            parts = [default(one, parameters) for one in values]
            return True if True in parts else None
    code = ast.unparse(value)
    called = {(dotted_name(node.func) or "").rpartition(".")[2] for node in walk(value) if isinstance(node, ast.Call)}
    if called & _PROBES or any(names_an_npu(name) and name.endswith("available") for name in called):
        return True
    if isinstance(value, ast.Compare) and names_an_npu(code) and "environ" not in code and "getenv" not in code:
        return True  # device.type == "npu", torch_npu is not None
    return None


def parameters_of(function: FunctionNode) -> dict[str, ast.expr | None]:
    """The parameters of a function with the defaults that it gives them."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found: dict[str, ast.expr | None] = {one.arg: None for one in positional}
    for argument, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        found[argument.arg] = value
    found.update({one.arg: value for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)})
    return found


_UNKNOWN = object()


def _evaluate(value: ast.expr, parameters: dict[str, ast.expr | None]) -> object:
    """The value of an expression of literals and of environment variables that are not set."""
    match value:
        case ast.Constant(value=plain):
            return plain
        case ast.Name(id=name) if parameters.get(name) is not None:
            return _evaluate(parameters[name], {})  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            known = _evaluate(inner, parameters)
            return _UNKNOWN if known is _UNKNOWN else not known
        case ast.Call(func=function, args=arguments):
            return _called(dotted_name(function) or "", function, arguments, parameters)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _evaluate(left, parameters), _evaluate(right, parameters)
            if one is _UNKNOWN or other is _UNKNOWN:
                return _UNKNOWN
            match op:
                case ast.Eq() | ast.Is():
                    return one == other
                case ast.NotEq() | ast.IsNot():
                    return one != other
                case ast.In() if isinstance(other, (tuple, list, set, str)):
                    return one in other if not isinstance(other, str) or isinstance(one, str) else _UNKNOWN
                case ast.NotIn() if isinstance(other, (tuple, list, set)):
                    return one not in other
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            values = [_evaluate(one, parameters) for one in parts]
            return _UNKNOWN if _UNKNOWN in values else tuple(values)
    return _UNKNOWN


def _called(name: str, function: ast.expr, arguments: list[ast.expr], parameters: dict[str, ast.expr | None]) -> object:
    if name in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
        return _evaluate(arguments[1], parameters) if len(arguments) > 1 else None
    if name == "getattr" and len(arguments) == 3:
        return _evaluate(arguments[2], parameters)
    if isinstance(function, ast.Attribute) and function.attr in ("lower", "upper", "strip") and not arguments:
        inner = _evaluate(function.value, parameters)
        return getattr(inner, function.attr)() if isinstance(inner, str) else _UNKNOWN
    if name in ("int", "bool", "strtobool", "str") and len(arguments) == 1:
        inner = _evaluate(arguments[0], parameters)
        if inner is _UNKNOWN:
            return _UNKNOWN
        try:
            if name == "strtobool":
                return str(inner).lower() in ("1", "y", "yes", "t", "true", "on")
            return {"int": int, "bool": bool, "str": str}[name](inner)
        except (TypeError, ValueError):
            return _UNKNOWN
    return _UNKNOWN
