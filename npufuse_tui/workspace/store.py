"""The session that this process holds: its state, saved on each change, its journal, its lock and its folders."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from npufuse_tui.durable import write_durably
from npufuse_tui.errors import KeptSafe, MachineLacks, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Session, Stage, Task
from npufuse_tui.workspace import places, state
from npufuse_tui.workspace.journal import Journal, now
from npufuse_tui.workspace.lock import SessionLock
from npufuse_tui.workspace.repository import Repository, open_repository
from npufuse_tui.workspace.state import Decided, State


class SessionStore:
    """One session on disk, held by this process. Thread-safe.

    `session` is the state as it was last saved. `repository` is None where the root is in no git repository.
    """

    def __init__(
        self, folder: Path, saved: State, scan_name: str | None, lock: SessionLock, repository: Repository | None
    ) -> None:
        self.folder, self.repository = folder, repository
        self.journal = Journal(folder / "journal.jsonl")
        self._state, self._scan_name, self._lock = saved, scan_name, lock
        self._guard = threading.RLock()
        self._closed = False

    @classmethod
    def create(cls, root: Path) -> SessionStore:
        """A new session over a folder or file.

        Raises WrongInput when it is not there, MachineLacks when nothing can be written.
        """
        root = root.resolve()
        if not root.exists():
            raise WrongInput(
                Text(
                    "{path} does not exist; give a folder or a Python file",
                    "{path} 不存在；请给出文件夹或 Python 文件",
                ).format(path=root)
            )
        repository = open_repository(root)
        try:
            folder = places.new_session_folder(root, repository)
            lock = SessionLock.take(folder)
            session = Session(
                id=folder.name,
                created=now(),
                root=str(root),
                repository=str(repository.top) if repository else None,
                base=repository.head() if repository else None,
                branch=None,
                stage=Stage.SCAN,
            )
            state.write(folder, State(session), None)
            store = cls(folder, State(session), None, lock, repository)
            store.journal.note("created", root=str(root))
        except OSError as error:
            raise MachineLacks(
                Text(
                    "no session folder can be made ({why}): make the repo's .git or your home folder writable, "
                    "or free some space",
                    "无法创建会话文件夹（{why}）：请使仓库的 .git 或主目录可写，或释放磁盘空间",
                ).format(why=error)
            ) from error
        return store

    @classmethod
    def open(cls, folder: Path) -> SessionStore:
        """Go on with the session in a folder.

        Raises KeptSafe when another process holds it, WrongInput when it cannot be read.
        """
        lock = SessionLock.take(folder)
        try:
            saved, scan_name = state.read(folder)
            store = cls(folder, saved, scan_name, lock, open_repository(Path(saved.session.root)))
            for left in (*folder.glob(".writing-*"), *folder.glob(".linking-*")):
                left.unlink(missing_ok=True)
        except BaseException:
            lock.give_back()
            raise
        return store

    @property
    def session(self) -> Session:
        return self._state.session

    @property
    def root(self) -> Path:
        """The folder that paths of candidates are relative to (the file's own folder when a file was scanned)."""
        session = self.session
        if session.scan is not None:
            return Path(session.scan.root)
        root = Path(session.root)
        return root if root.is_dir() else root.parent

    @property
    def history(self) -> tuple[tuple[Decided, ...], ...]:
        return self._state.history

    def folder_for(self, name: str) -> Path:
        """A folder inside of the session's, made when it is not there: "logs", "metrics", "reports", "worktrees"."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def change(
        self,
        new: Callable[[Session], Session],
        history: Callable[[tuple[tuple[Decided, ...], ...]], tuple[tuple[Decided, ...], ...]] | None = None,
    ) -> Session:
        """Replace the session by what `new` makes of it, and save it before it is shown to anyone.

        Raises MachineLacks when it cannot be written; the state before then stands, on disk and here.
        """
        with self._guard:
            if self._closed:
                raise KeptSafe(
                    Text("session {id} is closed: resume it first", "会话 {id} 已关闭：请先恢复它").format(
                        id=self.session.id
                    )
                )
            old = self._state
            made = State(new(old.session), history(old.history) if history else old.history)
            if made == old:
                return old.session
            try:
                scan_name = self._save_scan(old.session, made.session)
                state.write(self.folder, made, scan_name)
            except OSError as error:
                raise MachineLacks(
                    Text(
                        "the session cannot be saved in {folder} ({why}): free some space or make it writable; "
                        "what was saved before stands",
                        "无法在 {folder} 中保存会话（{why}）：请释放空间或使其可写；之前保存的内容不变",
                    ).format(folder=self.folder, why=error)
                ) from error
            self._state = made
            self._drop_old_scans(scan_name)
            self._write_progress()
            return made.session

    def update(self, **fields: object) -> Session:
        """Replace fields of the session and save it."""
        return self.change(lambda session: replace(session, **fields))  # type: ignore[arg-type]

    def put_task(self, task: Task) -> Session:
        """Put a task in the place of the one with its id, or behind the others, and save."""

        def put(session: Session) -> Session:
            if all(one.id != task.id for one in session.tasks):
                return replace(session, tasks=(*session.tasks, task))
            return replace(session, tasks=tuple(task if one.id == task.id else one for one in session.tasks))

        return self.change(put)

    def close(self) -> None:
        """Give the lock back; may be called twice."""
        with self._guard:
            if not self._closed:
                self._closed = True
                self._lock.give_back()

    def _save_scan(self, old: Session, new: Session) -> str | None:
        if new.scan is None:
            return None
        if new.scan is old.scan and self._scan_name is not None:
            return self._scan_name
        data = state.scan_bytes(new.scan)
        name = state.scan_file(data)
        if not (self.folder / name).is_file():
            write_durably(self.folder / name, data)
        return name

    def _drop_old_scans(self, current: str | None) -> None:
        """Keep the scan of the state and of the state before it."""
        previous, self._scan_name = self._scan_name, current
        if previous == current:
            return
        for path in self.folder.glob("scan-*.json"):
            if path.name not in (current, previous):
                with suppress(OSError):
                    path.unlink()

    def _write_progress(self) -> None:
        """`progress.md` follows the state; that it could not be written loses nothing."""
        from npufuse_tui.report.progress import progress_markdown

        with suppress(OSError):
            write_durably(self.folder / "progress.md", progress_markdown(self.session).encode("utf-8", "replace"))


def remove_folder(folder: Path) -> None:
    """Remove a session's folder. Links in it are removed, never followed."""
    shutil.rmtree(folder, ignore_errors=False)
