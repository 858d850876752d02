"""Which files are looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanned import git, write

from npufuse_tui.errors import WrongInput
from npufuse_tui.scan.discover import discover


def names(root: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> list[str]:
    return [found.name for found in discover(root, include, exclude)[1]]


def test_without_git_every_python_file_but_those_of_tools(tmp_path: Path) -> None:
    write(tmp_path, a="", pkg__b="", venv__lib__c="", node_modules__d="")
    (tmp_path / "pkg" / "__pycache__").mkdir()
    (tmp_path / "pkg" / "__pycache__" / "e.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert names(tmp_path) == ["a.py", "pkg/b.py"]


def test_with_git_tracked_and_new_files_but_not_ignored_ones(tmp_path: Path) -> None:
    write(tmp_path, tracked="", new="", build__ignored="", gone="")
    (tmp_path / ".gitignore").write_text("build/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "tracked.py", "gone.py", ".gitignore")
    git(tmp_path, "commit", "-qm", "a")
    (tmp_path / "gone.py").unlink()
    assert names(tmp_path) == ["new.py", "tracked.py"]


def test_a_submodule_is_a_repo_of_its_own(tmp_path: Path) -> None:
    inner, outer = write(tmp_path / "inner", a=""), write(tmp_path / "outer", b="")
    for root in (inner, outer):
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "commit", "-qm", "a")
    git(outer, "submodule", "add", "-q", str(inner), "lib")
    assert names(outer) == ["b.py"]
    assert names(outer / "lib") == ["a.py"]


@pytest.mark.parametrize("with_git", [True, False])
def test_a_folder_of_a_repo(tmp_path: Path, with_git: bool) -> None:
    write(tmp_path, a="", pkg__b="", pkg__deep__c="")
    if with_git:
        git(tmp_path, "init", "-q")
    assert names(tmp_path / "pkg") == ["b.py", "deep/c.py"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ((), ("pkg",), ["a.py"]),
        ((), ("pkg/",), ["a.py"]),
        ((), ("*/test_*",), ["a.py", "pkg/b.py"]),
        (("pkg/*",), (), ["pkg/b.py", "pkg/test_b.py"]),
        (("b.py", "a.py"), (), ["a.py", "pkg/b.py"]),
        (("pkg",), ("test_*.py",), ["pkg/b.py"]),
    ],
)
def test_globs(tmp_path: Path, include: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]) -> None:
    write(tmp_path, a="", pkg__b="", pkg__test_b="")
    assert names(tmp_path, include, exclude) == expected


def test_one_file(tmp_path: Path) -> None:
    write(tmp_path, a="", b="")
    root, found = discover(tmp_path / "a.py")
    assert (root, [one.name for one in found]) == (tmp_path, ["a.py"])


def test_what_is_not_there_and_what_is_no_python(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(WrongInput, match="does not exist"):
        discover(tmp_path / "missing")
    with pytest.raises(WrongInput, match="not a Python file"):
        discover(tmp_path / "a.txt")


def test_a_link_that_leads_nowhere_and_a_folder_that_links_to_itself(tmp_path: Path) -> None:
    write(tmp_path, a="")
    (tmp_path / "broken.py").symlink_to(tmp_path / "missing.py")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert names(tmp_path) == ["a.py"]
