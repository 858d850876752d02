"""The person's own fused branch, and another switch, in the place of the proposed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.language import same
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Decision, Gate, GateKind, Verdict

from .conftest import MODEL, git
from .test_apply import adopt_all

MINE = "y = torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]\nreturn y.to(x.dtype)"


@pytest.fixture
def loop(repo: Path):  # type: ignore[no-untyped-def]
    with Loop.start(repo, LoopOptions(use_cache=False)) as found:
        found.scan()
        yield found


def norm(loop: Loop):  # type: ignore[no-untyped-def]
    return next(one for one in loop.session.scan.candidates if one.rule == "rms_norm")


def test_it_takes_the_place_of_the_proposed_one_and_nothing_else(loop: Loop, repo: Path) -> None:
    before = norm(loop)
    loop.decide([before.id], Decision.APPROVED)
    own = loop.edit_replacement(before.id, MINE)
    assert own == norm(loop) and own.replacement == MINE
    assert own.edit.digest != before.edit.digest and own.check is None
    assert all(f"+            {line}" in own.diff for line in MINE.splitlines())
    assert before.replacement.splitlines()[0] not in own.diff
    assert loop.session.approvals == ()  # what was approved was another edit
    assert MINE.splitlines()[0] in own.proof.fused and own.proof.original == before.proof.original
    loop.decide([before.id], Decision.APPROVED)
    assert loop.session.approvals[0].edit == own.edit
    loop.confirm()
    assert loop.plan().edits[0].own
    loop.apply()
    adopt_all(loop)
    text = git(repo, "show", f"{loop.session.branch}:models/model.py")
    assert "return y.to(x.dtype)" in text
    fallback = text[text.index("        else:") :]
    assert "x = x * torch.rsqrt(var + self.eps)" in fallback


def test_it_is_proven_like_any_other(loop: Loop) -> None:
    proposed = norm(loop).replacement
    wrong = MINE.replace("epsilon=self.eps", "epsilon=self.eps + 0.5")
    one = loop.edit_replacement(norm(loop).id, wrong)
    loop.decide([one.id], Decision.APPROVED)
    loop.check([one.id])
    assert norm(loop).check.status == "failed"
    assert loop.session.approvals == ()  # what is proven wrong stays approved no longer
    assert norm(loop).verdict is Verdict.REFUSED
    loop.edit_replacement(one.id, f"# by hand\n{proposed}")
    loop.check([one.id])
    assert norm(loop).check.status == "passed" and norm(loop).verdict is Verdict.CAUTION
    loop.decide([one.id], Decision.APPROVED)


def test_it_survives_another_scan_while_the_code_is_the_same(loop: Loop, repo: Path) -> None:
    one = loop.edit_replacement(norm(loop).id, MINE)
    loop.decide([one.id], Decision.APPROVED)
    loop.scan()
    assert norm(loop).replacement == MINE and loop.session.approvals[0].candidate == one.id
    path = repo / "models/model.py"
    path.write_text("# moved down\n" + MODEL)
    loop.scan()
    assert norm(loop).replacement == MINE and loop.session.approvals == ()
    path.write_text(MODEL.replace("x.pow(2)", "(x * x)"))
    loop.scan()
    assert norm(loop).replacement != MINE


@pytest.mark.parametrize(
    "text", ["", "  \n", "return (", "def f(:", "return 1\nelse:\n    pass", "x = 1\n  y = 2", "\0"], ids=repr
)
def test_what_does_not_compile_changes_nothing(loop: Loop, text: str) -> None:
    before = loop.session
    with pytest.raises(WrongInput, match="does not compile"):
        loop.edit_replacement(norm(loop).id, text)
    assert loop.session == before


def test_code_that_ends_the_branch_early_is_refused(loop: Loop) -> None:
    """Whatever is typed, it stays inside of the fused branch."""
    before = loop.session
    with pytest.raises((WrongInput, KeptSafe)):
        loop.edit_replacement(norm(loop).id, "pass\n" + " " * 0 + "else:\n    return x\nif x:\n    pass")
    assert loop.session == before


def test_styles_of_files(make_repo: Callable[..., Path]) -> None:
    crlf = MODEL.replace("\n", "\r\n").encode()
    tabs = MODEL.replace("    ", "\t").encode()
    bom = b"\xef\xbb\xbf" + MODEL.encode()
    top = make_repo(files={"crlf.py": crlf, "tabs.py": tabs, "bom.py": bom})
    with Loop.start(top, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        chosen = [one for one in loop.session.scan.candidates if one.rule == "rms_norm"]
        assert len(chosen) == 3
        for one in chosen:
            loop.edit_replacement(one.id, MINE)
        loop.decide([one.id for one in chosen], Decision.APPROVED)
        loop.confirm()
        loop.apply()
        for one in chosen:
            data = (loop.worktrees().candidate(one.id) / one.file).read_bytes()
            compile(data, one.file, "exec")
            assert b"y = torch_npu.npu_rms_norm" in data
            if one.file == "crlf.py":
                assert b"\n" not in data.replace(b"\r\n", b"")


def test_another_switch(loop: Loop, repo: Path) -> None:
    before = norm(loop)
    other = Gate(GateKind.AVAILABILITY, "torch_npu is not None", same("asked for"))
    with pytest.raises(WrongInput):
        loop.choose_gate(before.id, other)
    scan = loop.session.scan
    offered = replace(before, gates=(*before.gates, other))
    loop.store.update(
        scan=replace(scan, candidates=tuple(offered if one.id == before.id else one for one in scan.candidates))
    )
    assert loop.choose_gate(before.id, before.gate) == offered
    changed = loop.choose_gate(before.id, other)
    assert changed.gate == other and "+        if torch_npu is not None and " in changed.diff
    loop.decide([before.id], Decision.APPROVED)
    loop.confirm()
    loop.apply()
    text = (loop.worktrees().candidate(before.id) / "models/model.py").read_text()
    assert "if torch_npu is not None and x.is_npu:" in text
    compile(text, "model.py", "exec")
