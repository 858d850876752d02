"""What is known of the person's repository. Everything here only reads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from npufuse_tui.errors import MachineLacks
from npufuse_tui.language import Text
from npufuse_tui.workspace import git

_UNFINISHED = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a commit's tree. `kind` is blob, commit (a submodule) or tree."""

    mode: str
    kind: str
    object: str
    size: int
    path: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits. `made_up`: git knows nobody, so npufuse put its own name in."""

    name: str
    email: str
    made_up: bool = False

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True, slots=True)
class Repository:
    """A git work tree.

    `top` is its top folder, `git_dir` its own git folder, `common_dir` the one that all worktrees share.
    """

    top: Path
    git_dir: Path
    common_dir: Path

    def head(self) -> str | None:
        """The commit at HEAD; None where there is none yet."""
        return self.commit("HEAD")

    def commit(self, name: str) -> str | None:
        """The commit that a name stands for; None where there is no such commit."""
        code, out, _ = git.answer(
            self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        return git.text(out) if code == 0 else None

    def branch(self) -> str | None:
        """The branch that is checked out; None when HEAD is detached."""
        code, out, _ = git.answer(self.top, "symbolic-ref", "--quiet", "--short", "HEAD")
        return git.text(out) if code == 0 else None

    def unfinished(self) -> str | None:
        """What the person is in the middle of: "rebase", "merge", "cherry-pick", "revert", "bisect".

        None when nothing.
        """
        return next((what for name, what in _UNFINISHED.items() if (self.git_dir / name).exists()), None)

    def entry(self, commit: str, path: str) -> TreeEntry | None:
        """What a commit holds at a path (relative to the top)."""
        return next((one for one in self.tree(commit, path) if one.path == path), None)

    def tree(self, commit: str, path: str | None = None) -> list[TreeEntry]:
        """Everything that a commit holds, with sizes in bytes (0 for submodules); or what it holds at one path."""
        where = ["--", path] if path is not None else ["-r"]
        entries = []
        for record in git.names(git.run(self.top, "ls-tree", "-z", "--long", "--full-tree", commit, *where)):
            head, _, name = record.partition("\t")
            mode, kind, hashed, size = head.split()
            entries.append(TreeEntry(mode, kind, hashed, int(size) if size.isdigit() else 0, name))
        return entries

    def blob(self, commit: str, path: str) -> bytes:
        """The content of a file in a commit, as git stores it."""
        return git.run(self.top, "cat-file", "blob", f"{commit}:{path}")

    def object_of(self, path: str, file: Path) -> str:
        """The name that git would give the content of `file` committed at `path`, filters and line ends applied."""
        return git.text(git.run(self.top, "hash-object", f"--path={path}", "--", os.fspath(file)))

    def untracked(self) -> list[str]:
        """What git does not track, ignored or not, relative to the top; whole folders end with a slash."""
        return git.names(git.run(self.top, "ls-files", "-z", "--others", "--directory", "--no-empty-directory"))

    def identity(self) -> Identity:
        """Who commits here: the environment's author, else git's, else npufuse's own name."""
        name = os.environ.get("GIT_AUTHOR_NAME") or self._setting("user.name")
        email = os.environ.get("GIT_AUTHOR_EMAIL") or self._setting("user.email")
        if name and email:
            return Identity(name, email)
        return Identity(name or "npufuse", email or "npufuse@localhost", made_up=True)

    def can_write(self) -> bool:
        """Whether refs, objects and worktrees can be made in the git folder."""
        return all(os.access(place, os.W_OK | os.X_OK) for place in (self.common_dir, self.common_dir / "objects"))

    def _setting(self, name: str) -> str | None:
        code, out, _ = git.answer(self.top, "config", "--get", name)
        return git.text(out).strip() or None if code == 0 else None


def open_repository(path: Path) -> Repository | None:
    """The repository that a folder or file lies in; None where there is none that can be used, or no git."""
    found = _open(path)
    return found if isinstance(found, Repository) else None


def why_no_repository(path: Path) -> Text:
    """Why `open_repository` gave nothing, with the mend."""
    found = _open(path)
    if isinstance(found, Text):
        return found
    return Text(
        "{path} is in no git repository, and edits are made on a branch: git init && git add . && git commit, "
        "then scan again",
        "{path} 不在 git 仓库中，而修改需要在分支上进行：请先 git init && git add . && git commit，然后重新扫描",
    ).format(path=path)


def _open(path: Path) -> Repository | Text | None:
    folder = path if path.is_dir() else path.parent
    try:
        code, out, said = git.answer(folder, "rev-parse", "--show-toplevel")
    except MachineLacks as error:
        return error.text
    if code:
        if "dubious ownership" in said:
            return Text(
                "git does not trust {path}, which another user owns: git config --global --add safe.directory {path}",
                "git 不信任 {path}（属于其他用户）：请运行 git config --global --add safe.directory {path}",
            ).format(path=folder)
        if "work tree" in said:
            return Text(
                "{path} is a bare git repository without files: clone it, and run npufuse in the clone",
                "{path} 是没有工作区的裸仓库：请先克隆，再在克隆中运行 npufuse",
            ).format(path=folder)
        return None
    top = Path(git.text(out)).resolve()
    git_dir = (folder / git.text(git.run(folder, "rev-parse", "--absolute-git-dir"))).resolve()
    common = (folder / git.text(git.run(folder, "rev-parse", "--git-common-dir"))).resolve()
    return Repository(top, git_dir, common)
