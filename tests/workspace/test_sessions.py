"""The sessions of a repo: listed, found, remembered, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Launch
from npufuse_tui.workspace import sessions

from .conftest import git, seen_by_person
from .test_apply import adopt_all, applied


def test_the_newest_first_and_by_the_beginning_of_an_id(repo: Path) -> None:
    ids = []
    for _ in range(3):
        with Loop.start(repo) as loop:
            ids.append(loop.session.id)
    found = [one.session.id for one in sessions.sessions_of(repo / "models")]
    assert found == ids[::-1]
    assert sessions.find(repo, None).name == ids[-1]
    assert sessions.find(repo, ids[0]).name == ids[0]
    with pytest.raises(WrongInput, match="any of"):
        sessions.find(repo, ids[0][:4])
    with pytest.raises(WrongInput, match="no session zzz"):
        sessions.find(repo, "zzz")


def test_a_session_of_another_repo_is_found_by_its_id(repo: Path, tmp_path: Path) -> None:
    with Loop.start(repo) as loop:
        id = loop.session.id
    assert sessions.find(tmp_path, id).name == id
    assert [one.session.id for one in sessions.recent()] == [id]


def test_a_session_that_is_open_is_shown_and_kept(repo: Path) -> None:
    with Loop.start(repo) as loop:
        assert sessions.show(repo, loop.session.id).held
        with pytest.raises(KeptSafe):
            sessions.remove(repo, loop.session.id)
        with pytest.raises(KeptSafe):
            Loop.resume(repo, loop.session.id)
    assert not sessions.show(repo, None).held


def test_removing_takes_everything_but_a_branch_with_commits(repo: Path) -> None:
    before = seen_by_person(repo)
    with applied(repo) as loop:
        adopt_all(loop)
        id, branch = loop.session.id, loop.session.branch
    kept = sessions.remove(repo, id)
    assert len(kept) == 1 and branch in kept[0].en
    assert git(repo, "rev-list", "--count", f"main..{branch}") == "2"
    assert git(repo, "for-each-ref", "refs/npufuse") == ""
    assert git(repo, "worktree", "list").count("\n") == 0
    assert not (repo / ".git" / "npufuse" / id).exists()
    assert seen_by_person(repo) == before
    git(repo, "branch", "-D", branch)
    with applied(repo) as loop:
        id, branch = loop.session.id, loop.session.branch
    assert sessions.remove(repo, id) == ()
    assert git(repo, "branch", "--list", branch) == ""


def test_removing_a_session_that_cannot_be_read(repo: Path) -> None:
    with applied(repo) as loop:
        folder = loop.store.folder
    for name in ("state.json", "state.previous.json"):
        (folder / name).write_text("{")
    sessions.remove(repo, folder.name)
    assert not folder.exists()
    assert git(repo, "worktree", "list").count("\n") == 0
    assert git(repo, "for-each-ref", "refs/npufuse") == ""


def test_a_launch_command_is_remembered_as_a_proposal(repo: Path) -> None:
    with Loop.start(repo) as loop:
        loop.set_launch(Launch("python train.py", steps=7))
    with Loop.start(repo) as loop:
        assert loop.session.launch is None
        assert loop.remembered_launch == Launch("python train.py", steps=7)
        with pytest.raises(WrongInput):
            loop.set_launch(Launch("  "))
        with pytest.raises(WrongInput):
            loop.set_launch(Launch("x", steps=0))


def test_options_of_a_start(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(rules=("swiglu",), launch=Launch("x"), use_cache=False)) as loop:
        loop.scan()
        assert {one.rule for one in loop.session.scan.candidates} == {"swiglu"}
        assert loop.session.launch == Launch("x")
