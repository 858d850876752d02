"""Edits end as commits on a branch of their own, and nothing of the person's changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.events import Applied, Committed, Event
from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.model import Conclusion, Decision, Stage, Task, TaskState, Verdict
from npufuse_tui.workspace.worktrees import EDIT_TRAILER, SESSION_TRAILER

from .conftest import MODEL, git, seen_by_person


def applied(top: Path, **options: object) -> Loop:
    """A session whose recommended candidates are applied."""
    loop = Loop.start(top, LoopOptions(use_cache=False, **options))  # type: ignore[arg-type]
    loop.scan()
    loop.approve_recommended()
    loop.confirm()
    loop.apply()
    return loop


def adopt_all(loop: Loop, heard: list[Event] | None = None) -> None:
    """What a verification that passes leaves behind."""
    for task in loop.session.tasks:
        if task.conclusion is None:
            loop.store.put_task(replace(task, state=TaskState.CONCLUDED, conclusion=Conclusion.ADOPT))
    loop.commit_passing(heard.append if heard is not None else lambda event: None)


def make_it_messy(top: Path) -> None:
    """Everything that a checkout may hold besides its commit."""
    (top / "README.md").write_text("changed and staged\n")
    (top / "other.py").write_text("x = 1\n")
    git(top, "add", "other.py", "README.md")
    git(top, "commit", "-q", "-m", "more")
    (top / "README.md").write_text("stashed\n")
    git(top, "stash", "-q")
    (top / "README.md").write_text("staged\n")
    git(top, "add", "README.md")
    (top / "other.py").write_text("x = 2  # not staged\n")
    (top / "new.py").write_text("intent = 1\n")
    git(top, "add", "--intent-to-add", "new.py")
    (top / "data").mkdir()
    (top / "data" / "text.txt").write_text("words\n")
    (top / ".gitignore").write_text("*.pt\n")
    (top / "weights.pt").write_bytes(b"\0" * 100)
    hook = top / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    for name in (
        "pre-commit",
        "commit-msg",
        "post-checkout",
        "post-commit",
        "reference-transaction",
        "prepare-commit-msg",
    ):
        hook = top / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {top}/hook-ran\nexit 1\n")
        hook.chmod(0o755)
    git(top, "config", "commit.gpgsign", "true")
    git(top, "config", "core.fsmonitor", str(top / ".git" / "hooks" / "post-commit"))


def test_the_checkout_stays_byte_for_byte(repo: Path) -> None:
    make_it_messy(repo)
    before = seen_by_person(repo)
    with applied(repo) as loop:
        adopt_all(loop)
        assert len([one for one in loop.session.tasks if one.commit]) == 2
        loop.clean_up()
    assert seen_by_person(repo) == before
    assert not (repo / "hook-ran").exists()
    assert git(repo, "worktree", "list").count("\n") == 0


def test_each_candidate_alone_then_one_commit_each(repo: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    heard: list[Event] = []
    loop = Loop.start(repo, LoopOptions(use_cache=False))
    loop.scan()
    loop.approve_recommended()
    loop.confirm()
    plan = loop.plan()
    loop.apply(heard.append)
    assert [one.candidate for one in heard if isinstance(one, Applied)] == [one.candidate for one in plan.edits]
    trees = loop.worktrees()
    assert (trees.baseline() / "models/model.py").read_text() == MODEL
    for one in plan.edits:
        diff = git(trees.candidate(one.candidate), "diff", "--no-ext-diff", "--no-color", "HEAD")
        assert _changes(diff) == _changes(one.diff)
        assert one.diff == next(two.diff for two in loop.session.scan.candidates if two.id == one.candidate)
    adopt_all(loop, heard)
    branch = loop.session.branch
    assert branch == f"npufuse/{loop.session.id}"
    commits = git(repo, "rev-list", "--reverse", f"{base}..{branch}").splitlines()
    assert commits == [one.commit for one in loop.session.tasks]
    assert commits == [one.commit for one in heard if isinstance(one, Committed)]
    for commit, one in zip(commits, plan.edits, strict=True):
        message = git(repo, "show", "-s", "--format=%B", commit)
        assert f"{SESSION_TRAILER}: {loop.session.id}" in message
        assert f"{EDIT_TRAILER}: {one.edit.digest}" in message
        assert one.rule in message and "models/model.py" in message
        assert git(repo, "show", "-s", "--format=%an <%ae>", commit) == "Ada <ada@example.org>"
        shown = _changes(git(repo, "show", "--format=", commit))
        assert set(shown) <= set(_changes(one.diff))  # what two edits need at the top of a file is there once
        assert shown == _changes(one.diff) or commit != commits[0]
    assert git(repo, "fsck", "--strict") == ""
    assert git(repo, "rev-parse", f"refs/npufuse/backup/{loop.session.id}") == base
    loop.close()


def _changes(diff: str) -> list[str]:
    lines = [one for one in diff.splitlines() if one[:1] in "+-" and not one.startswith(("+++", "---"))]
    return sorted(lines)


def test_a_failing_candidate_is_not_on_the_branch(repo: Path) -> None:
    with applied(repo) as loop:
        _, bad = loop.session.tasks
        loop.store.put_task(replace(bad, state=TaskState.OP_FAILED, conclusion=Conclusion.REJECT))
        adopt_all(loop)
        text = git(repo, "show", f"{loop.session.branch}:models/model.py")
        assert "npu_rms_norm" in text and "npu_swiglu" not in text
        assert next(one for one in loop.session.tasks if one.id == bad.id).commit is None


def test_committing_twice_commits_once(repo: Path) -> None:
    with applied(repo) as loop:
        adopt_all(loop)
        tip = git(repo, "rev-parse", str(loop.session.branch))
        for task in loop.session.tasks:
            loop.store.put_task(replace(task, commit=None))
        loop.commit_passing()
        assert git(repo, "rev-parse", str(loop.session.branch)) == tip
        assert all(one.commit for one in loop.session.tasks)


def test_the_person_may_go_on_working_after_the_apply(repo: Path) -> None:
    with applied(repo) as loop:
        (repo / "models/model.py").write_text("gone = True\n")
        git(repo, "commit", "-q", "-a", "-m", "moved on")
        loop.clean_up()
        adopt_all(loop)
        assert "npu_rms_norm" in git(repo, "show", f"{loop.session.branch}:models/model.py")


def test_a_scan_of_a_subfolder_or_a_single_file(make_repo: Callable[..., Path]) -> None:
    top = make_repo(files={"src/pkg/model.py": MODEL, "top.py": "x = 1\n"})
    for place in (top / "src", top / "src/pkg/model.py"):
        with applied(place) as loop:
            adopt_all(loop)
            names = git(top, "diff", "--name-only", f"main..{loop.session.branch}")
            assert names == "src/pkg/model.py"
            assert loop.worktrees().root_in(loop.worktrees().baseline()).is_dir()


HOSTILE = (
    "a\nb.py",
    "中文.py",
    "-rf.py",
    ":(glob)x.py",
    "[red]x.py",
    "sp ace.py",
    "quo\"te'.py",
    "tab\t.py",
    b"caf\xe9.py",
)


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_hostile_names(make_repo: Callable[..., Path], name: str | bytes) -> None:
    file = name if isinstance(name, str) else os.fsdecode(name)
    top = make_repo(files={f"dir/{file}": MODEL})
    before = seen_by_person(top)
    with applied(top) as loop:
        adopt_all(loop)
        assert all(one.commit for one in loop.session.tasks)
        out = subprocess.run(
            ["git", "-C", str(top), "diff", "--name-only", "-z", f"main..{loop.session.branch}"],
            capture_output=True,
            check=True,
        ).stdout
        assert os.fsdecode(out) == f"dir/{file}\0"
        session_id = loop.session.id
    with Loop.resume(top, session_id) as again:
        assert again.session.scan is not None and again.session.scan.candidates[0].file == f"dir/{file}"
        again.clean_up()
    assert seen_by_person(top) == before


def test_line_ends_that_the_checkout_was_made_with(make_repo: Callable[..., Path], tmp_path: Path) -> None:
    """With core.autocrlf the files hold CRLF and the commit holds LF; what is edited is what the person sees."""
    source = make_repo("source")
    top = tmp_path / "clone"
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "-q", str(source), str(top))
    git(top, "config", "core.autocrlf", "true")
    assert b"\r\n" in (top / "models/model.py").read_bytes()
    with applied(top) as loop:
        tree = loop.worktrees().candidate(loop.session.tasks[0].id)
        assert b"\n" not in (tree / "models/model.py").read_bytes().replace(b"\r\n", b"")
        adopt_all(loop)
        committed = git(top, "show", f"{loop.session.branch}:models/model.py")
        assert "\r" not in committed and "npu_rms_norm" in committed
        assert git(top, "diff", "--stat", f"main..{loop.session.branch}").startswith(" models/model.py")


def test_a_filter_that_changes_what_is_stored(make_repo: Callable[..., Path]) -> None:
    top = make_repo(files={"model.py": "# $Id$\n" + MODEL, ".gitattributes": "*.py ident\n"})
    (top / "model.py").unlink()
    git(top, "checkout", "-q", "--", "model.py")
    assert "$Id: " in (top / "model.py").read_text()
    with applied(top) as loop:
        adopt_all(loop)
        assert "# $Id$" in git(top, "show", f"{loop.session.branch}:model.py")
        assert all(one.commit for one in loop.session.tasks)


def test_nobody_known_to_git_commits_all_the_same(repo: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with applied(repo) as loop:
        assert any("user.name" in one.en for one in loop.plan().notes)
        adopt_all(loop)
        assert git(repo, "log", "-1", "--format=%an <%ae>", str(loop.session.branch)) == "npufuse <npufuse@localhost>"


def test_git_variables_of_the_environment_lead_nowhere(
    repo: Path, make_repo: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo("other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    with applied(repo) as loop:
        adopt_all(loop)
        assert loop.session.repository == str(repo)
        assert loop.store.folder.is_relative_to(repo)
    monkeypatch.undo()
    assert git(other, "for-each-ref", "refs/heads", "--format=%(refname)") == "refs/heads/main"


@pytest.mark.parametrize(
    ("existing", "expected"), [("npufuse", "npufuse-{id}"), ("npufuse/x", "npufuse/{id}")], ids=["in the way", "beside"]
)
def test_branches_that_are_there(repo: Path, existing: str, expected: str) -> None:
    git(repo, "branch", existing)
    with applied(repo) as loop:
        assert loop.session.branch == expected.format(id=loop.session.id)
        adopt_all(loop)
        assert git(repo, "rev-parse", existing) == git(repo, "rev-parse", "main")


def test_a_branch_of_the_persons_is_never_taken(repo: Path) -> None:
    git(repo, "branch", "mine")
    with pytest.raises(KeptSafe, match="mine"):
        applied(repo, branch="mine")
    with pytest.raises(KeptSafe, match="mine"):
        applied(repo, branch="mine/deeper")
    with pytest.raises(KeptSafe, match="no name for a branch"):
        applied(repo, branch="a..b")
    with applied(repo, branch="feature/fused") as loop:
        adopt_all(loop)
        assert git(repo, "rev-list", "--count", "main..feature/fused") == "2"


def test_the_branch_can_be_checked_out_after_a_verification(repo: Path) -> None:
    with applied(repo) as loop:
        adopt_all(loop)
        loop.worktrees().release("branch")
        git(repo, "checkout", "-q", str(loop.session.branch))


def test_what_was_removed_from_a_worktree_is_made_again(repo: Path) -> None:
    with applied(repo) as loop:
        trees, task = loop.worktrees(), loop.session.tasks[0]
        tree = trees.candidate(task.id)
        (tree / "models/model.py").write_text("broken by a run\n")
        assert "npu_rms_norm" in (trees.candidate(task.id) / "models/model.py").read_text()
        subprocess.run(["rm", "-rf", str(tree)], check=True)
        assert "npu_rms_norm" in (trees.candidate(task.id) / "models/model.py").read_text()


def test_a_run_that_leaves_folders_without_write_permission(repo: Path) -> None:
    with applied(repo) as loop:
        tree = loop.worktrees().baseline()
        (tree / "out").mkdir()
        (tree / "out" / "file").write_text("x")
        (tree / "out").chmod(0o500)
        loop.clean_up()
        assert not tree.exists()


def test_approvals_are_recorded_and_frozen(repo: Path) -> None:
    with applied(repo) as loop:
        for one in loop.session.approvals:
            candidate = next(two for two in loop.session.scan.candidates if two.id == one.candidate)
            assert one.who == "Ada <ada@example.org>" and one.when.endswith("Z") and one.digest == candidate.edit.digest
        with pytest.raises(KeptSafe):
            loop.decide([loop.session.approvals[0].candidate], Decision.REJECTED)
        with pytest.raises(KeptSafe):
            loop.undo()
        with pytest.raises(KeptSafe):
            loop.scan()
        assert loop.session.stage is Stage.VERIFY
        assert [one.id for one in loop.session.tasks] == [one.candidate for one in loop.session.approvals]
        assert all(isinstance(one, Task) and one.state is TaskState.PENDING for one in loop.session.tasks)


def test_nothing_is_approved_that_is_refused_or_unknown(repo: Path) -> None:
    with Loop.start(repo, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        with pytest.raises(WrongInput, match="nope"):
            loop.decide(["nope"], Decision.APPROVED)
        with pytest.raises(WrongInput, match="nothing is approved"):
            loop.confirm()
        one = loop.session.scan.candidates[0]
        scan = replace(
            loop.session.scan, candidates=(replace(one, verdict=Verdict.REFUSED), *loop.session.scan.candidates[1:])
        )
        loop.store.update(scan=scan)
        with pytest.raises(KeptSafe, match=one.id):
            loop.decide([one.id], Decision.APPROVED)
        with pytest.raises(KeptSafe):
            loop.apply()
