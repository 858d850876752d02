"""The original stays, token by token, whatever the file looks like; every byte outside of an edit stays as it was."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rewritten import IMPORTS, MLP, NORM, applied, candidates, edits

from npufuse_tui.model import FileEdit, Splice
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.fallback import NotVerbatim, prove

PLAIN = IMPORTS + "\n\n" + NORM + "\n\n" + MLP

FILES: dict[str, bytes] = {
    "plain": PLAIN.encode(),
    "tabs": PLAIN.replace("    ", "\t").encode(),
    "two spaces": PLAIN.replace("    ", "  ").encode(),
    "crlf": PLAIN.replace("\n", "\r\n").encode(),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "byte order mark and crlf": b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode(),
    "latin-1": ("# -*- coding: latin-1 -*-\n# caf\xe9\n" + PLAIN.replace("the mean", "\xe9\xe8 the mean")).encode(
        "latin-1"
    ),
    "no newline at the end": PLAIN.rstrip("\n").encode(),
    "one line": (IMPORTS + "def act(gate, up): return F.silu(gate) * up\n").encode(),
    "one line, no newline": (IMPORTS + "def act(gate, up): return F.silu(gate) * up").encode(),
    "unicode in the region": PLAIN.replace("the mean", "均方 ∑ é").encode(),
    "a string of several lines in the region": PLAIN.replace(
        "        # the mean of the squares\n", '        """\n  some words\n        """\n'
    ).encode(),
    "a comment behind": PLAIN.replace("mean(-1, keepdim=True)\n", "mean(-1, keepdim=True)  # why\n").encode(),
    "a statement over several lines": PLAIN.replace(
        "h.pow(2).mean(-1, keepdim=True)",
        "h.pow(2).mean(\n            -1,\n            keepdim=True,  # kept\n        )",
    ).encode(),
    "a backslash": PLAIN.replace("= h * torch", "= h \\\n            * torch").encode(),
    "future": ('"""Docs."""\n\nfrom __future__ import annotations\n\n' + PLAIN).encode(),
    "shebang": ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n" + PLAIN).encode(),
    "guarded import": ("try:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None\n" + PLAIN).encode(),
    "import there": ("import os\nimport torch_npu\n" + PLAIN).encode(),
}


def tokens_of(source: bytes) -> list[str]:
    left_out = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.ENCODING)
    return [one.string for one in tokenize.tokenize(io.BytesIO(source).readline) if one.type not in left_out]


def else_branches(source: bytes) -> list[ast.If]:
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If) and node.orelse and "is_npu" in ast.unparse(node.test)
    ]


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_the_original_is_lost(name: str, tmp_path: Path) -> None:
    source = FILES[name]
    after = applied(tmp_path, source)
    compile(after, "model.py", "exec")
    assert else_branches(after)
    remaining = iter(tokens_of(after))
    missing = [one for one in tokens_of(source) if one not in remaining]  # in order, each once
    assert missing == []


@pytest.mark.parametrize("name", FILES)
def test_the_else_branch_computes_what_the_original_did(name: str, tmp_path: Path) -> None:
    """With every guarded `if` taken as its else branch, and the preludes taken out, the syntax is the original's."""
    source = FILES[name]

    class OnlyElse(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> object:
            self.generic_visit(node)
            return node.orelse if node.orelse and "is_npu" in ast.unparse(node.test) else node

    after = OnlyElse().visit(ast.parse(applied(tmp_path, source)))
    before = ast.parse(source)
    kept = [
        ast.dump(one)
        for one in after.body
        if isinstance(one, (ast.ClassDef, ast.FunctionDef)) and not one.name.startswith("_")
    ]
    assert kept == [ast.dump(one) for one in before.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))]


@pytest.mark.parametrize("name", FILES)
def test_line_ends_and_encoding_stay(name: str, tmp_path: Path) -> None:
    source = FILES[name]
    after = applied(tmp_path, source)
    assert after.startswith(b"\xef\xbb\xbf") == source.startswith(b"\xef\xbb\xbf")
    if b"\r\n" in source:
        assert after.count(b"\n") == after.count(b"\r\n")
    else:
        assert b"\r" not in after
    if b"\t" in source:
        guards = [line for line in after.split(b"\n") if b"is_npu" in line]
        assert guards and all(line.startswith(b"\t") for line in guards)
    assert after.endswith(b"\n") == source.endswith(b"\n")


