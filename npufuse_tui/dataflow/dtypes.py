"""The dtype that a chain's output has, for every dtype that its inputs may have.

Promotion as torch does it: two tensors promote to the wider type, float16 with bfloat16 to float32; Python numbers
promote nothing. (docs.pytorch.org, "Tensor attributes: torch.dtype".)
"""

from __future__ import annotations

from itertools import product

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.match import is_scalar

FLOATING = ("float16", "bfloat16", "float32")

WEAK = "python number"

Combination = tuple[tuple[str, str], ...]


def promoted(one: str | None, other: str | None) -> str | None:
    """The dtype of an operation on tensors of two dtypes; None when either is not known."""
    if one is None or other is None:
        return None
    if one == WEAK:
        return other
    if other == WEAK or one == other:
        return one
    if "float64" in (one, other):
        return "float64"
    return "float32"


def combinations(groups: dict[str, str]) -> list[dict[str, str]]:
    """The dtypes to try: `groups` maps each tensor to the group that shares one dtype, "" to that of the input."""
    free = sorted({group for group in groups.values() if group})
    tried: list[dict[str, str]] = []
    for dtype in FLOATING:
        for chosen in product(FLOATING, repeat=len(free)):
            of_group = {"": dtype, **dict(zip(free, chosen, strict=True))}
            tried.append({name: of_group[group] for name, group in groups.items()})
    return tried


class DtypeOf:
    """Computes the dtype of nodes, given that of some."""

    def __init__(self, known: dict[int, str]) -> None:
        self.known = known

    def __call__(self, node: Node) -> str | None:
        if node.id not in self.known:
            self.known[node.id] = self._of(node) or ""
        return self.known[node.id] or None

    def _of(self, node: Node) -> str | None:
        match node.op:
            case "constant" | "size" | "constant_name" | "floordiv" | "compare":
                return WEAK
            case "dtype_name":
                return str(node.attrs[0])
            case "dtype":
                return self(node.args[0])
            case "cast":
                return str(node.attrs[0]) if node.attrs else self(node.args[1])
            case "phi":
                return self._choice(node)
            case "add" | "mul" | "pow" | "matmul" | "where" | "masked_fill" | "cat" | "linear":
                result: str | None = WEAK
                for arg in node.args:
                    result = promoted(result, self(arg))
                return result
            case "tuple":
                result = WEAK
                for arg in node.args:
                    result = promoted(result, self(arg))
                return result
            case "view_as_real":
                # the complex type of a float32 pair; half types have none that multiplies
                return "float64" if self(node.args[0]) == "float64" else "float32"
            case "loop":
                return self(node.args[0])
            case "global" if str(node.attrs[0]).startswith("math."):
                return WEAK
            case "attribute" | "parameter" | "global" if is_scalar(node):
                return None
        return self(node.args[0]) if node.args and node.op not in ("call", "attribute", "builtin") else None

    def _choice(self, node: Node) -> str | None:
        condition, yes, no = node.args
        holds = self.condition(condition)
        if holds is True:
            return self(yes)
        if holds is False:
            return self(no)
        one, other = self(yes), self(no)
        return one if one == other else None

    def condition(self, node: Node) -> bool | None:
        """A condition on dtypes, decided; None when it is not one."""
        if node.op == "not":
            inner = self.condition(node.args[0])
            return None if inner is None else not inner
        if node.op in ("and", "or"):
            parts = [self.condition(arg) for arg in node.args]
            if node.op == "and":
                return False if False in parts else (None if None in parts else True)
            return True if True in parts else (None if None in parts else False)
        if node.op != "compare" or len(node.args) != 2:
            return None
        left, right = node.args
        one = self(left) if left.op in ("dtype", "dtype_name") else None
        if one is None:
            return None
        if right.op == "tuple":
            names = [self(arg) if arg.op in ("dtype", "dtype_name") else None for arg in right.args]
            inside = one in names
            return {"In": inside, "NotIn": not inside}.get(str(node.attrs[0]))
        other = self(right) if right.op in ("dtype", "dtype_name") else None
        if other is None:
            return None
        return {"Eq": one == other, "Is": one == other, "NotEq": one != other, "IsNot": one != other}.get(
            str(node.attrs[0])
        )
