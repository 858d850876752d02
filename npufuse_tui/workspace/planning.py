"""What an apply will do, and everything that stands against it, before anything is done."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from npufuse_tui.errors import KeptSafe, NpufuseError
from npufuse_tui.language import Text
from npufuse_tui.model import Approval, Candidate, Decision, Edit, FileEdit
from npufuse_tui.workspace import branch, git, links, originals
from npufuse_tui.workspace.apply_plan import ApplyPlan, PlannedEdit, PlanRefusal
from npufuse_tui.workspace.repository import Repository, why_no_repository
from npufuse_tui.workspace.store import SessionStore

SHOWN = 5
"""Names in a note before it says how many more there are."""


def make_plan(store: SessionStore, wanted_branch: str | None = None) -> ApplyPlan:
    """The plan of the session's approvals. Writes nothing.

    Once an apply has begun, the plan is of what it began with.
    """
    session, repository = store.session, store.repository
    approved = approved_of(store)
    begun = session.branch is not None
    refusals = [] if begun else _general(store, repository)
    base = session.base if begun else (repository.head() if repository else None)
    planned: list[PlannedEdit] = []
    files: dict[str, bytes] = {}
    taken: dict[str, list[FileEdit]] = {}
    for candidate, approval in approved:
        try:
            edit = _edit_of(candidate, approval)
            for one in edit.files:
                if one.file not in files:
                    files[one.file] = originals.original(store.folder, one) if begun else _read(store, base, one)
            _try_edit(edit, files, taken)
        except NpufuseError as error:
            refusals.append(PlanRefusal(candidate.id, error.text))
            continue
        planned.append(_planned(candidate, approval, edit, files))
    if not approved:
        refusals.append(
            PlanRefusal(
                None, Text("nothing is approved: approve at least one candidate", "尚未批准任何候选项：请至少批准一个")
            )
        )
    name = session.branch or f"npufuse/{session.id}"
    notes: tuple[Text, ...] = ()
    brought: tuple[str, ...] = ()
    if repository is not None:
        if not begun:
            try:
                name = branch.branch_for(repository, session.id, wanted_branch)
            except NpufuseError as error:
                refusals.append(PlanRefusal(None, error.text))
        brought = links.entries(repository, links.rule_of(store.folder), other_worktrees(repository))
        if base is not None:
            refusals += _room(store, repository, base, len(planned))
            notes = tuple(_notes(store, repository, base, name, taken))
    return ApplyPlan(
        repository=str(repository.top) if repository else None,
        base=base,
        branch=name,
        edits=tuple(planned),
        refusals=tuple(refusals),
        notes=notes,
        links=brought,
        link_rule=str(store.folder / links.RULE_FILE),
        sources={name: files[name] for name in taken},
    )


def approved_of(store: SessionStore) -> list[tuple[Candidate, Approval]]:
    """The approved candidates with their approvals, in the order of the scan."""
    session = store.session
    approvals = {one.candidate: one for one in session.approvals if one.decision is Decision.APPROVED}
    found = session.scan.candidates if session.scan else ()
    return [(one, approvals[one.id]) for one in found if one.id in approvals]


def in_repository(store: SessionStore, file: str) -> str:
    """The name of a file (relative to the root of the scan) relative to the top of the repo."""
    assert store.repository is not None
    return (store.root / file).relative_to(store.repository.top).as_posix()


def _edit_of(candidate: Candidate, approval: Approval) -> Edit:
    from npufuse_tui.rewrite.edit import edit_of

    edit = approval.edit or candidate.edit
    if edit is None:
        raise KeptSafe(
            Text("{id} has no edit to apply: take its approval back", "{id} 没有可应用的修改：请撤回批准").format(
                id=candidate.id
            )
        )
    if approval.digest != edit.digest or edit_of(edit.files).digest != edit.digest:
        raise KeptSafe(
            Text(
                "the edit of {id} in {file} is not the one that was approved: look at its diff and approve it again",
                "{file} 中 {id} 的修改与批准时不同：请查看差异后重新批准",
            ).format(id=candidate.id, file=candidate.file)
        )
    return edit


def _read(store: SessionStore, base: str | None, edit: FileEdit) -> bytes:
    """The file as it lies in the checkout, when it is what was scanned and what the base holds."""
    path = store.root / edit.file
    changed = Text(
        "{file} has changed since the scan, so its approval is void: scan again",
        "{file} 在扫描后已改变，批准失效：请重新扫描",
    ).format(file=edit.file)
    if path.is_symlink() or path.parent.resolve() != path.parent or not path.is_file():
        raise KeptSafe(
            Text(
                "{file} is no plain file of the repo any more: scan again", "{file} 已不是仓库中的普通文件：请重新扫描"
            ).format(file=edit.file)
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KeptSafe(changed) from error
    if hashlib.sha256(data).hexdigest() != edit.sha256:
        raise KeptSafe(changed)
    if store.repository is None or base is None:
        return data  # said once for all, not for each file
    name = in_repository(store, edit.file)
    entry = store.repository.entry(base, name)
    if entry is None or entry.kind != "blob":
        raise KeptSafe(
            Text(
                "{file} is not in the commit that edits start from: git add {file} && git commit, then apply again",
                "{file} 不在修改所基于的提交中：请先 git add {file} && git commit，再应用",
            ).format(file=name)
        )
    if store.repository.object_of(name, path) != entry.object:
        raise KeptSafe(
            Text(
                "{file} has uncommitted changes: commit them (git commit {file}), then apply again; or stash "
                "them and scan again",
                "{file} 有未提交的更改：请先提交（git commit {file}）再应用；或 stash 后重新扫描",
            ).format(file=name)
        )
    return data


def _try_edit(edit: Edit, files: dict[str, bytes], taken: dict[str, list[FileEdit]]) -> None:
    """Compose and prove the edit alone and on top of the others; raises KeptSafe when one of them cannot be done."""
    from npufuse_tui.rewrite.compose import compose
    from npufuse_tui.rewrite.fallback import prove

    for one in edit.files:
        for edits in ([one], [*taken.get(one.file, []), one]):
            prove(files[one.file], compose(files[one.file], edits), edits)
    for one in edit.files:
        taken.setdefault(one.file, []).append(one)


def _planned(candidate: Candidate, approval: Approval, edit: Edit, files: dict[str, bytes]) -> PlannedEdit:
    from npufuse_tui.rewrite.diff import edits_diff

    return PlannedEdit(
        candidate=candidate.id,
        rule=candidate.rule,
        edit=edit,
        files=tuple(sorted({one.file for one in edit.files})),
        gate=candidate.gate,
        diff=edits_diff({one.file: files[one.file] for one in edit.files}, edit.files),
        own=approval.edit is not None,
    )


def _general(store: SessionStore, repository: Repository | None) -> list[PlanRefusal]:
    """What stands against any edit in this repo."""
    if repository is None:
        return [PlanRefusal(None, why_no_repository(Path(store.session.root)))]
    found: list[Text] = []
    if repository.head() is None:
        found.append(
            Text(
                "the repo {path} has no commit yet, and edits start from one: git add and git commit, then apply again",
                "仓库 {path} 还没有提交，而修改需要从提交开始：请先 git add 并 git commit，再应用",
            ).format(path=repository.top)
        )
    unfinished = repository.unfinished()
    if unfinished is not None:
        found.append(
            Text(
                "a {what} is in progress in {path}: finish it or abort it (git {what} --abort), then apply again",
                "{path} 中有未完成的 {what}：请完成或中止它（git {what} --abort）后再应用",
            ).format(what=unfinished, path=repository.top)
            if unfinished != "bisect"
            else Text(
                "a bisect is in progress in {path}: end it (git bisect reset), then apply again",
                "{path} 中有未完成的 bisect：请结束它（git bisect reset）后再应用",
            ).format(path=repository.top)
        )
    if not repository.can_write():
        found.append(
            Text(
                "the git folder {path} cannot be written, and edits need a branch there: make it writable, or "
                "work in a clone",
                "git 目录 {path} 不可写，而修改需要在其中创建分支：请使其可写，或在克隆中工作",
            ).format(path=repository.common_dir)
        )
    return [PlanRefusal(None, one) for one in found]


def _room(store: SessionStore, repository: Repository, base: str, count: int) -> list[PlanRefusal]:
    """Whether the worktrees fit on the disk, twice over."""
    size = sum(entry.size for entry in repository.tree(base))
    needed, free = 2 * size * (count + 2), shutil.disk_usage(store.folder).free
    if needed <= free:
        return []
    reason = Text(
        "{count} worktrees of {size:.1f} GB do not fit on the disk of {path} ({free:.1f} GB free): free some "
        "space or approve fewer at once",
        "{path} 所在磁盘（剩余 {free:.1f} GB）放不下 {count} 个 {size:.1f} GB 的工作树：请释放空间，或一次少批准一些",
    ).format(count=count + 2, size=size / 1e9, free=free / 1e9, path=store.folder)
    return [PlanRefusal(None, reason)]


def _notes(
    store: SessionStore, repository: Repository, base: str, name: str, taken: dict[str, list[FileEdit]]
) -> list[Text]:
    session = store.session
    found: list[Text] = []
    scanned = session.scan.commit if session.scan else None
    if scanned is not None and scanned != base:
        found.append(
            Text(
                "HEAD has moved since the scan, from {old} to {new}; the files to edit are the same, and edits "
                "start from {new}",
                "扫描后 HEAD 已从 {old} 移动到 {new}；要修改的文件未变，修改将从 {new} 开始",
            ).format(old=scanned[:10], new=base[:10])
        )
    if name not in (f"npufuse/{session.id}", session.branch or ""):
        found.append(Text("the branch is called {name}", "分支名为 {name}").format(name=name))
    own = {in_repository(store, file) for file in taken}
    changed = [one for one in _changed(repository) if one not in own]
    if changed:
        found.append(
            Text(
                "runs use the commit, without your uncommitted changes in {files}",
                "运行基于提交，不包含这些文件中未提交的更改：{files}",
            ).format(files=_some(changed))
        )
    identity = repository.identity()
    if identity.made_up:
        found.append(
            Text(
                "git does not know who you are, so commits are made by {who}; set user.name and user.email to "
                "change that",
                "git 不知道提交者身份，提交将署名 {who}；可设置 user.name 和 user.email",
            ).format(who=identity)
        )
    return found


def _changed(repository: Repository) -> list[str]:
    """Tracked files that differ from HEAD, submodules aside."""
    code, out, _ = git.answer(
        repository.top, "diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all", "HEAD", "--"
    )
    return git.names(out) if code == 0 else []


def other_worktrees(repository: Repository) -> list[Path]:
    """The other work trees of the repo: they are never brought into one of ours."""
    code, out, _ = git.answer(repository.top, "worktree", "list", "--porcelain", "-z")
    if code:
        code, out, _ = git.answer(repository.top, "worktree", "list", "--porcelain")
        out = out.replace(b"\n", b"\0")
    found = [Path(one.removeprefix("worktree ")) for one in git.names(out) if one.startswith("worktree ")]
    return [one for one in found if one != repository.top]


def _some(names: Sequence[str]) -> str:
    more = f" (+{len(names) - SHOWN})" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
