"""The whole loop over one session: what the command line and the screens call. See docs/architecture.md."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npufuse_tui.errors import KeptSafe, MachineLacks, NpufuseError, WrongInput
from npufuse_tui.events import Applied, Committed, Listener, Message, TaskChanged, ignore
from npufuse_tui.language import Text
from npufuse_tui.model import (
    Candidate,
    Conclusion,
    Decision,
    Gate,
    Launch,
    ScanResult,
    Session,
    Stage,
    Task,
    TaskState,
    Verdict,
)
from npufuse_tui.workspace import decisions, sessions
from npufuse_tui.workspace.store import SessionStore

if TYPE_CHECKING:
    from npufuse_tui.report.session_report import ReportPaths as ReportPaths
    from npufuse_tui.verify.verifier import VerifyOptions
    from npufuse_tui.workspace.apply_plan import ApplyPlan
    from npufuse_tui.workspace.worktrees import Worktrees


NO_LAUNCH = Text(
    "there is no launch command, so nothing can be run: give the command that trains or runs the model, with --run",
    "没有启动命令，无法运行：请用 --run 给出训练或运行模型的命令",
)


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


class Loop:
    """One session, held by this process from `start` or `resume` until `close`.

    Long calls block the thread that they are called on and tell their progress through `listen`. `cancel`, `skip` and
    `session` may be used from any thread. Every change is on disk before the call that made it returns. Errors are
    those of `npufuse_tui.errors`: WrongInput, MachineLacks, KeptSafe.
    """

    def __init__(self, store: SessionStore, options: LoopOptions, interrupted: tuple[str, ...] = ()) -> None:
        self.store, self.options, self.interrupted = store, options, interrupted
        self._who: str | None = None
        self._cancelled = threading.Event()
        self._control: Any = None

    @classmethod
    def start(cls, path: str | Path, options: LoopOptions | None = None) -> Loop:
        """A new session over a folder or a file. Raises WrongInput when the path is not there."""
        loop = cls(SessionStore.create(Path(path)), options or LoopOptions())
        sessions.remember(loop.store.folder)
        if loop.options.launch is not None:
            loop.set_launch(loop.options.launch)
        return loop

    @classmethod
    def resume(cls, path: str | Path, session_id: str | None = None, options: LoopOptions | None = None) -> Loop:
        """Go on with a session; None: the newest one that belongs to the path.

        What was running when it stopped is ended, marked interrupted, and named in `interrupted`. Raises WrongInput
        when there is no such session, KeptSafe when another process holds it.
        """
        store = SessionStore.open(sessions.find(Path(path), session_id))
        try:
            stopped = tuple(dict.fromkeys(one.step for one in store.journal.interrupted()))
            if stopped:
                _end_survivors(store)
            store.journal.note("resumed", interrupted=list(stopped))
            loop = cls(store, options or LoopOptions(), stopped)
            store.change(_as_interrupted)
            sessions.remember(store.folder)
            if loop.options.launch is not None:
                loop.set_launch(loop.options.launch)
        except BaseException:
            store.close()
            raise
        return loop

    @property
    def session(self) -> Session:
        """The state now; replaced whole on each change, saved before it is shown."""
        return self.store.session

    # scan and proof

    def scan(self, listen: Listener = ignore) -> Session:
        """Look for candidates; stage → CANDIDATES. Decisions about candidates that are still the same are kept."""
        from npufuse_tui.scan.scanner import ScanOptions, scan

        decisions.demand_open(self.session)
        ask = self.options
        with self.store.journal.step("scan") as told:
            result = scan(
                Path(self.session.root),
                ScanOptions(ask.rules, ask.include, ask.exclude, ask.jobs, ask.use_cache, ask.target, ask.extra_rules),
                listen,
            )
            result = self._with_own(result)
            told["candidates"] = len(result.candidates)
            return self.store.change(
                lambda session: replace(
                    session,
                    scan=result,
                    base=result.commit,
                    stage=Stage.CANDIDATES,
                    approvals=decisions.carried_over(session, result),
                )
            )

    def check(self, candidate_ids: Sequence[str] | None = None, listen: Listener = ignore) -> Session:
        """The executable proof of the candidates (None: all that are not refused), in a child; `cancel` stops it."""
        from npufuse_tui.proof.check import ProofOptions, check
        from npufuse_tui.proof.interpreter import find_python

        session = self.session
        if candidate_ids is None:
            found = session.scan.candidates if session.scan else ()
            chosen = [one for one in found if one.verdict is not Verdict.REFUSED]
        else:
            chosen = decisions.candidates_of(session, candidate_ids)
        if not chosen:
            return session
        self._cancelled.clear()
        with self.store.journal.step("check", candidates=len(chosen)):
            options = ProofOptions(
                python=find_python(self.options.python, session.launch, self.store.root),
                backend=self.options.backend,
                torch_npu=self.options.torch_npu,
                extra_rules=tuple(Path(one) for one in self.options.extra_rules),
                cancelled=self._cancelled.is_set,
            )
            checked = {one.id: one for one in check(chosen, options, listen)}
            return self.store.change(lambda now: _without_refused(_with_candidates(now, checked)))

    # decisions

    def decide(self, candidate_ids: Sequence[str], decision: Decision | None, note: str = "") -> Session:
        """Approve, reject, or (None) take decisions back.

        Raises WrongInput for an id that is none, KeptSafe for an approval of a refused candidate, or once the
        checkpoint is confirmed.
        """
        return decisions.decide(self.store, candidate_ids, decision, note, self._decider())

    def approve_recommended(self) -> Session:
        """Approve every recommended candidate that has no decision yet; `undo` takes all of them back at once."""
        decided = {one.candidate for one in self.session.approvals}
        found = self.session.scan.candidates if self.session.scan else ()
        ids = [one.id for one in found if one.verdict is Verdict.RECOMMENDED and one.edit and one.id not in decided]
        return self.decide(ids, Decision.APPROVED) if ids else self.session

    def undo(self) -> Session:
        """Take back the last decision that stands, of this run or one before. Raises WrongInput when there is none."""
        return decisions.undo(self.store)

    def note(self, candidate_id: str, text: str) -> Session:
        """A note of the person's on a candidate; an empty one takes it away.

        Raises WrongInput for an id that is none.
        """
        decisions.candidates_of(self.session, [candidate_id])
        return self.store.change(lambda session: _with_note(session, candidate_id, text))

    def edit_replacement(self, candidate_id: str, text: str) -> Candidate:
        """The person's own fused branch instead of the candidate's; an approval and a check before it are void.

        Returns the candidate as it is now (replacement, edit, diff). Raises WrongInput when the text does not compile.
        """
        from npufuse_tui.workspace.own_replacement import with_own_replacement

        decisions.demand_open(self.session)
        candidate = decisions.candidates_of(self.session, [candidate_id])[0]
        own = with_own_replacement(candidate, text, self._sources(candidate))
        self._exchange(own, {decisions.OWN + candidate_id: text})
        return own

    def choose_gate(self, candidate_id: str, gate: Gate) -> Candidate:
        """Another of the gates that the candidate offers; an approval and a check before it are void.

        Returns the candidate as it is now. Raises WrongInput for a gate that it does not offer.
        """
        from npufuse_tui.workspace.other_gate import with_gate

        decisions.demand_open(self.session)
        candidate = decisions.candidates_of(self.session, [candidate_id])[0]
        if gate == candidate.gate:
            return candidate
        changed = with_gate(candidate, gate, self._sources(candidate))
        self._exchange(changed, {})
        return changed

    def to_checkpoint(self) -> Session:
        """Stage → CHECKPOINT: the person looks at what will be edited; decisions are still open."""
        decisions.demand_open(self.session)
        return self.store.update(stage=Stage.CHECKPOINT)

    def confirm(self) -> Session:
        """The checkpoint: approvals are frozen; stage → APPLY. Raises WrongInput when nothing is approved."""
        if self.session.stage in (Stage.APPLY, Stage.VERIFY, Stage.REPORT):
            return self.session
        approved = [one.candidate for one in self.session.approvals if one.decision is Decision.APPROVED]
        if not approved:
            raise WrongInput(
                Text(
                    "nothing is approved, so there is nothing to confirm: approve at least one candidate",
                    "尚未批准任何候选项，无法确认：请至少批准一个",
                )
            )
        session = self.store.update(stage=Stage.APPLY)
        self.store.journal.note("confirmed", candidates=approved, who=self._decider())
        return session

    def reopen(self) -> Session:
        """Back from a confirmed checkpoint to the candidates. Raises KeptSafe once an apply has begun."""
        if self.session.stage is Stage.APPLY and self.session.branch is None:
            self.store.journal.note("reopened")
            return self.store.update(stage=Stage.CANDIDATES)
        decisions.demand_open(self.session)
        return self.session

    # apply and verify

    def set_launch(self, launch: Launch) -> Session:
        """The launch command; also remembered for the next session of the same repo.

        Raises WrongInput for an empty one.
        """
        if not launch.command.strip():
            raise WrongInput(
                Text(
                    "the launch command is empty: give the command that trains or runs the model, with --run",
                    "启动命令为空：请用 --run 给出训练或运行模型的命令",
                )
            )
        if launch.steps < 1:
            raise WrongInput(
                Text("{steps} steps cannot be run: give 1 or more", "无法运行 {steps} 步：请给出 1 或更多").format(
                    steps=launch.steps
                )
            )
        return self.store.update(launch=launch)

    @property
    def remembered_launch(self) -> Launch | None:
        """The launch command of an earlier session of the same repo: a proposal, never used unasked."""
        return sessions.remembered_launch(Path(self.session.root), self.session.id)

    def plan(self) -> ApplyPlan:
        """What will be edited, where, under which gates; refusals with their mends. Writes nothing in the repo.

        The rule for untracked entries is put into the session folder, so that the person can change it.
        """
        from npufuse_tui.workspace import links
        from npufuse_tui.workspace.planning import make_plan

        links.write_rule(self.store.folder)
        return make_plan(self.store, self.options.branch)

    def apply(self, listen: Listener = ignore) -> Session:
        """The backup ref, the branch, and one worktree a candidate with its edit in it; stage → VERIFY.

        Raises KeptSafe with the first refusal of the plan. After an interruption only what was not done is done again.
        """
        from npufuse_tui.workspace import branch, originals

        if self.session.stage not in (Stage.APPLY, Stage.VERIFY):
            raise KeptSafe(
                Text("nothing was confirmed yet: confirm the approvals first", "尚未确认批准：请先确认批准的候选项")
            )
        with self.store.journal.step("apply"):
            plan = self.plan()
            if plan.refusals:
                raise KeptSafe(plan.refusals[0].reason)
            for note in plan.notes:
                listen(Message(note))
            repository, base = self.store.repository, plan.base
            assert repository is not None and base is not None
            if self.session.branch is None:
                originals.keep(self.store.folder, plan.sources.values())
                self._demand_free(plan.branch)
                self.store.update(branch=plan.branch, base=base)
            with self.store.journal.step("branch", name=plan.branch, base=base):
                branch.create(repository, branch.backup_ref(self.session.id), base)
                if branch.value(repository, f"refs/heads/{plan.branch}") is None:
                    made = [one.commit for one in self.session.tasks if one.commit and repository.commit(one.commit)]
                    branch.create(repository, f"refs/heads/{plan.branch}", made[-1] if made else base)
            trees = self.worktrees()
            trees.baseline()
            for one in plan.edits:
                with self.store.journal.step("edit", candidate=one.candidate, digest=one.edit.digest):
                    tree = trees.candidate(one.candidate)
                listen(Applied(one.candidate, str(tree)))
            there = {one.id: one for one in self.session.tasks}
            tasks = tuple(there.get(one.candidate, Task(one.candidate, one.rule)) for one in plan.edits)
            return self.store.update(stage=Stage.VERIFY, tasks=tasks)

    def worktrees(self) -> Worktrees:
        """The worktrees of the session. Raises KeptSafe where there is no commit to make any of."""
        from npufuse_tui.workspace.worktrees import Worktrees

        return Worktrees(self.store)

    def verify(self, options: VerifyOptions | None = None, listen: Listener = ignore) -> Session:
        """Operator, loss and speed check of every task that has no conclusion; passing ones are committed one by one.

        Stage → REPORT when every task has a conclusion. Without a launch command each task becomes BLOCKED, with that
        reason, and the stage stays VERIFY.
        """
        from npufuse_tui.verify.control import Control
        from npufuse_tui.verify.verifier import verify
        from npufuse_tui.workspace.worktrees import BRANCH

        if self.session.stage is Stage.APPLY:
            self.apply(listen)
        if self.session.stage not in (Stage.VERIFY, Stage.REPORT):
            raise KeptSafe(
                Text("nothing was applied yet: confirm the approvals first", "尚未应用任何修改：请先确认批准的候选项")
            )
        if self.session.launch is None:
            return self._blocked(listen)
        self.store.change(_unblocked)
        self._control = Control()
        if options is None:
            options = self.verify_options()
        with self.store.journal.step("verify"):
            self.commit_passing(listen)
            self._note_environment(options)
            try:
                verify(
                    self.store,
                    options,
                    listen,
                    self._control,
                    worktrees=self.worktrees(),
                    commit=lambda task_id: self.commit_passing(listen, task_id),
                )
            finally:
                self._control = None
                self.commit_passing(listen)
                with suppress(NpufuseError, OSError):
                    self.worktrees().release(BRANCH)  # so that the person can check the branch out
            if self.session.tasks and all(one.conclusion is not None for one in self.session.tasks):
                self.store.update(stage=Stage.REPORT)
        return self.session

    def _note_environment(self, options: VerifyOptions) -> None:
        """Write down, for the reports, with what the runs are made."""
        from npufuse_tui.proof.interpreter import find_python, probe

        python = probe(find_python(options.python, self.session.launch, self.store.root))
        seen = {"python": f"{python.version} ({python.path})", "torch": python.torch, "torch_npu": python.torch_npu}
        seen["device"] = "NPU" if python.npu else None
        notes = {f"environment.{name}": value for name, value in seen.items() if value is not None}
        self.store.update(notes={**self.session.notes, **notes})

    def verify_options(self, candidates: Sequence[str] = ()) -> VerifyOptions:
        """The options of a verification as the session was opened with; `candidates` empty: all."""
        from npufuse_tui.verify.verifier import VerifyOptions

        return VerifyOptions(
            backend=self.options.backend,
            python=self.options.python,
            torch_npu=self.options.torch_npu,
            candidates=tuple(candidates),
            extra_rules=tuple(Path(one) for one in self.options.extra_rules),
        )

    def cancel(self, task_id: str | None = None) -> None:
        """Stop the task (None: whatever long call is going on), with all its processes. From any thread.

        Returns at once.
        """
        if task_id is None:
            self._cancelled.set()
        control = self._control
        if control is not None:
            control.cancel(task_id)

    def skip(self, task_id: str) -> None:
        """Do not run the task in this verification; it can be retried."""
        control = self._control
        if control is not None:
            control.skip(task_id)

    def retry(self, task_id: str, steps: int | None = None) -> Session:
        """Set a task back to pending, with another number of steps if given; this or the next `verify` runs it.

        Raises WrongInput for an id that is none, KeptSafe for a task that has been committed.
        """
        task = next((one for one in self.session.tasks if one.id == task_id), None)
        if task is None:
            raise WrongInput(Text("there is no task {id} in this session", "本会话中没有任务 {id}").format(id=task_id))
        if task.commit is not None:
            raise KeptSafe(
                Text(
                    "{id} passed and is committed as {commit}: there is nothing to retry",
                    "{id} 已通过并提交为 {commit}：无需重试",
                ).format(id=task_id, commit=task.commit[:12])
            )
        if self._control is not None:
            self._control.retry(task_id, steps)
            return self.session
        launch = self.session.launch
        if steps is not None and launch is not None:
            self.set_launch(replace(launch, steps=steps))
        self.store.journal.note("retry", candidate=task_id, steps=steps)
        self.store.put_task(Task(task.id, task.rule))
        return self.store.update(stage=Stage.VERIFY)

    # what is left behind

    def write_reports(self, listen: Listener = ignore, folder: Path | None = None) -> ReportPaths:
        """The identification report (Markdown, HTML) and a validation report for each task."""
        from npufuse_tui.report.session_report import write_reports

        try:
            return write_reports(
                self.session, self.store.folder, output=folder, listen=listen, torch_npu=self.options.torch_npu
            )
        except OSError as error:
            raise MachineLacks(
                Text(
                    "the reports cannot be written ({why}): make {folder} writable, or choose another with --output",
                    "无法写入报告（{why}）：请使 {folder} 可写，或用 --output 换一个位置",
                ).format(why=error.strerror or error, folder=folder or self.store.folder)
            ) from error

    def pull_request_text(self) -> str:
        """Markdown for the pull request of the branch: what was replaced, what was measured, what was left out."""
        from npufuse_tui.report.pull_request import pull_request_text

        return pull_request_text(self.session)

    def clean_up(self) -> None:
        """Remove the worktrees; branch, backup ref and reports stay."""
        from npufuse_tui.workspace.worktrees import remove_worktrees

        if self.store.repository is not None:
            with self.store.journal.step("clean up"):
                remove_worktrees(self.store.repository, self.store.folder)

    def close(self) -> None:
        """Give the lock back; may be called twice. Nothing is lost."""
        self.store.close()

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    # how it is done

    def _decider(self) -> str:
        if self._who is None:
            self._who = decisions.who_decides(self.store.repository)
        return self._who

    def _sources(self, candidate: Candidate) -> dict[str, bytes]:
        """The files that the candidate edits, under any gate, as they are now. Raises KeptSafe when one is gone."""
        edits = [
            *(candidate.edit.files if candidate.edit else ()),
            *(one for gate in candidate.gates for one in gate.files),
        ]
        try:
            return {one.file: (self.store.root / one.file).read_bytes() for one in edits}
        except OSError as error:
            raise KeptSafe(
                Text(
                    "{file} cannot be read any more ({why}): scan again", "无法再读取 {file}（{why}）：请重新扫描"
                ).format(file=candidate.file, why=error.strerror or error)
            ) from error

    def _exchange(self, candidate: Candidate, notes: dict[str, str]) -> None:
        """Put another form of a candidate in its place; what was decided about the one before does not hold for it."""

        def exchanged(session: Session) -> Session:
            changed = _with_candidates(session, {candidate.id: candidate})
            approvals = tuple(one for one in session.approvals if one.candidate != candidate.id)
            return replace(changed, approvals=approvals, notes={**session.notes, **notes})

        self.store.change(
            exchanged, lambda old: tuple(one for one in old if all(two.candidate != candidate.id for two in one))
        )
        self.store.journal.note(
            "changed", candidate=candidate.id, digest=candidate.edit.digest if candidate.edit else None
        )

    def _with_own(self, scan: ScanResult) -> ScanResult:
        """The scan with the person's own replacements in the candidates that are there still.

        The others are forgotten.
        """
        from npufuse_tui.workspace.own_replacement import with_own_replacement

        notes = {name: text for name, text in self.session.notes.items() if name.startswith(decisions.OWN)}
        own: dict[str, Candidate] = {}
        for one in scan.candidates:
            if decisions.OWN + one.id in notes:
                with suppress(NpufuseError, OSError, KeyError):
                    own[one.id] = with_own_replacement(one, notes[decisions.OWN + one.id], self._sources(one))
        gone = [name for name in notes if name.removeprefix(decisions.OWN) not in own]
        if gone:
            kept = {name: text for name, text in self.session.notes.items() if name not in gone}
            self.store.update(notes=kept)
        return replace(scan, candidates=tuple(own.get(one.id, one) for one in scan.candidates))

    def _demand_free(self, name: str) -> None:
        """The branch must not be there: one that is, is the person's."""
        from npufuse_tui.workspace import branch

        repository = self.store.repository
        if repository is not None and branch.value(repository, f"refs/heads/{name}") is not None:
            raise KeptSafe(
                Text(
                    "branch {name} exists: choose another name with --branch",
                    "分支 {name} 已存在：请用 --branch 换一个名字",
                ).format(name=name)
            )

    def _blocked(self, listen: Listener) -> Session:
        """Every task without a conclusion waits for the launch command."""
        for task in self.session.tasks:
            if task.conclusion is None:
                blocked = replace(task, state=TaskState.BLOCKED, conclusion=Conclusion.BLOCKED, reason=NO_LAUNCH)
                self.store.put_task(blocked)
                listen(TaskChanged(blocked))
        return self.session

    def commit_passing(self, listen: Listener = ignore, task_id: str | None = None) -> None:
        """Commit each task (or this one) that is to be adopted and has no commit, in the order of the tasks."""
        from npufuse_tui.workspace.commit_message import commit_message

        session = self.session
        found = {one.id: one for one in session.scan.candidates} if session.scan else {}
        for task in session.tasks:
            if task.conclusion is not Conclusion.ADOPT or task.commit is not None or task.id not in found:
                continue
            if task_id not in (None, task.id):
                continue
            candidate = found[task.id]
            try:
                with self.store.journal.step("commit", candidate=task.id) as told:
                    commit = self.worktrees().commit(candidate, commit_message(candidate, task, session))
                    told["commit"] = commit
            except KeptSafe as error:
                listen(Message(error.text))
                continue
            done = replace(task, commit=commit)
            self.store.put_task(done)
            listen(Committed(task.id, commit, session.branch or ""))
            listen(TaskChanged(done))


