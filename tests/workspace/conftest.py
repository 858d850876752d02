"""Real repositories for the workspace's tests, and a home of their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

MODEL = """\
import torch
from torch import nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        var = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(var + self.eps)
        return self.weight * x.to(dtype)


class MLP(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.gate = nn.Linear(a, b)
        self.up = nn.Linear(a, b)
        self.down = nn.Linear(b, a)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No setting and no cache of whoever runs the tests."""
    place = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (place / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    return place


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    assert not check or done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).rstrip("\n")


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[..., Path]:
    """A repo with the given files committed; by default one model file."""

    def make(name: str = "repo", files: dict[str, str | bytes] | None = None) -> Path:
        top = tmp_path / name
        top.mkdir()
        git(top, "init", "-q")
        for file, content in (files or {"models/model.py": MODEL, "README.md": "a model\n"}).items():
            path = top / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", "start")
        return top

    return make


@pytest.fixture
def repo(make_repo: Callable[..., Path]) -> Path:
    return make_repo()


def seen_by_person(top: Path) -> dict[str, object]:
    """Everything of a checkout that is the person's: files with modes and times, index, HEAD, refs, stash, settings."""
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(one for one in folders if not (one == ".git" and Path(folder) == top))
        for one in sorted([*folders, *files]):
            path = Path(folder, one)
            about = path.lstat()
            content = str(path.readlink()) if path.is_symlink() else _digest(path) if path.is_file() else ""
            found[os.fsdecode(path.relative_to(top))] = (content, about.st_mode, about.st_mtime_ns, about.st_ino)
    for name in ("index", "HEAD", "config", "logs/HEAD", "logs/refs/stash", "info/exclude", "ORIG_HEAD", "packed-refs"):
        path = top / ".git" / name
        if path.is_file():
            found[f".git/{name}"] = (_digest(path), path.stat().st_mtime_ns)
    refs = git(top, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    found["refs"] = [one for one in refs if "npufuse" not in one]
    found["hooks"] = (
        sorted(one.name for one in (top / ".git" / "hooks").iterdir()) if (top / ".git/hooks").is_dir() else []
    )
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
