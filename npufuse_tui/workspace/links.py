"""What a run may need that git does not track (data, weights, extensions): brought into each worktree by a rule.

The rule is a file in the session's folder that a person can read and change. Folders are made anew, so that what a run
writes stays in its worktree; files are cloned where the file system can, copied while they are small, else linked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from npufuse_tui.durable import write_durably
from npufuse_tui.workspace.repository import Repository

RULE_FILE = "links.txt"

RULE = """\
# What git does not track and a run may need: it is brought into each worktree that npufuse makes.
# One pattern a line, against the path from the top of the repo or any part of it; "!" in front leaves out.
# The last line that fits decides. Folders are made anew in the worktree; files in them are cloned or copied where that
# is cheap, else linked. A line "@name" links a folder of that name as a whole: what a run writes in it is then written
# in the original.
*
!.git
!__pycache__
!*.pyc
!.*_cache
!.ipynb_checkpoints
!.idea
!.vscode
!.DS_Store
!node_modules
!*.egg-info
!build
!dist
!htmlcov
!output
!outputs
!out
!runs
!logs
!log
!results
!wandb
!mlruns
!lightning_logs
!tensorboard
!kernel_meta
!PROF_*
!*_ascend_pt
!*.log
!nohup.out
!core.*
@.venv
@venv
@env
"""

COPY_LIMIT = 4_000_000
"""Bytes up to which a file is copied where it cannot be cloned."""

COPY_BUDGET = 200_000_000
"""Bytes that are copied into one worktree at most; beyond it files are linked."""

FILE_LIMIT = 20_000
"""Files of one entry beyond which the entry is linked as a whole."""

_CLONE = 0x40049409  # FICLONE of linux/fs.h: the new file shares the old one's blocks until one of them is written


@dataclass(frozen=True, slots=True)
class LinkRule:
    """The patterns, in order: (pattern, kind) with kind "bring", "leave" or "whole"."""

    patterns: tuple[tuple[str, str], ...]

    def answer(self, path: str) -> str:
        """ "bring", "leave" or "whole" for a path relative to the top of the repo."""
        parts = path.strip("/").split("/")
        found = "leave"
        for pattern, kind in self.patterns:
            if fnmatchcase(path.strip("/"), pattern) or any(fnmatchcase(part, pattern) for part in parts):
                found = kind
        return found


def rule_of(session_folder: Path) -> LinkRule:
    """The rule of a session; the default one where the person has not changed it."""
    try:
        text = (session_folder / RULE_FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        text = RULE
    return parse(text)


def write_rule(session_folder: Path) -> Path:
    """Put the default rule where the person can change it, unless a rule is there."""
    path = session_folder / RULE_FILE
    if not path.exists():
        write_durably(path, RULE.encode())
    return path


def parse(text: str) -> LinkRule:
    kinds = {"!": "leave", "@": "whole"}
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith("#")]
    return LinkRule(
        tuple(
            (line[1:].strip().strip("/"), kinds[line[0]]) if line[0] in kinds else (line.strip("/"), "bring")
            for line in kept
        )
    )


def entries(repository: Repository, rule: LinkRule, inside: Iterable[Path] = ()) -> tuple[str, ...]:
    """The untracked entries that the rule brings, relative to the top; none that holds one of the folders `inside`."""
    places = list(inside)
    return tuple(
        name.rstrip("/")
        for name in repository.untracked()
        if rule.answer(name) != "leave" and not any(place.is_relative_to(repository.top / name) for place in places)
    )


def bring(repository: Repository, worktree: Path, names: Sequence[str], rule: LinkRule) -> None:
    """Bring the entries into a worktree. What is there already is left alone."""
    budget = [COPY_BUDGET]
    for name in names:
        source, target = repository.top / name, worktree / name
        if os.path.lexists(target) or not os.path.lexists(source):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_dir() or source.is_symlink():
            _bring_file(source, target, budget, source)
        elif rule.answer(name) == "whole" or (source / "pyvenv.cfg").exists() or _many(source):
            target.symlink_to(source.absolute())
        else:
            _bring_folder(repository, worktree, name, rule, budget)


def bring_submodules(repository: Repository, worktree: Path, paths: Iterable[str]) -> None:
    """A worktree has empty folders for submodules.

    Put links to the checkout's in their place where those are filled.
    """
    for path in paths:
        source, target = repository.top / path, worktree / path
        if source.is_dir() and any(source.iterdir()) and target.is_dir() and not any(target.iterdir()):
            target.rmdir()
            target.symlink_to(source.absolute())


def _bring_folder(repository: Repository, worktree: Path, name: str, rule: LinkRule, budget: list[int]) -> None:
    for folder, folders, files in os.walk(repository.top / name):
        relative = Path(folder).relative_to(repository.top)
        (worktree / relative).mkdir(parents=True, exist_ok=True)
        for one in list(folders):
            source = Path(folder, one)
            answer = rule.answer((relative / one).as_posix())
            if answer == "bring" and not source.is_symlink() and not (source / "pyvenv.cfg").exists():
                continue
            folders.remove(one)
            if answer != "leave" and not os.path.lexists(worktree / relative / one):
                (worktree / relative / one).symlink_to(source.absolute())
        for one in files:
            if rule.answer((relative / one).as_posix()) != "leave":
                _bring_file(Path(folder, one), worktree / relative / one, budget, repository.top / name)


def _bring_file(source: Path, target: Path, budget: list[int], entry: Path) -> None:
    """One file of `entry`, or a link: one that stays inside of the entry is made anew, others lead to the original."""
    if os.path.lexists(target):
        return
    if source.is_symlink():
        pointed = source.readlink()
        aim = Path(os.path.normpath(source.parent / pointed))
        target.symlink_to(pointed if pointed.is_absolute() or aim.is_relative_to(entry) else aim)
        return
    if not source.is_file():  # a socket, a pipe, a device: never opened
        return
    if _clone(source, target):
        return
    size = source.stat().st_size
    if size <= min(COPY_LIMIT, budget[0]):
        try:
            shutil.copy2(source, target)
            budget[0] -= size
            return
        except OSError:
            target.unlink(missing_ok=True)
    target.symlink_to(source.absolute())


def _clone(source: Path, target: Path) -> bool:
    """A copy that shares the blocks, where the file system can do that; False where it cannot."""
    try:
        with source.open("rb") as old, target.open("xb") as new:
            fcntl.ioctl(new.fileno(), _CLONE, old.fileno())
        shutil.copystat(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True


def _many(folder: Path) -> bool:
    seen = 0
    for _, _, files in os.walk(folder):
        seen += len(files)
        if seen > FILE_LIMIT:
            return True
    return False
