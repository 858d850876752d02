"""The plain flow asks the same questions, line by line, and draws nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fake_loop import FakeLoop

from npufuse_tui import plain
from npufuse_tui.model import Decision, Stage


def walk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loop: FakeLoop, answers: str
) -> tuple[int, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    code = plain.run("/work/tiny-llm", open_loop=lambda: loop)  # type: ignore[arg-type, return-value]
    return code, capsys.readouterr().out


def test_the_whole_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    loop = FakeLoop(tmp_path)
    code, out = walk(monkeypatch, capsys, loop, "d\na\nc\na\nx\nn\nyes\n")
    assert loop.session.stage is Stage.CANDIDATES and "Not confirmed" in out  # danger wants the typed word
    assert "npu_rms_norm(hidden_states" in out and "swiglu" in out
    code, out = walk(monkeypatch, capsys, loop, "n\napprove\n\npython train.py\n")
    assert loop.session.stage is Stage.REPORT and code == 1  # one of the two is rejected
    assert "git merge --no-ff" in out and "index.html" in out
    assert out.isascii() and "\x1b" not in out and loop.closed


def test_q_and_the_end_of_the_input_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for answers in ("a\nq\n", "a\n"):
        loop = FakeLoop(tmp_path)
        code, out = walk(monkeypatch, capsys, loop, answers)
        assert code == 0 and "--resume" in out
        assert [one.decision for one in loop.session.approvals] == [Decision.APPROVED]


def test_wrong_answers_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = walk(monkeypatch, capsys, FakeLoop(tmp_path), "what\nq\n")
    assert "Please answer one of" in out
