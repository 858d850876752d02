"""Decisions about candidates: who approved which edit, and the way back from each."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import replace

from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Approval, Candidate, Decision, ScanResult, Session, Stage, Verdict
from npufuse_tui.workspace.journal import now
from npufuse_tui.workspace.repository import Repository
from npufuse_tui.workspace.state import Decided
from npufuse_tui.workspace.store import SessionStore

OWN = "own replacement "
"""What the name of a note begins with that holds the person's own replacement of a candidate."""

UNDO_LIMIT = 500
"""Decisions that can be taken back."""


def who_decides(repository: Repository | None) -> str:
    """The git user, else the user of the machine."""
    if repository is not None:
        identity = repository.identity()
        if not identity.made_up:
            return str(identity)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "?"


def candidates_of(session: Session, ids: Sequence[str]) -> list[Candidate]:
    """The candidates of these ids, in the order given. Raises WrongInput for an id that is none."""
    known = {one.id: one for one in session.scan.candidates} if session.scan else {}
    missing = [one for one in ids if one not in known]
    if missing:
        raise WrongInput(
            Text(
                "there is no candidate {id} in session {session}: npufuse scan shows the ids, and they change "
                "when the code does",
                "会话 {session} 中没有候选项 {id}：可用 npufuse scan 查看 ID；代码改变时 ID 也会改变",
            ).format(id=", ".join(missing), session=session.id)
        )
    return [known[one] for one in dict.fromkeys(ids)]


def demand_open(session: Session) -> None:
    """Raises KeptSafe once the approvals are confirmed."""
    if session.stage in (Stage.APPLY, Stage.VERIFY, Stage.REPORT):
        raise KeptSafe(
            Text(
                "the approvals of session {id} are confirmed and frozen: start a new session to decide again",
                "会话 {id} 的批准已确认并冻结：如需重新决定，请新建会话",
            ).format(id=session.id)
        )


def decide(store: SessionStore, ids: Sequence[str], decision: Decision | None, note: str, who: str) -> Session:
    """Decide, or take decisions back; see `Loop.decide`."""
    when = now()

    def decided(session: Session) -> Session:
        demand_open(session)
        chosen = candidates_of(session, ids)
        if decision is Decision.APPROVED:
            for one in chosen:
                _demand_approvable(one)
        before = {one.candidate: one for one in session.approvals}
        changed = [Decided(one.id, before.get(one.id)) for one in chosen]
        kept = [one for one in session.approvals if one.candidate not in {two.id for two in chosen}]
        new = [_approval(session, one, decision, note, who, when) for one in chosen] if decision is not None else []
        history.append(tuple(changed))
        return replace(session, approvals=(*kept, *new))

    history: list[tuple[Decided, ...]] = []
    session = store.change(decided, lambda old: (*old, *history)[-UNDO_LIMIT:])
    store.journal.note("decided", decision=decision.value if decision else None, candidates=list(ids), who=who)
    return session


def undo(store: SessionStore) -> Session:
    """Take the last decision back; see `Loop.undo`."""

    def undone(session: Session) -> Session:
        demand_open(session)
        if not store.history:
            raise WrongInput(Text("there is no decision to take back", "没有可撤销的决定"))
        last = {one.candidate: one.before for one in store.history[-1]}
        kept = [one for one in session.approvals if one.candidate not in last]
        before = replace(session, approvals=(*kept, *(one for one in last.values() if one is not None)))
        return replace(before, approvals=carried_over(before, session.scan)) if session.scan else before

    session = store.change(undone, lambda old: old[:-1])
    store.journal.note("undone")
    return session


def carried_over(session: Session, scan: ScanResult) -> tuple[Approval, ...]:
    """The decisions that still hold after another scan:

    of candidates that are there with the very edit that was decided on.
    """
    found = {one.id: one for one in scan.candidates}
    return tuple(
        one
        for one in session.approvals
        if one.candidate in found
        and _digest(found[one.candidate]) == one.digest
        and (one.decision is not Decision.APPROVED or found[one.candidate].verdict is not Verdict.REFUSED)
    )


def _demand_approvable(candidate: Candidate) -> None:
    if candidate.verdict is Verdict.REFUSED or candidate.edit is None:
        raise KeptSafe(
            Text(
                "{id} ({rule} in {file}) is refused and cannot be approved: {reason}",
                "{id}（{file} 中的 {rule}）已被拒绝，不能批准：{reason}",
            ).format(id=candidate.id, rule=candidate.rule, file=candidate.file, reason=candidate.reason)
        )


def _approval(session: Session, candidate: Candidate, decision: Decision, note: str, who: str, when: str) -> Approval:
    own = candidate.edit if OWN + candidate.id in session.notes else None
    return Approval(candidate.id, decision, who, when, _digest(candidate), note, own)


def _digest(candidate: Candidate) -> str:
    return candidate.edit.digest if candidate.edit else ""
