"""The work trees that npufuse makes: the baseline, one for each candidate, and one on the session's branch.

They lie in the session's folder. A worktree counts only when the marker beside it says that it was finished; anything
else is made anew, so that an interruption at any moment leaves nothing half done.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from npufuse_tui.durable import sync_folder, write_durably
from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Edit, FileEdit, Session
from npufuse_tui.workspace import branch, git, links, originals
from npufuse_tui.workspace.planning import approved_of, other_worktrees
from npufuse_tui.workspace.repository import Repository
from npufuse_tui.workspace.store import SessionStore

FOLDER = "worktrees"
BASELINE, BRANCH = "baseline", "branch"
SESSION_TRAILER, EDIT_TRAILER = "Npufuse-Session", "Npufuse-Edit"


class Worktrees:
    """The worktrees of one session. Every path that is given back is whole: made now, or made before and still good.

    Thread-safe. Raises KeptSafe where something of the person's stands in the way, GitFailed where git fails.
    """

    def __init__(self, store: SessionStore) -> None:
        if store.repository is None or store.session.base is None:
            raise KeptSafe(
                Text(
                    "there is no commit to make worktrees of: apply in a git repository",
                    "没有可用于创建工作树的提交：请在 git 仓库中应用",
                )
            )
        self._store, self._repository, self._base = store, store.repository, store.session.base
        self._guard = threading.RLock()

    @property
    def folder(self) -> Path:
        return self._store.folder_for(FOLDER)

    def baseline(self) -> Path:
        """The base, unmodified."""
        return self._whole(BASELINE, ())

    def candidate(self, candidate_id: str) -> Path:
        """The base with the edit of this one candidate in it."""
        return self._whole(candidate_id, self.edit_of(candidate_id).files)

    def combined(self, candidate_ids: Sequence[str], name: str = "combined") -> Path:
        """The base with the edits of several candidates in it."""
        return self._whole(name, tuple(file for one in candidate_ids for file in self.edit_of(one).files))

    def root_in(self, worktree: Path) -> Path:
        """The folder of a worktree that is the root of the scan: where the launch command runs."""
        return worktree / self._store.root.relative_to(self._repository.top)

    def edit_of(self, candidate_id: str) -> Edit:
        """The edit that was approved. Raises WrongInput for a candidate that is not approved."""
        for candidate, approval in approved_of(self._store):
            edit = approval.edit or candidate.edit
            if candidate.id == candidate_id and edit is not None:
                return edit
        raise WrongInput(
            Text("{id} is no approved candidate of this session", "{id} 不是本会话中已批准的候选项").format(
                id=candidate_id
            )
        )

    def commit(self, candidate: Candidate, message: str) -> str:
        """Commit a candidate's edit on the session's branch, on top of those that are there; the commit.

        `message` is the commit's message without trailers. A candidate that is on the branch already is not committed
        again.
        """
        with self._guard:
            edit = self.edit_of(candidate.id)
            there = self._on_branch()
            if edit.digest in there:
                return there[edit.digest]
            adopted = [one for one in self._approved_edits() if one.digest in there]
            tree = self._branch_tree()
            names = []
            for file in {one.file for one in edit.files}:
                path = self.root_in(tree) / file
                names.append(path.relative_to(tree).as_posix())
                _replace(path, self._composed(file, [*adopted, edit]))
            git.run(tree, "add", "--", *sorted(names))
            self._check_staged(tree, names)
            text = self._store.folder / "message.txt"
            trailers = f"{SESSION_TRAILER}: {self._store.session.id}\n{EDIT_TRAILER}: {edit.digest}\n"
            write_durably(text, f"{message.strip()}\n\n{trailers}".encode("utf-8", "replace"))
            git.run(
                tree,
                "commit",
                "--quiet",
                "--no-verify",
                "--cleanup=whitespace",
                f"--file={text}",
                environment=self._identity(),
            )
            return git.text(git.run(tree, "rev-parse", "HEAD"))

    def release(self, name: str) -> None:
        """Remove one worktree (a candidate's id, "baseline"); it is made anew when it is asked for again."""
        with self._guard:
            remove_worktree(self._repository, self.folder / name)

    def remove_all(self) -> None:
        """Remove every worktree of the session. The branch stays."""
        with self._guard:
            remove_worktrees(self._repository, self._store.folder)

    # how it is done

    def _approved_edits(self) -> list[Edit]:
        return [edit for one, approval in approved_of(self._store) if (edit := approval.edit or one.edit) is not None]

    def _whole(self, name: str, edits: Sequence[FileEdit]) -> Path:
        with self._guard:
            tree = self.folder / name
            wanted = {"base": self._base, "edits": [repr(one) for one in edits]}
            if _marked(tree) == wanted and self._as_wanted(tree, edits):
                return tree
            remove_worktree(self._repository, tree)
            git.run(self._repository.top, "worktree", "add", "--quiet", "--detach", os.fspath(tree), self._base)
            self._furnish(tree)
            self._write(tree, edits)
            write_durably(_marker(tree), json.dumps(wanted).encode())
            return tree

    def _as_wanted(self, tree: Path, edits: Sequence[FileEdit]) -> bool:
        """Whether the files that matter hold what they should (a run may have changed them)."""
        if not (tree / ".git").is_file():
            return False
        try:
            return all((self.root_in(tree) / file).read_bytes() == data for file, data in self._contents(edits).items())
        except OSError:
            return False

    def _contents(self, edits: Sequence[FileEdit]) -> dict[str, bytes]:
        """The bytes of every file that the session edits, with these edits in it or none."""
        from npufuse_tui.rewrite.compose import compose

        found: dict[str, bytes] = {}
        for one in (file for edit in self._approved_edits() for file in edit.files):
            if one.file not in found:
                own = [edit for edit in edits if edit.file == one.file]
                before = originals.original(self._store.folder, one)
                found[one.file] = compose(before, own) if own else before
        return found

    def _furnish(self, tree: Path) -> None:
        """Make the worktree what the checkout is:

        the files to edit byte for byte, and what git does not track by the rule.
        """
        for file, data in self._contents(()).items():
            path = self.root_in(tree) / file
            if path.is_symlink() or not path.is_file():
                raise KeptSafe(
                    Text("{file} is no plain file in the commit {base}", "{file} 在提交 {base} 中不是普通文件").format(
                        file=file, base=self._base[:10]
                    )
                )
            if path.read_bytes() != data:  # line ends or filters that the checkout was made with
                _replace(path, data)
        rule = links.rule_of(self._store.folder)
        names = links.entries(self._repository, rule, other_worktrees(self._repository))
        links.bring(self._repository, tree, names, rule)
        modules = [one.path for one in self._repository.tree(self._base) if one.kind == "commit"]
        links.bring_submodules(self._repository, tree, modules)

    def _write(self, tree: Path, edits: Sequence[FileEdit]) -> None:
        from npufuse_tui.rewrite.apply import write_edits

        if edits:
            write_edits(self.root_in(tree).resolve(), edits)

    def _composed(self, file: str, edits: Sequence[Edit]) -> bytes:
        from npufuse_tui.rewrite.compose import compose
        from npufuse_tui.rewrite.fallback import prove

        own = [one for edit in edits for one in edit.files if one.file == file]
        before = originals.original(self._store.folder, own[0])
        after = compose(before, own)
        prove(before, after, own)
        return after

    def _branch_name(self) -> str:
        name = self._store.session.branch
        if name is None or branch.value(self._repository, f"refs/heads/{name}") is None:
            raise KeptSafe(
                Text(
                    "the session's branch {name} is gone: make it again with git branch {name} {base}",
                    "会话的分支 {name} 已不存在：请用 git branch {name} {base} 重新创建",
                ).format(name=name or "?", base=self._base[:12])
            )
        return name

    def _on_branch(self) -> dict[str, str]:
        """Digest of an edit → the commit that holds it."""
        return branch.commits_with(self._repository, self._base, self._branch_name(), EDIT_TRAILER)

    def _branch_tree(self) -> Path:
        """A clean worktree on the session's branch, made anew each time: nothing of an interrupted commit is in it."""
        tree = self.folder / BRANCH
        remove_worktree(self._repository, tree)
        git.run(self._repository.top, "worktree", "add", "--quiet", os.fspath(tree), self._branch_name())
        return tree

    def _check_staged(self, tree: Path, names: Sequence[str]) -> None:
        """What will be committed is these files and nothing else."""
        staged = git.names(git.run(tree, "diff", "--cached", "--name-only", "-z", "--no-ext-diff", "--no-renames"))
        if sorted(staged) != sorted(set(names)):
            raise KeptSafe(
                Text(
                    "the commit would hold {found} and not {wanted}, so it is not made: look at .gitattributes "
                    "and .gitignore",
                    "该提交将包含 {found} 而不是 {wanted}，因此未提交：请检查 .gitattributes 和 .gitignore",
                ).format(found=", ".join(staged) or "-", wanted=", ".join(names))
            )

    def _identity(self) -> dict[str, str]:
        who = self._repository.identity()
        return {
            "GIT_AUTHOR_NAME": who.name,
            "GIT_AUTHOR_EMAIL": who.email,
            "GIT_COMMITTER_NAME": who.name,
            "GIT_COMMITTER_EMAIL": who.email,
        }


def remove_worktrees(repository: Repository, session_folder: Path) -> None:
    """Remove all the worktrees of a session, whatever state they are in."""
    folder = session_folder / FOLDER
    if folder.is_dir():
        for tree in sorted(folder.iterdir()):
            if tree.is_dir():
                remove_worktree(repository, tree)
        _remove_folder(folder)


def remove_worktree(repository: Repository, tree: Path) -> None:
    """Remove one worktree: its marker first, then its files, then what git knows of it. Links are never followed."""
    _marker(tree).unlink(missing_ok=True)
    if os.path.lexists(tree):
        _remove_folder(tree)
    git.answer(repository.top, "worktree", "remove", "--force", "--force", os.fspath(tree))


def _marker(tree: Path) -> Path:
    return tree.with_name(f"{tree.name}.ready")


def _marked(tree: Path) -> object:
    try:
        return json.loads(_marker(tree).read_bytes())
    except (OSError, ValueError):
        return None


def _remove_folder(folder: Path) -> None:
    def again(function: object, path: str, problem: object) -> None:
        """A run may have left folders that cannot be written."""
        parent = Path(path).parent
        for place in (parent, Path(path)):
            if place.is_relative_to(folder) and not place.is_symlink() and place.is_dir():
                place.chmod(place.stat().st_mode | stat.S_IRWXU)
        if Path(path).is_dir() and not Path(path).is_symlink():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    shutil.rmtree(folder, onerror=again)


def _replace(path: Path, data: bytes) -> None:
    from npufuse_tui.rewrite.apply import replace_file

    replace_file(path, data)
    sync_folder(path.parent)


def commits_of(repository: Repository, session: Session) -> dict[str, str]:
    """Digest of an edit → the commit on the session's branch that holds it; empty where there is no branch."""
    if session.branch is None or session.base is None:
        return {}
    if branch.value(repository, f"refs/heads/{session.branch}") is None:
        return {}
    return branch.commits_with(repository, session.base, session.branch, EDIT_TRAILER)
