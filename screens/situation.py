"""What an action may look at to say whether it can be used now, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass, field

from npufuse_tui.model import Approval, Candidate, Decision, Session, Stage, Task


@dataclass(frozen=True, slots=True)
class Situation:
    """A snapshot of where the person is: the session, what is under the cursor, what the engine is doing."""

    session: Session | None = None
    candidate: Candidate | None = None
    marked: int = 0
    shown: int = 0
    busy: frozenset[str] = frozenset()
    task: Task | None = None
    log: bool = False
    filtered: bool = False
    on_diff: bool = False
    extra: frozenset[str] = field(default_factory=frozenset)

    @property
    def decided(self) -> dict[str, Approval]:
        return {one.candidate: one for one in self.session.approvals} if self.session else {}

    @property
    def approved(self) -> int:
        return sum(one.decision is Decision.APPROVED for one in self.decided.values())

    @property
    def frozen(self) -> bool:
        """The checkpoint lies behind: approvals are what was confirmed."""
        return self.session is not None and self.session.stage in (Stage.APPLY, Stage.VERIFY, Stage.REPORT)
