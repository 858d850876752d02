"""Which files a scan looks at: what git tracks or would track; where there is no git, a walk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text

LARGEST = 20_000_000
"""Bytes beyond which a file is skipped, with that reason."""

LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".eggs"}
)

SUFFIXES = (".py", ".pyw")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the scan: its name relative to the root, and the path to open."""

    name: str
    path: Path


def discover(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> tuple[Path, list[Found]]:
    """The root of the scan (a folder, also when a file was given) and its Python files, sorted by name.

    Raises WrongInput when the path is not there or is no Python file.
    """
    if not root.exists():
        raise WrongInput(
            Text(
                "{path} does not exist; give a folder or a Python file", "{path} 不存在；请给出文件夹或 Python 文件"
            ).format(path=root)
        )
    if root.is_file():
        if root.suffix not in SUFFIXES:
            raise WrongInput(
                Text(
                    "{path} is not a Python file; give a folder or a file that ends in .py",
                    "{path} 不是 Python 文件；请给出文件夹或以 .py 结尾的文件",
                ).format(path=root)
            )
        return root.parent, [Found(root.name, root)]
    tracked = _from_git(root)
    names = tracked if tracked is not None else _from_walk(root)
    kept = (name for name in names if name.endswith(SUFFIXES) and wanted(name, include, exclude))
    return root, [Found(name, root / name) for name in sorted(kept)]


def wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether the globs let a name through: any of `include` (all when there is none), none of `exclude`."""
    if include and not any(_fits(name, glob) for glob in include):
        return False
    return not any(_fits(name, glob) for glob in exclude)


def _fits(name: str, glob: str) -> bool:
    glob = glob.rstrip("/")
    return fnmatch(name, glob) or fnmatch(name, f"{glob}/*") or fnmatch(name.rsplit("/", 1)[-1], glob)


def _from_git(root: Path) -> list[str] | None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [
                "git",
                "-c",
                "core.fsmonitor=false",  # a setting of the repo that runs a program
                "-C",
                str(root),
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
                "--deduplicate",
                "--",
                ".",
            ],
            capture_output=True,
            env=environment,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [name for name in names if (root / name).is_file()]


def _from_walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in LEFT_OUT and not one.endswith(".egg-info"))
        for file in files:
            path = Path(folder, file)
            if path.is_file():
                yield path.relative_to(root).as_posix()