@pytest.mark.parametrize("name", FILES)
def test_a_second_time_changes_nothing(name: str, tmp_path: Path) -> None:
    after = applied(tmp_path, FILES[name])
    again = candidates(tmp_path, after)
    assert edits(again) == []
    assert all("fused" in one.reason.en or "NPU" in one.reason.en for one in again), [one.reason.en for one in again]


@pytest.mark.parametrize("name", ["future", "shebang", "plain", "import there", "guarded import", "byte order mark"])
def test_imports_are_added_once_and_after_what_must_be_first(name: str, tmp_path: Path) -> None:
    after = applied(tmp_path, FILES[name])
    assert after.count(b"import torch_npu") == 1
    assert after.count(b"import os\n") == 1
    if name == "shebang":
        assert after.startswith(b"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n")
    if name == "future":
        compile(after, "model.py", "exec")
        assert after.index(b"__future__") < after.index(b"import os")


def test_candidates_of_one_file_go_together_and_in_any_order(tmp_path: Path) -> None:
    source = FILES["plain"]
    found = candidates(tmp_path, source)
    assert {one.rule for one in found} >= {"rms_norm", "swiglu"}
    every = edits(found)
    assert compose(source, every) == compose(source, every[::-1])


OUTSIDE = st.lists(
    st.sampled_from(
        [
            "# a comment",
            "value = 1",
            "text = 'é'",
            "",
            "def other(a):\n    return a",
            "s = '''\n  x\n'''",
            "\f",
            "x = (1,\n  2)",
        ]
    ),
    max_size=6,
)


@given(OUTSIDE, OUTSIDE, OUTSIDE, st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_outside_of_the_spans_stay(
    tmp_path: Path, top: list[str], middle: list[str], end: list[str], newline: str, last: bool
) -> None:
    parts = [IMPORTS, *top, NORM, *middle, MLP, *end]
    source = "\n".join(parts).replace("\n", newline).encode() + (newline.encode() if last else b"")
    found = candidates(tmp_path, source, ("rms_norm", "swiglu"))
    assert len(found) == 2
    every = edits(found)
    after = compose(source, every)
    prove(source, after, every)
    place = position = 0
    for splice in sorted((splice for edit in every for splice in edit.splices), key=lambda one: one.start):
        for line in source[position : splice.start].splitlines(keepends=True):
            place = after.index(line, place) + len(line)
        position = splice.end
    if source[position:]:
        assert after.endswith(source[position:])


def _edit(source: bytes, start: int, end: int, text: str) -> list[FileEdit]:
    import hashlib

    return [FileEdit("model.py", hashlib.sha256(source).hexdigest(), (Splice(start, end, text),))]


@pytest.mark.parametrize(
    "text",
    [
        "y = npu(x)",
        "if x.is_npu:\n    y = npu(x)\nelse:\n    y = x * 3",
        "if x.is_npu:\n    y = npu(x)\nelse:\n    y = x * 2\n    z = 1",
        "if x.is_npu:\n    y = npu(x)\nelse:\n    pass",
        "if x.is_npu:\n    y = npu(x)\nelse:\n    y = x  * 2 * 1",
        "if x.is_npu:\n    y = npu(x",
    ],
)
def test_an_edit_that_loses_something_is_not_let_through(text: str) -> None:
    source = b"y = x * 2  # why\nw = 1\n"
    every = _edit(source, 0, len(b"y = x * 2  # why"), text)
    with pytest.raises(NotVerbatim):
        prove(source, compose(source, every), every)


def test_a_comment_of_the_region_belongs_to_the_original() -> None:
    source = b"y = x * 2  # why\nw = 1\n"
    span = (0, len(b"y = x * 2  # why"))
    kept = _edit(source, *span, "if x.is_npu:\n    y = npu(x)\nelse:\n    y = x * 2  # why")
    prove(source, compose(source, kept), kept)
    lost = _edit(source, *span, "if x.is_npu:\n    y = npu(x)\nelse:\n    y = x * 2")
    with pytest.raises(NotVerbatim):
        prove(source, compose(source, lost), lost)


def test_a_change_outside_of_the_spans_is_not_let_through() -> None:
    source = b"y = x * 2\nw = 1\n"
    every = _edit(source, 0, len(b"y = x * 2"), "if x.is_npu:\n    y = npu(x)\nelse:\n    y = x * 2")
    after = compose(source, every)
    prove(source, after, every)
    with pytest.raises(NotVerbatim):
        prove(source, after.replace(b"w = 1", b"w = 2"), every)
