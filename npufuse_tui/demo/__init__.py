"""The demo: a small real language model with its training script, put into a throw-away git repo."""

from __future__ import annotations

import shutil
from pathlib import Path

PROJECT = Path(__file__).parent / "project"


def launch_command() -> str:
    """The command that trains the demo's model."""
    return "python train.py --steps 60"


def create(folder: Path) -> Path:
    """Lay the demo project out in `folder` and commit it. Returns the folder.

    Raises WrongInput when the folder is there and not empty.
    """
    from npufuse_tui.errors import WrongInput
    from npufuse_tui.language import Text

    if folder.exists() and any(folder.iterdir()):
        raise WrongInput(
            Text(
                "{folder} is not empty; give a new folder for the demo, or none for a temporary one",
                "{folder} 不是空目录；请为演示指定新目录，或不指定而使用临时目录",
            ).format(folder=folder)
        )
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    _commit(folder)
    return folder


def _commit(folder: Path) -> None:
    from git import Actor, Repo

    repository = Repo.init(folder, initial_branch="main")
    repository.git.add("--all")
    author = Actor("npufuse demo", "demo@npufuse.invalid")
    repository.index.commit("A small language model", author=author, committer=author)
    repository.close()
