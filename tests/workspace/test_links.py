"""What git does not track and a run may need is brought into worktrees, by a rule that the person can change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npufuse_tui.loop import Loop, LoopOptions
from npufuse_tui.workspace import links
from npufuse_tui.workspace.links import parse

from .conftest import git, seen_by_person
from .test_apply import applied


@pytest.fixture
def full(repo: Path) -> Path:
    (repo / ".gitignore").write_text("*.pt\n*.so\n__pycache__/\noutput/\nmodels/cache/\n.venv/\n")
    git(repo, "add", ".gitignore")
    git(repo, "commit", "-q", "-m", "ignore")
    for name in (
        "data/deep/text.txt",
        "weights.pt",
        "models/_C.so",
        "output/old.log",
        "models/__pycache__/m.pyc",
        "run.log",
    ):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(name)
    (repo / "models/cache").mkdir()
    (repo / "models/cache/tokens.bin").write_bytes(b"1")
    (repo / "data/inside").symlink_to("deep/text.txt")
    (repo / "data/up").symlink_to("../weights.pt")
    (repo / "data/away").symlink_to("/etc/hostname")
    (repo / "loop").symlink_to("loop")
    (repo / ".venv").mkdir()
    (repo / ".venv/pyvenv.cfg").write_text("home = /usr\n")
    os.mkfifo(repo / "data/pipe")
    return repo


def test_what_is_brought(full: Path) -> None:
    before = seen_by_person(full)
    with applied(full) as loop:
        plan_links = set(loop.plan().links)
        tree = loop.worktrees().baseline()
        for name in ("data/deep/text.txt", "weights.pt", "models/_C.so", "models/cache/tokens.bin"):
            assert (tree / name).read_bytes() == (full / name).read_bytes(), name
        assert not os.path.lexists(tree / "output") and not os.path.lexists(tree / "run.log")
        assert not os.path.lexists(tree / "models/__pycache__") and not os.path.lexists(tree / "data/pipe")
        assert (tree / "data/inside").readlink() == Path("deep/text.txt")
        assert (tree / "data/up").readlink() == full / "weights.pt"
        assert (tree / "data/away").readlink() == Path("/etc/hostname")
        assert (tree / ".venv").is_symlink() and (tree / ".venv/pyvenv.cfg").read_text() == "home = /usr\n"
        assert {"data", "weights.pt", ".venv", "models/_C.so", "models/cache", "loop"} == plan_links
        # what a run writes stays in its worktree
        (tree / "data/new.txt").write_text("new")
        (tree / "data/deep/text.txt").write_text("written by a run")
        (tree / "weights.pt").write_text("written by a run")
        loop.clean_up()
    assert seen_by_person(full) == before


def test_large_files_are_linked_and_never_removed_with_the_worktree(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "COPY_LIMIT", 3)
    monkeypatch.setattr(links, "_clone", lambda source, target: False)
    with applied(full) as loop:
        tree = loop.worktrees().baseline()
        assert (tree / "weights.pt").is_symlink() and (tree / "data/deep/text.txt").is_symlink()
        assert not (tree / "data").is_symlink()
        assert not (tree / "models/cache/tokens.bin").is_symlink()
        loop.clean_up()
    assert (full / "weights.pt").read_text() == "weights.pt"


def test_the_person_can_change_the_rule(full: Path) -> None:
    with Loop.start(full, LoopOptions(use_cache=False)) as loop:
        loop.scan()
        loop.approve_recommended()
        rule = Path(loop.plan().link_rule)
        assert rule.is_relative_to(loop.store.folder)
        rule.write_text(rule.read_text() + "!data\noutput\n@models/cache\n")
        assert "data" not in loop.plan().links and "output" in loop.plan().links
        loop.confirm()
        loop.apply()
        tree = loop.worktrees().baseline()
        assert not (tree / "data").exists() and (tree / "output").is_dir()
        assert (tree / "models/cache").is_symlink()


def test_other_worktrees_and_what_is_tracked_in_the_base_stay_out(repo: Path) -> None:
    git(repo, "worktree", "add", "-q", str(repo / "mine"))
    git(repo, "rm", "-q", "--cached", "README.md")
    with applied(repo) as loop:
        tree = loop.worktrees().baseline()
        assert not (tree / "mine").exists()
        assert (tree / "README.md").read_text() == "a model\n" and not (tree / "README.md").is_symlink()


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a", "bring"), ("b/__pycache__/x.pyc", "leave"), ("c.log", "leave"), (".venv", "whole"), ("x/.git", "leave")],
)
def test_the_default_rule(path: str, expected: str) -> None:
    assert parse(links.RULE).answer(path) == expected


def test_a_rule_without_lines_brings_nothing() -> None:
    assert parse("# nothing\n\n").answer("data") == "leave"
