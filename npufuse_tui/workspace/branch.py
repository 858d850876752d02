"""Refs that a session makes: its branch and its backup ref.

Each is set only from the value that it is known to have.
"""

from __future__ import annotations

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.workspace import git
from npufuse_tui.workspace.repository import Repository


def backup_ref(session_id: str) -> str:
    return f"refs/npufuse/backup/{session_id}"


def branch_for(repository: Repository, session_id: str, wanted: str | None) -> str:
    """The name of the session's branch: npufuse/ID, or npufuse-ID where a branch called `npufuse` leaves no room.

    Raises WrongInput for a name that git does not take, KeptSafe for one that is in the way of another branch.
    """
    if wanted is not None:
        code, _, _ = git.answer(repository.top, "check-ref-format", "--branch", wanted)
        if code or wanted.startswith("-"):
            raise WrongInput(
                Text("{name} is no name for a branch: choose another", "{name} 不能作为分支名：请换一个").format(
                    name=wanted
                )
            )
        in_the_way = blocking(repository, wanted)
        if in_the_way is not None:
            raise KeptSafe(
                Text(
                    "branch {name} cannot be made because {other} exists: choose another name with --branch",
                    "无法创建分支 {name}，因为 {other} 已存在：请用 --branch 换一个名字",
                ).format(name=wanted, other=in_the_way)
            )
        return wanted
    for name in (f"npufuse/{session_id}", f"npufuse-{session_id}"):
        if blocking(repository, name) is None:
            return name
    return f"npufuse-{session_id}-edits"


def blocking(repository: Repository, name: str) -> str | None:
    """A branch that has the name, or that is a folder on the way to it, or in whose place it would be a folder."""
    existing = set(
        git.text(git.run(repository.top, "for-each-ref", "--format=%(refname:short)", "refs/heads/")).splitlines()
    )
    parts = name.split("/")
    ways = {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return next((one for one in sorted(existing) if one in ways or one.startswith(f"{name}/")), None)


def create(repository: Repository, ref: str, commit: str) -> None:
    """Make a ref; one that is there with this very value is taken as made. Raises KeptSafe when it points elsewhere."""
    code, _, said = git.answer(repository.top, "update-ref", "--end-of-options", ref, commit, "0" * len(commit))
    if code == 0 or value(repository, ref) == commit:
        return
    raise KeptSafe(
        Text(
            "{ref} cannot be made ({why}): remove it, or choose another name with --branch",
            "无法创建 {ref}（{why}）：请删除它，或用 --branch 换一个名字",
        ).format(ref=ref, why=said or value(repository, ref) or "?")
    )


def value(repository: Repository, ref: str) -> str | None:
    """The commit that a ref points to; None when there is no such ref."""
    code, out, _ = git.answer(repository.top, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
    return git.text(out) if code == 0 else None


def remove(repository: Repository, ref: str, commit: str) -> None:
    """Remove a ref if it still has the value. Raises GitFailed when it has another one."""
    git.run(repository.top, "update-ref", "-d", "--end-of-options", ref, commit)


def commits_with(repository: Repository, base: str, branch: str, trailer: str) -> dict[str, str]:
    """Value of the trailer → commit, for the commits of the branch that are not in the base."""
    form = f"%H%x00%(trailers:key={trailer},valueonly,separator=%x2C)"
    out = git.run(repository.top, "log", "-z", f"--format={form}", f"{base}..refs/heads/{branch}")
    words = git.text(out).split("\0")
    return {words[place + 1].strip(): words[place] for place in range(0, len(words) - 1, 2)}