def _with_note(session: Session, name: str, text: str) -> Session:
    notes = {key: value for key, value in session.notes.items() if key != name}
    return replace(session, notes={**notes, **({name: text} if text else {})})


def _with_candidates(session: Session, changed: dict[str, Candidate]) -> Session:
    if session.scan is None:
        return session
    scan = replace(session.scan, candidates=tuple(changed.get(one.id, one) for one in session.scan.candidates))
    return replace(session, scan=replace(scan, rules=_counted(scan)))


def _without_refused(session: Session) -> Session:
    """An approval of what turned out to be wrong does not stand."""
    refused = {one.id for one in session.scan.candidates if one.verdict is Verdict.REFUSED} if session.scan else set()
    kept = tuple(
        one for one in session.approvals if not (one.decision is Decision.APPROVED and one.candidate in refused)
    )
    return session if session.stage in (Stage.APPLY, Stage.VERIFY, Stage.REPORT) else replace(session, approvals=kept)


def _counted(scan: ScanResult) -> tuple[Any, ...]:
    """The rows of the rules with the verdicts counted again: a failed proof refuses a candidate."""

    def count(rule: str, verdict: Verdict) -> int:
        return sum(one.rule == rule and one.verdict is verdict for one in scan.candidates)

    return tuple(
        replace(
            one,
            recommended=count(one.id, Verdict.RECOMMENDED),
            caution=count(one.id, Verdict.CAUTION),
            refused=count(one.id, Verdict.REFUSED),
        )
        for one in scan.rules
    )


def _unblocked(session: Session) -> Session:
    """Tasks that waited for a launch command are pending again."""
    return replace(
        session,
        tasks=tuple(Task(one.id, one.rule) if one.reason == NO_LAUNCH else one for one in session.tasks),
    )


def _end_survivors(store: SessionStore) -> None:
    """Runs that went on when the process that started them died: nobody reads them any more, and they hold devices."""
    from npufuse_tui.verify import processes

    processes.end(f"{store.folder}/")


def _as_interrupted(session: Session) -> Session:
    """The state of a session whose process is gone: what was running is interrupted."""
    running = (TaskState.OP_CHECK, TaskState.LOSS_CHECK, TaskState.SPEED_CHECK)
    reason = Text("npufuse ended while this was running; it will be run again", "npufuse 在其运行时结束；将重新运行")
    tasks = tuple(
        replace(one, state=TaskState.INTERRUPTED, reason=reason) if one.state in running else one
        for one in session.tasks
    )
    baseline = session.baseline
    if baseline is not None and baseline.status == "running":
        baseline = replace(baseline, status="pending", reason=reason)
    return replace(session, tasks=tasks, baseline=baseline)
