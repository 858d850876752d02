"""The program as a person or a script runs it: a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from workspace.conftest import MODEL as MODEL
from workspace.conftest import home as home
from workspace.conftest import make_repo as make_repo
from workspace.conftest import repo as repo


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def npufuse(tmp_path: Path) -> Callable[..., Ran]:
    """Run the command line; standard input is empty."""

    def run(*words: str | Path, folder: Path | None = None, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "npufuse_tui", *map(str, words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder or tmp_path,
            env={**os.environ, **environment},
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    return run


@pytest.fixture
def run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Ran]]:
    """Run the command line in this process, for the many calls that end at once."""
    from npufuse_tui.cli import run
    from npufuse_tui.language import current_language, set_language

    monkeypatch.chdir(tmp_path)
    language = current_language()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def here(*words: str | Path) -> Ran:
        capfd.readouterr()
        code = run([str(one) for one in words])
        said = capfd.readouterr()
        return Ran(code, said.out, said.err)

    yield here
    set_language(language)
    for number, handler in handlers.items():
        signal.signal(number, handler)
