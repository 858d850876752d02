"""The whole loop over one session: what the command line and the screens call. See docs/architecture.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npufuse_tui.events import Listener, ignore
from npufuse_tui.model import Candidate, Decision, Launch, Session

if TYPE_CHECKING:
    from npufuse_tui.verify.verifier import VerifyOptions
    from npufuse_tui.workspace.apply_plan import ApplyPlan
    from npufuse_tui.workspace.store import SessionStore


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """How a session works.

    Attributes:
        rules, include, exclude, jobs, use_cache, target, extra_rules: of the scan; see `ScanOptions`.
        python: the interpreter of the user's model (`--python`); None finds one.
        launch: the command that trains or runs the model (`--run`); may come later by `set_launch`.
        branch: the name of the branch for passing edits; None: npufuse/<session>.
        backend: "auto", "npu" or "emulated".
        torch_npu: the version to emulate; None for the installed one, else the newest known.
    """

    rules: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    jobs: int | None = None
    use_cache: bool = True
    target: str = "both"
    extra_rules: tuple[str, ...] = ()
    python: str | None = None
    launch: Launch | None = None
    branch: str | None = None
    backend: str = "auto"
    torch_npu: str | None = None


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where the reports are: folder, the identification report in both formats, one validation report a candidate."""

    folder: Path
    identification_markdown: Path
    identification_html: Path
    validation: tuple[tuple[str, Path], ...] = ()
    pull_request: Path | None = None


class Loop:
    """One session, held by this process from `start` or `resume` until `close`.

    Long calls block the thread that they are called on and tell their progress through `listen`. `cancel`, `skip` and
    `session` may be used from any thread. Every change is on disk before the call that made it returns. Errors are
    those of `npufuse_tui.errors`: WrongInput, MachineLacks, KeptSafe.
    """

    store: SessionStore

    @classmethod
    def start(cls, path: str | Path, options: LoopOptions | None = None) -> Loop:
        """A new session over a folder or a file. Raises WrongInput when the path is not there."""
        raise NotImplementedError

    @classmethod
    def resume(cls, path: str | Path, session_id: str | None = None, options: LoopOptions | None = None) -> Loop:
        """Go on with a session; None: the newest one that belongs to the path. Raises WrongInput when there is none, KeptSafe
        when another process holds it. What was running when it stopped is marked interrupted.
        """
        raise NotImplementedError

    @property
    def session(self) -> Session:
        """The state now; replaced whole on each change, saved before it is shown."""
        raise NotImplementedError

    @property
    def interrupted(self) -> tuple[str, ...]:
        """The steps that had begun and not ended when the session stopped before this resume ("scan", "apply", …)."""
        raise NotImplementedError

    def scan(self, listen: Listener = ignore) -> Session:
        """Look for candidates; stage → CANDIDATES. Decisions about candidates that are still the same are kept."""
        raise NotImplementedError

    def check(self, candidate_ids: Sequence[str] | None = None, listen: Listener = ignore) -> Session:
        """The executable proof of the candidates (None: all that are not refused), in a child. `cancel(None)` stops it."""
        raise NotImplementedError

    def decide(self, candidate_ids: Sequence[str], decision: Decision | None, note: str = "") -> Session:
        """Approve, reject, or (None) take decisions back. Raises WrongInput for an id that is none, KeptSafe for an approval of a
        refused candidate, or once the checkpoint is confirmed.
        """
        raise NotImplementedError

    def approve_recommended(self) -> Session:
        """Approve every recommended candidate that has no decision yet, as one decision that `undo` takes back whole."""
        raise NotImplementedError

    def undo(self) -> Session:
        """Take back the last decision that was not taken back yet, in this run or one before. Raises WrongInput when there is none."""
        raise NotImplementedError

    def edit_replacement(self, candidate_id: str, text: str) -> Candidate:
        """The person's own fused branch instead of the candidate's; compiled and proven like any other, kept with the approval.

        Returns the candidate as it is now (replacement, edit, diff). Raises WrongInput when the text does not compile.
        """
        raise NotImplementedError

    def own_candidate(self, candidate_id: str) -> Candidate:
        """The candidate, with the person's own replacement where there is one. Raises WrongInput for an id that is none."""
        raise NotImplementedError

    def confirm(self) -> Session:
        """The checkpoint: approvals are frozen; stage → APPLY. Raises WrongInput when nothing is approved."""
        raise NotImplementedError

    def reopen(self) -> Session:
        """Back from a confirmed checkpoint to the candidates, while nothing has been applied yet. Raises KeptSafe afterwards."""
        raise NotImplementedError

    def set_launch(self, launch: Launch) -> Session:
        """The launch command; also remembered for the next session of the same repo. Raises WrongInput for an empty one."""
        raise NotImplementedError

    @property
    def remembered_launch(self) -> Launch | None:
        """The launch command of an earlier session of the same repo: a proposal, never used unasked."""
        raise NotImplementedError

    def plan(self) -> ApplyPlan:
        """What will be edited, where, under which gates; refusals with their mends. Writes nothing."""
        raise NotImplementedError

    def apply(self, listen: Listener = ignore) -> Session:
        """The backup ref, the branch, and one worktree a candidate with its edit in it; stage → VERIFY. Raises KeptSafe with the first
        refusal of the plan. Does again only what was not done when it is called after an interruption.
        """
        raise NotImplementedError

    def verify(self, options: VerifyOptions | None = None, listen: Listener = ignore) -> Session:
        """Operator, loss and speed check of every task that has no conclusion; passing ones are committed one by one; stage → REPORT.

        Without a launch command each task becomes BLOCKED, with that reason, and the stage stays VERIFY.
        """
        raise NotImplementedError

    def cancel(self, task_id: str | None = None) -> None:
        """Stop the task (None: whatever long call is going on), with all its processes. From any thread; returns at once."""
        raise NotImplementedError

    def skip(self, task_id: str) -> None:
        """Do not run the task in this verification; it can be retried."""
        raise NotImplementedError

    def retry(self, task_id: str, steps: int | None = None) -> Session:
        """Set a task back to pending, with another number of steps if given; the next `verify` runs it."""
        raise NotImplementedError

    def write_reports(self, listen: Listener = ignore, folder: Path | None = None) -> ReportPaths:
        """The identification report (Markdown and HTML) and a validation report for each task, in the session folder or `folder`."""
        raise NotImplementedError

    def pull_request_text(self) -> str:
        """Markdown for the pull request of the branch: what was replaced, what was measured, what was left out."""
        raise NotImplementedError

    def clean_up(self) -> None:
        """Remove the worktrees; branch, backup ref and reports stay."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the lock back; may be called twice. Nothing is lost."""
        raise NotImplementedError

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
