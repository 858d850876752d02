"""A session on disk: what was saved is read again, whatever was going on when the process died."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from npufuse_tui import durable
from npufuse_tui.errors import KeptSafe, MachineLacks, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import (
    Backend,
    Baseline,
    CaseResult,
    Check,
    Conclusion,
    Decision,
    Launch,
    LossResult,
    RunRecord,
    Session,
    SpeedResult,
    Stage,
    Task,
    TaskState,
)
from npufuse_tui.workspace import journal, state
from npufuse_tui.workspace.store import SessionStore


def full_task(id: str) -> Task:
    """A task with something in every field."""
    case = CaseResult("(2, 3)", "bfloat16", "contiguous", 0.99, 1e-3, None, "bfloat16", True, 0.1, 0.2, 0.3, "why")
    check = Check("passed", Backend.EMULATED, 1, 0.99, 1e-3, None, True, None, (case,))
    run = RunRecord("candidate", "python t.py", "c" * 40, "now", 1.5, 0, "finished", "l.log", "m.jsonl", 50, "plain")
    return Task(
        id,
        "rms_norm",
        TaskState.CONCLUDED,
        check,
        LossResult(50, 0.001, None, 0.01, 0.0001, True, Text("fine", "好")),
        SpeedResult("not measured", Text("emulated", "仿真"), ci_low=0.9),
        (run,),
        Conclusion.ADOPT,
        Text("all passed", "全部通过"),
        "d" * 40,
    )


def test_everything_that_is_saved_is_read_again(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        loop.approve_recommended()
        loop.note(loop.session.scan.candidates[0].id, "看看 <b>this</b>\n\x1b[31m")
        loop.set_launch(Launch("python t.py --x '1 2'", "/usr/bin/python", 60, 12.5, (("A", "b"),)))
        loop.store.put_task(full_task("x"))
        run = full_task("x").runs[0]
        loop.store.update(baseline=Baseline("passed", 50, 0.0, (run, run), None), backend=Backend.EMULATED)
        saved, folder, history = loop.session, loop.store.folder, loop.store.history
    again = SessionStore.open(folder)
    assert again.session == saved
    assert again.history == history
    again.close()


def test_files_are_readable_and_small(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        loop.note(loop.session.scan.candidates[0].id, "中文")
        text = (loop.store.folder / "state.json").read_text(encoding="utf-8")
        assert "中文" in text and "candidates" not in json.loads(text)["session"]
        assert json.loads(text)["session"]["stage"] == "candidates"
        assert loop.session.id in (loop.store.folder / "progress.md").read_text(encoding="utf-8")
        assert len(list(loop.store.folder.glob("scan-*.json"))) == 1


def test_no_more_scans_are_kept_than_two_states_need(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        for number in range(4):
            loop.scan()
            loop.store.update(scan=replace(loop.session.scan, seconds=float(number)))
        assert len(list(loop.store.folder.glob("scan-*.json"))) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b'{"schema": 1}', b"\xff\xfe\x00"])
def test_a_torn_state_file_falls_back_to_the_one_before(repo: Path, damage: bytes) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        before = loop.session
        loop.approve_recommended()
        folder = loop.store.folder
    (folder / "state.json").write_bytes(damage)
    again = SessionStore.open(folder)
    assert again.session == before
    again.close()
    (folder / "state.previous.json").write_bytes(damage)
    with pytest.raises(WrongInput, match="cannot be read"):
        SessionStore.open(folder)


def test_a_newer_format_is_left_alone(repo: Path) -> None:
    with Loop.start(repo) as loop:
        folder = loop.store.folder
    path = folder / "state.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "schema": 99}))
    with pytest.raises(KeptSafe, match="newer npufuse"):
        SessionStore.open(folder)
    assert json.loads(path.read_text())["schema"] == 99
    assert not (folder / "lock").exists()


def test_what_cannot_be_saved_did_not_happen(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        before = loop.session

        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(durable.os, "fsync", full)
        with pytest.raises(MachineLacks, match="No space left"):
            loop.approve_recommended()
        assert loop.session == before
        monkeypatch.undo()
        assert not list(loop.store.folder.glob(".writing-*"))
        folder = loop.store.folder
    again = SessionStore.open(folder)
    assert again.session.approvals == ()
    again.close()


def test_a_closed_session_refuses_changes(repo: Path) -> None:
    loop = Loop.start(repo)
    loop.close()
    loop.close()
    with pytest.raises(KeptSafe, match="closed"):
        loop.set_launch(Launch("x"))


def test_a_journal_that_was_torn_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    log = journal.Journal(path)
    log.note("first", path="中文")
    with log.step("apply"):
        pass
    whole = path.read_bytes()
    last = whole[: whole[:-1].rfind(b"\n") + 1]
    for size in range(len(last), len(whole) + 1):
        path.write_bytes(whole[:size])
        found = journal.read(path)
        assert [one.step for one in found.entries[:2]] == ["first", "apply"]
        assert len(found.entries) + found.torn == (2 if size == len(last) else 3)
        journal.Journal(path).note("after")
        again = journal.read(path)
        assert again.entries[-1].step == "after" and again.torn == found.torn


def test_what_was_interrupted(tmp_path: Path) -> None:
    log = journal.Journal(tmp_path / "journal.jsonl")
    with log.step("scan"):
        pass
    with pytest.raises(ValueError, match="no"), log.step("edit", candidate="a"):
        raise ValueError("no")
    manager = log.step("edit", candidate="b")
    manager.__enter__()
    assert [(one.step, one.details["candidate"]) for one in log.interrupted()] == [("edit", "b")]
    log.note("resumed")
    assert log.interrupted() == ()


def test_a_resumed_session_marks_what_was_running(repo: Path) -> None:
    with Loop.start(repo) as loop:
        for state_, name in ((TaskState.OP_CHECK, "a"), (TaskState.LOSS_CHECK, "b"), (TaskState.CONCLUDED, "c")):
            loop.store.put_task(Task(name, "rms_norm", state_))
        loop.store.update(baseline=Baseline("running"), stage=Stage.VERIFY)
    with Loop.resume(repo) as again:
        assert [one.state.value for one in again.session.tasks] == ["interrupted", "interrupted", "concluded"]
        assert again.session.baseline.status == "pending"


def test_decisions_can_be_taken_back_one_by_one_also_later(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        one, two = (candidate.id for candidate in loop.session.scan.candidates)
        loop.decide([one], Decision.REJECTED, "not now")
        loop.approve_recommended()
        loop.decide([one], Decision.APPROVED)
        loop.decide([one, two], None)
        assert loop.session.approvals == ()
    with Loop.resume(repo) as again:

        def decided() -> dict[str, str]:
            return {two.candidate: two.decision.value for two in again.session.approvals}

        again.undo()
        assert decided() == {one: "approved", two: "approved"}
        again.undo()
        assert decided() == {one: "rejected", two: "approved"}
        again.undo()
        assert decided() == {one: "rejected"}
        assert again.session.approvals[0].note == "not now"
        again.undo()
        with pytest.raises(WrongInput, match="no decision"):
            again.undo()


def test_another_scan_keeps_the_decisions_that_still_hold(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        loop.approve_recommended()
        assert len(loop.session.approvals) == 2
        loop.scan()
        assert len(loop.session.approvals) == 2
        path = repo / "models/model.py"
        path.write_text(path.read_text().replace("F.silu(self.gate(x)) * self.up(x)", "self.up(x)"))
        loop.scan()
        # the bytes of the file are others, so the edit of the norm is another one too
        assert loop.session.approvals == ()
        with pytest.raises(WrongInput):
            loop.confirm()


def test_no_git_and_no_writable_git_folder_use_the_state_folder(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    with Loop.start(tmp_path / "plain") as loop:
        assert loop.store.folder.is_relative_to(home / "state")
        assert loop.session.repository is None
        folder = loop.store.folder
    with Loop.resume(tmp_path / "plain") as again:
        assert again.store.folder == folder


def test_a_git_folder_that_refuses_new_folders(repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def mkdir(path: object, *rest: object, **more: object) -> None:
        if str(path).startswith(str(repo / ".git")):
            raise PermissionError(13, "Permission denied", str(path))
        real(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", mkdir)
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        assert loop.store.folder.is_relative_to(home / "state")
        loop.scan()
        assert loop.session.scan.candidates


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="does not exist"):
        Loop.start(tmp_path / "nowhere")
    with pytest.raises(WrongInput, match="no session"):
        Loop.resume(tmp_path)


def test_adapters_fit_the_model() -> None:
    """Every field of a session can be written and read; a new kind of field fails here first."""
    session = Session("i", "c", "/r", None, None, None, Stage.SCAN, notes={"a": "b"})
    document = state._adapter(Session).dump_python(session, mode="json")
    assert state._adapter(Session).validate_python(json.loads(json.dumps(document))) == session
