"""Every call of git goes through here: GitPython runs the real git, in an environment that nobody's settings bend.

No hook runs, no prompt waits, nothing is signed, no optional lock is taken (so that reading the person's repo leaves
even its index alone), paths are taken literally, and no GIT_* variable of the environment points elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from npufuse_tui.errors import MachineLacks, NpufuseError
from npufuse_tui.language import Text

SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("core.quotePath", "false"),
    ("advice.detachedHead", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("i18n.commitEncoding", "utf-8"),
)

ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}


class GitFailed(NpufuseError):
    """A call of git that went wrong in a way that nobody foresaw; `said` is git's own last line."""

    def __init__(self, text: Text, code: int = 1, said: str = "") -> None:
        super().__init__(text)
        self.code, self.said = code, said

    def __reduce__(self) -> tuple[type[GitFailed], tuple[Text, int, str]]:  # type: ignore[override]
        return type(self), (self.text, self.code, self.said)


def run(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> bytes:
    """Run git in a folder; its standard output.

    Raises GitFailed with what git said, MachineLacks where there is no git.
    """
    code, out, said = answer(folder, *arguments, environment=environment)
    if code:
        raise GitFailed(
            Text("git {what} failed in {folder}: {said}", "git {what} 在 {folder} 中失败：{said}").format(
                what=arguments[0], folder=folder, said=said or f"exit code {code}"
            ),
            code,
            said,
        )
    return out


def answer(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> tuple[int, bytes, str]:
    """(exit code, standard output, last line of standard error) of git; for calls whose failure is an answer."""
    if shutil.which("git") is None:
        raise MachineLacks(
            Text(
                "git is not installed or not on PATH: install git 2.25 or newer",
                "未找到 git：请安装 git 2.25 或更新的版本",
            )
        )
    outside = [name for name in os.environ if name.startswith("GIT_")]
    wanted = {**ENVIRONMENT, **(environment or {})}
    command = ["env", *(f"--unset={name}" for name in outside), *(f"{name}={value}" for name, value in wanted.items())]
    # -C, because GitPython would run in the current folder when it cannot enter the one that it is given
    command = [*(command if outside else []), "git", "-C", os.fspath(folder), "--no-pager", *settings(), *arguments]
    try:
        return _to_its_end(command, wanted)
    except OSError as error:
        raise MachineLacks(
            Text("git cannot be run in {folder}: {why}", "无法在 {folder} 中运行 git：{why}").format(
                folder=folder, why=error
            )
        ) from error


def _to_its_end(command: list[str], environment: Mapping[str, str]) -> tuple[int, bytes, str]:
    """Run a command and wait. When the waiting is interrupted, git is told to end, and may take its locks away."""
    from git.cmd import Git
    from git.exc import GitCommandNotFound

    try:
        running = Git().execute(command, as_process=True, env=environment)
    except GitCommandNotFound as error:
        raise FileNotFoundError(str(error)) from error
    process: subprocess.Popen[bytes] = cast("Any", running).proc
    try:
        out, err = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process.returncode, out, _last_line(err.decode("utf-8", "replace"))


def settings() -> list[str]:
    """The settings as options of git."""
    return [word for name, value in SETTINGS for word in ("-c", f"{name}={value}")]


def text(data: bytes) -> str:
    """Output of git as text, without its last newline; bytes that are no UTF-8 survive as in file names."""
    return os.fsdecode(data).rstrip("\n")


def names(data: bytes) -> list[str]:
    """File names that git ended with NUL."""
    return [os.fsdecode(one) for one in data.split(b"\0") if one]


def _last_line(err: str) -> str:
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (telling or lines or [""])[-1][:300]
