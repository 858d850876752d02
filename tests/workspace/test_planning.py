"""What stands against an apply is said before anything is done, each with its mend."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npufuse_tui.errors import KeptSafe
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Decision
from npufuse_tui.workspace import planning
from npufuse_tui.workspace.repository import Repository

from .conftest import MODEL, git, seen_by_person


def approved(top: Path) -> Loop:
    loop = Loop.start(top, LoopOptions(use_cache=False))
    loop.scan()
    loop.approve_recommended()
    return loop


def refused(loop: Loop) -> list[str]:
    return [one.reason.en for one in loop.plan().refusals]


def test_a_clean_repo_has_none(repo: Path) -> None:
    with approved(repo) as loop:
        plan = loop.plan()
        assert plan.refusals == () and plan.notes == ()
        assert plan.base == git(repo, "rev-parse", "HEAD")
        assert [one.files for one in plan.edits] == [("models/model.py",)] * 2
        assert plan.files == ("models/model.py",)


def test_uncommitted_changes_of_a_file_to_edit(repo: Path) -> None:
    (repo / "models/model.py").write_text(MODEL + "\n# mine\n")
    with approved(repo) as loop:
        assert all("uncommitted changes" in one and "git commit models/model.py" in one for one in refused(loop))
        with pytest.raises(KeptSafe, match="uncommitted"):
            loop.confirm()
            loop.apply()
    assert git(repo, "branch", "--list", "npufuse/*") == ""


def test_committing_them_mends_it_without_another_scan(repo: Path) -> None:
    (repo / "models/model.py").write_text(MODEL + "\n# mine\n")
    with approved(repo) as loop:
        git(repo, "commit", "-q", "-am", "mine")
        plan = loop.plan()
        assert plan.refusals == ()
        assert plan.base == git(repo, "rev-parse", "HEAD")
        assert any("HEAD has moved" in one.en for one in plan.notes)


def test_other_changes_are_only_named(repo: Path) -> None:
    (repo / "README.md").write_text("changed\n")
    with approved(repo) as loop:
        plan = loop.plan()
        assert plan.refusals == ()
        assert any("README.md" in one.en for one in plan.notes)


def test_a_file_that_is_not_committed(repo: Path) -> None:
    (repo / "new.py").write_text(MODEL)
    with approved(repo) as loop:
        assert any("git add new.py" in one for one in refused(loop))


def _rewrite(path: Path) -> None:
    path.write_text(MODEL.replace("eps=1e-6", "eps=1e-5"))


def _same_size_and_time(path: Path) -> None:
    about = path.stat()
    path.write_text(MODEL.replace("eps=1e-6", "eps=1e-5"))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _linked_parent(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [_rewrite, _same_size_and_time, Path.unlink, _link, _folder, _linked_parent])
def test_a_file_that_changed_since_the_scan_voids_its_approval(repo: Path, change: Callable[[Path], None]) -> None:
    with approved(repo) as loop:
        change(repo / "models/model.py")
        said = refused(loop)
        assert len(said) == 2 and all("models/model.py" in one and "scan again" in one for one in said)
        loop.confirm()
        with pytest.raises(KeptSafe):
            loop.apply()


def test_an_edit_that_is_not_the_approved_one(repo: Path) -> None:
    from dataclasses import replace

    with approved(repo) as loop:
        first, *others = loop.session.scan.candidates
        file = first.edit.files[0]
        other = replace(
            file, splices=tuple(replace(one, text=one.text.replace("1e", "2e") + " ") for one in file.splices)
        )
        tampered = replace(first, edit=replace(first.edit, files=(other,)))
        loop.store.update(scan=replace(loop.session.scan, candidates=(tampered, *others)))
        assert any(first.id in one and "not the one that was approved" in one for one in refused(loop))


def test_two_edits_of_the_same_bytes(repo: Path) -> None:
    from dataclasses import replace

    with approved(repo) as loop:
        first = loop.session.scan.candidates[0]
        twin = replace(first, id="0" * 8, edit=_moved(first.edit))
        loop.store.update(scan=replace(loop.session.scan, candidates=(*loop.session.scan.candidates, twin)))
        loop.decide([twin.id], Decision.APPROVED)
        assert [one.candidate for one in loop.plan().refusals] == [twin.id]


def _moved(edit):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    from npufuse_tui.rewrite.edit import edit_of

    file = edit.files[0]
    splice = file.splices[0]
    return edit_of(
        [replace(file, splices=(replace(splice, text=splice.text.replace("npu_rms_norm", "npu_rms_norm2")),))]
    )


def test_no_repository(tmp_path: Path) -> None:
    top = tmp_path / "plain"
    top.mkdir()
    (top / "model.py").write_text(MODEL)
    with approved(top) as loop:
        assert len(loop.session.scan.candidates) == 2
        assert any("git init" in one for one in refused(loop))
        loop.confirm()
        with pytest.raises(KeptSafe, match="git init"):
            loop.apply()
    assert sorted(one.name for one in top.iterdir()) == ["model.py"]


def test_no_commit_yet(tmp_path: Path) -> None:
    top = tmp_path / "unborn"
    top.mkdir()
    git(top, "init", "-q")
    (top / "model.py").write_text(MODEL)
    with approved(top) as loop:
        assert any("no commit yet" in one for one in refused(loop))


@pytest.mark.parametrize("what", ["rebase", "merge", "cherry-pick", "bisect"])
def test_something_unfinished(repo: Path, what: str) -> None:
    start = git(repo, "rev-parse", "HEAD")
    for name in ("one", "two"):
        git(repo, "checkout", "-q", "-b", name, start)
        (repo / "README.md").write_text(name)
        git(repo, "commit", "-q", "-am", name)
    if what == "bisect":
        git(repo, "bisect", "start")
    else:
        git(repo, what, "one", check=False)
        git(repo, "checkout", "-q", "--", ".", check=False)
    with approved(repo) as loop:
        assert any(f"a {what} is in progress" in one for one in refused(loop))


def test_a_detached_head_and_a_live_index_lock_are_fine(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    (repo / ".git" / "index.lock").touch()
    before = seen_by_person(repo)
    with approved(repo) as loop:
        assert refused(loop) == []
        loop.confirm()
        loop.apply()
        loop.clean_up()
    assert seen_by_person(repo) == before


def test_a_shallow_clone_and_a_linked_worktree_are_fine(repo: Path, tmp_path: Path) -> None:
    (repo / "README.md").write_text("more\n")
    git(repo, "commit", "-q", "-am", "more")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", str(tmp_path / "shallow"))
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    for top in (tmp_path / "shallow", tmp_path / "linked"):
        with approved(top) as loop:
            assert refused(loop) == []
            loop.confirm()
            loop.apply()
            assert "npu_" in (loop.worktrees().candidate(loop.session.tasks[0].id) / "models/model.py").read_text()


def test_a_file_in_a_submodule(repo: Path, make_repo: Callable[..., Path], tmp_path: Path) -> None:
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(make_repo("inner")), "sub")
    git(repo, "commit", "-q", "-m", "submodule")
    with approved(repo) as loop:
        assert {one.file for one in loop.session.scan.candidates} == {"models/model.py"}
        loop.confirm()
        loop.apply()
        assert (loop.worktrees().baseline() / "sub" / "models" / "model.py").read_text() == MODEL
    with approved(repo / "sub") as loop:
        assert refused(loop) == []
        assert loop.session.repository == str(repo / "sub")


def test_a_git_folder_that_cannot_be_written(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Repository, "can_write", lambda self: False)
    with approved(repo) as loop:
        assert any("cannot be written" in one and str(repo / ".git") in one for one in refused(loop))


def test_a_disk_without_room(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(planning.shutil, "disk_usage", lambda path: usage)
    with approved(repo) as loop:
        assert any("do not fit" in one for one in refused(loop))


def test_a_repository_of_somebody_else(repo: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs a file that another user owns")
    subprocess.run(["chown", "-R", "12345", str(repo)], check=True)
    with approved(repo) as loop:
        assert any("safe.directory" in one for one in refused(loop))
        assert loop.session.repository is None
