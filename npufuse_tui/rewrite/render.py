"""A value of the graph → code that is that value where the fused call will stand."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from npufuse_tui.dataflow.graph import Node, Site, strip_upcasts
from npufuse_tui.dataflow.lower import Environment, FunctionGraph
from npufuse_tui.dataflow.syntax import walk
from npufuse_tui.rewrite.text import SourceText

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List)

INFIX = {"add": "+", "mul": "*", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the code will stand: the function, and what each name means there."""

    function: FunctionGraph
    text: SourceText
    names: Environment
    used: set[str] = field(default_factory=set)

    def named(self, node: Node) -> str | None:
        """A plain name that holds the value there."""
        for name, held in self.names.items():
            if held is node and name.isidentifier():
                return name
        return None


def render(node: Node, place: Place) -> str | None:
    """Code for the value, or None when it cannot be said there."""
    name = place.named(node)
    if name is not None:
        return name
    written = _as_written(node, place)
    if written is not None:
        return written
    return _built(node, place)


def render_input(node: Node, place: Place) -> str | None:
    """Code for an input of the fused call: the value before it was cast up to float32, when that can be said."""
    for candidate in dict.fromkeys((strip_upcasts(node), node)):
        text = render(candidate, place)
        if text is not None:
            return text
    return None


def _as_written(node: Node, place: Place) -> str | None:
    """The code of an expression of the function whose value the node is, when all its names mean the same there."""
    values = place.function.values
    written = [site for site in node.sites if site.depth == 0 or values.get(site.expression) is node]
    for site in written:
        if values.get(site.expression) is node and means_the_same(site, place):
            text = place.text.of(site.expression)
            if isinstance(site.expression, ATOMS):
                return text if "\n" not in text else ast.unparse(site.expression)
            return f"({ast.unparse(site.expression)})"
    return None


def means_the_same(site: Site, place: Place) -> bool:
    """Whether every name of the site's expression means there what it means at the place."""
    before = place.function.before.get(site.statement, {})
    for inner in walk(site.expression):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            if before.get(inner.id) is not place.names.get(inner.id):
                return False
        elif isinstance(inner, (ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
    return True


def _built(node: Node, place: Place) -> str | None:
    match node.op:
        case "constant":
            return repr(node.value) if isinstance(node.value, (int, float, bool, str, type(None))) else None
        case "constant_name":
            known = place.function.module.constants
            return str(node.attrs[0]) if str(node.attrs[0]) in known else repr(node.args[0].value)
        case "global":
            top = str(node.attrs[1]).split(".")[0]
            module = place.function.module
            outer = {
                argument.arg
                for function in place.function.scope.enclosing
                for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            }
            known_here = top in outer or (
                top in module.imports or top in module.relative or top in module.functions or top in module.classes
            )
            return str(node.attrs[1]) if known_here else None
        case "dtype_name":
            return f"torch.{node.attrs[0]}"
        case "index":
            return _indexed(node, place)
    inner = [render(arg, place) for arg in node.args]
    if any(one is None for one in inner):
        return None
    parts = [str(one) for one in inner]
    match node.op:
        case "attribute":
            return f"{parts[0]}.{node.attrs[0]}"
        case "dtype":
            return f"{parts[0]}.dtype"
        case "shape":
            return f"{parts[0]}.shape"
        case "size":
            return f"{parts[0]}.shape[{node.attrs[0]}]"
        case "getitem":
            return f"{parts[0]}[{parts[1]}]"
        case "cast" if len(parts) == 1:
            return f"{parts[0]}.to(torch.{node.attrs[0]})"
        case "cast":
            return f"{parts[0]}.to({parts[1]})"
        case "contiguous":
            return f"{parts[0]}.contiguous()"
        case "square":
            return f"{parts[0]}.pow(2)"
        case "reciprocal":
            return f"(1.0 / {parts[0]})"
        case "sqrt" | "rsqrt" if all(arg.op in ("constant", "attribute", "parameter", "size") for arg in node.args):
            return f"({parts[0]} ** {'0.5' if node.op == 'sqrt' else '-0.5'})"
        case "transpose" | "unsqueeze" | "squeeze" if all(isinstance(attr, int) for attr in node.attrs):
            return f"{parts[0]}.{node.op}({', '.join(str(attr) for attr in node.attrs)})"
        case "unsqueeze" if len(parts) == 2:
            return f"{parts[0]}.unsqueeze({parts[1]})"
        case "tuple":
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        case _ if node.op in INFIX and len(parts) == 2:
            if node.op == "mul" and node.args[0].value == -1:
                return f"(-{parts[1]})"
            return f"({parts[0]} {INFIX[node.op]} {parts[1]})"
    return None


def _indexed(node: Node, place: Place) -> str | None:
    """`x[..., a:b]`."""
    base = render(node.args[0], place)
    parts = [_index_part(part, place) for part in node.args[1:]]
    if base is None or any(part is None for part in parts):
        return None
    return f"{base}[{', '.join(str(part) for part in parts)}]"


def _index_part(node: Node, place: Place) -> str | None:
    if node.value is Ellipsis:
        return "..."
    if node.op != "slice":
        return render(node, place)
    bounds = ["" if one.is_constant and one.value is None else render(one, place) for one in node.args]
    if any(bound is None for bound in bounds):
        return None
    low, high, step = (str(bound) for bound in bounds)
    return f"{low}:{high}:{step}" if step else f"{low}:{high}"


def is_simple(code: str) -> bool:
    """Whether evaluating the code twice costs nothing and does nothing: a name or attributes of one."""
    return all(part.isidentifier() for part in code.split("."))


def tensor_in(node: Node, place: Place) -> str | None:
    """The name of a tensor that the value is computed from, to ask for its device: the nearest one that can be said."""
    seen: set[int] = set()
    queue = [node]
    while queue:
        current = queue.pop(0)
        if current.id in seen:
            continue
        seen.add(current.id)
        if current.op == "parameter" and current.attrs[0] in ("self", "cls"):
            continue
        if current.op not in (
            "attribute",
            "global",
            "constant",
            "shape",
            "size",
            "dtype",
            "tuple",
            "compare",
            "builtin",
        ):
            name = place.named(current)
            if name is not None:
                return name
        queue.extend(current.args if current.op != "call" else current.args[1:] or current.args)
    return None
