"""What cannot be replaced is refused with the true reason; what is read later is still there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rewritten import IMPORTS, applied, candidates

from npufuse_tui.model import Verdict

HEAD = "def rms(x, weight, eps):\n"

REFUSED = {
    "an intermediate value is used outside": (
        HEAD
        + "    variance = x.pow(2).mean(-1, keepdim=True)\n"
        + "    out = weight * (x * torch.rsqrt(variance + eps))\n"
        + "    return out, variance\n",
        "variance",
    ),
    "several statements on a line": (
        HEAD + "    v = x.pow(2).mean(-1, keepdim=True); y = x * torch.rsqrt(v + eps); return weight * y\n",
        "several statements",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    code, words = REFUSED[name]
    found = candidates(tmp_path, (IMPORTS + code).encode(), ("rms_norm",))
    assert [one.verdict for one in found] == [Verdict.REFUSED]
    assert words in found[0].reason.en
    assert found[0].edit is None and found[0].diff is None


def test_a_name_that_is_read_later_is_given_in_both_branches(tmp_path: Path) -> None:
    code = (
        HEAD
        + "    dtype = x.dtype\n"
        + "    h = x.float()\n"
        + "    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)\n"
        + "    out = weight * h.to(dtype)\n"
        + "    return out.to(dtype)\n"
    )
    tree = ast.parse(applied(tmp_path, (IMPORTS + code).encode(), ("rms_norm",)))
    (guarded,) = [one for one in ast.walk(tree) if isinstance(one, ast.If) and "is_npu" in ast.unparse(one.test)]
    (function,) = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "rms"]

    def bound(body: list[ast.stmt]) -> set[str]:
        return {
            node.id
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }

    later = {
        node.id
        for statement in function.body[function.body.index(guarded) + 1 :]
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }
    before = {argument.arg for argument in function.args.args}
    for statement in function.body[: function.body.index(guarded)]:
        before |= bound([statement])
    assert later & bound(guarded.orelse) <= bound(guarded.body) | before
    assert later <= bound(guarded.body) | before
