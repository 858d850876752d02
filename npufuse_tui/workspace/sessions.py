"""The sessions of a repository, and the ones that the person worked on last wherever they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from npufuse_tui.durable import write_durably
from npufuse_tui.errors import KeptSafe, NpufuseError, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Launch, Session
from npufuse_tui.workspace import branch, git, places, state
from npufuse_tui.workspace.journal import interrupted, read
from npufuse_tui.workspace.lock import SessionLock, owner_of
from npufuse_tui.workspace.repository import Repository, open_repository
from npufuse_tui.workspace.store import remove_folder
from npufuse_tui.workspace.worktrees import commits_of, remove_worktrees

REMEMBERED = 40
"""Sessions that the list of recent ones holds."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A session, as a list shows it. `held` by a process that lives.

    `interrupted` names what was going on when it died.
    """

    folder: Path
    session: Session
    held: bool
    interrupted: tuple[str, ...]


def sessions_of(path: Path) -> list[Summary]:
    """The sessions of the repo (or folder) that a path lies in, the newest first.

    Ones that cannot be read are left out.
    """
    path = path.resolve()
    repository = open_repository(path)
    return [found for folder in places.session_folders(path, repository) if (found := _summary(folder)) is not None]


def find(path: Path, session_id: str | None) -> Path:
    """The folder of a session by its id or the beginning of it; None: the newest that belongs to the path.

    An id is also looked for among the recent sessions of other repos. Raises WrongInput when there is none, or several.
    """
    path = path.resolve()
    folders = places.session_folders(path, open_repository(path)) if path.exists() else []
    if session_id is None:
        if folders:
            return folders[0]
        raise WrongInput(
            Text(
                "there is no session for {path}: start one with npufuse {path}",
                "{path} 没有会话：请用 npufuse {path} 新建",
            ).format(path=path)
        )
    for among in (folders, list(_recent_folders())):
        exact = [one for one in among if one.name == session_id]
        begun = exact or [one for one in among if one.name.startswith(session_id)]
        if len(begun) == 1:
            return begun[0]
        if len(begun) > 1:
            raise WrongInput(
                Text(
                    "{id} could be any of {names}: give more of the id",
                    "{id} 可能是 {names} 中的任意一个：请给出更长的 ID",
                ).format(id=session_id, names=", ".join(one.name for one in begun))
            )
    raise WrongInput(
        Text(
            "there is no session {id}: npufuse sessions list shows those that are there",
            "没有会话 {id}：可用 npufuse sessions list 查看",
        ).format(id=session_id)
    )


def show(path: Path, session_id: str | None) -> Summary:
    """One session, read without taking its lock. Raises WrongInput when it cannot be found or read."""
    folder = find(path, session_id)
    saved, _ = state.read(folder)
    return Summary(folder, saved.session, _held(folder), _interrupted(folder))


def remove(path: Path, session_id: str) -> tuple[Text, ...]:
    """Remove a session: its worktrees, backup ref and folder. A branch with commits stays, an empty one goes.

    Returns what was kept. Raises KeptSafe when a process that lives holds it.
    """
    folder = find(path, session_id)
    lock = SessionLock.take(folder)
    kept: list[Text] = []
    try:
        try:
            session: Session | None = state.read(folder, with_scan=False)[0].session
        except KeptSafe:
            raise
        except NpufuseError:
            session = None
        repository = _repository_of(folder, session)
        if repository is not None:
            remove_worktrees(repository, folder)
            _remove_refs(repository, folder, session, kept)
    except BaseException:
        lock.give_back()
        raise
    remove_folder(folder)
    return tuple(kept)


def remembered_launch(path: Path, but: str) -> Launch | None:
    """The launch command of the newest other session of the same repo that has one."""
    for folder in places.session_folders(path.resolve(), open_repository(path)):
        if folder.name != but:
            with suppress(NpufuseError):
                saved, _ = state.read(folder, with_scan=False)
                if saved.session.launch is not None:
                    return saved.session.launch
    return None


def remember(folder: Path) -> None:
    """Put a session first among the recent ones. That it cannot be written down loses nothing."""
    with suppress(OSError):
        path = _recent_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        others = [str(one) for one in _recent_folders() if one != folder]
        write_durably(path, json.dumps([str(folder), *others][:REMEMBERED], ensure_ascii=True, indent=1).encode())


def recent() -> list[Summary]:
    """The sessions that were worked on last, the last one first; those that are gone or cannot be read are left out."""
    return [found for folder in _recent_folders() if (found := _summary(folder)) is not None]


def _summary(folder: Path) -> Summary | None:
    try:
        saved, _ = state.read(folder, with_scan=False)
    except NpufuseError:
        return None
    return Summary(folder, saved.session, _held(folder), _interrupted(folder))


def _held(folder: Path) -> bool:
    owner = owner_of(folder)
    return owner is not None and not owner.is_dead()


def _interrupted(folder: Path) -> tuple[str, ...]:
    return () if _held(folder) else tuple(one.step for one in interrupted(read(folder / "journal.jsonl").entries))


def _repository_of(folder: Path, session: Session | None) -> Repository | None:
    if session is not None and session.repository is not None and Path(session.repository).exists():
        return open_repository(Path(session.repository))
    return open_repository(folder.parent.parent.parent) if folder.parent.name == "npufuse" else None


def _remove_refs(repository: Repository, folder: Path, session: Session | None, kept: list[Text]) -> None:
    backup = branch.backup_ref(folder.name)
    value = branch.value(repository, backup)
    if value is not None:
        branch.remove(repository, backup, value)
    if session is None or session.branch is None or session.base is None:
        return
    ref = f"refs/heads/{session.branch}"
    tip = branch.value(repository, ref)
    if tip is None:
        return
    if tip == session.base and not commits_of(repository, session) and _checked_out_nowhere(repository, ref):
        branch.remove(repository, ref, tip)
        return
    kept.append(
        Text(
            "branch {name} stays; remove it with git branch -D {name}",
            "保留分支 {name}；可用 git branch -D {name} 删除",
        ).format(name=session.branch)
    )


def _checked_out_nowhere(repository: Repository, ref: str) -> bool:
    out = git.run(repository.top, "worktree", "list", "--porcelain")
    return f"branch {ref}".encode() not in out.split(b"\n")


def _recent_file() -> Path:
    from platformdirs import user_state_path

    return user_state_path("npufuse") / "recent.json"


def _recent_folders() -> Iterator[Path]:
    try:
        found = json.loads(_recent_file().read_bytes())
    except (OSError, ValueError):
        return
    for one in found if isinstance(found, list) else []:
        if isinstance(one, str) and (Path(one) / places.STATE_FILE).is_file():
            yield Path(one)
