"""The loop as questions and answers, line by line: for screen readers, slow lines and terminals that cannot draw.

It asks what the screens ask, over the same `Loop`, and draws nothing: no colours, no cursor movements, no boxes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from npufuse_tui.errors import ExitCode, NpufuseError
from npufuse_tui.events import (
    CandidateChecked,
    Committed,
    Event,
    Message,
    RunFinished,
    RunStarted,
    ScanProgress,
    StepRead,
    TaskChanged,
)
from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Candidate, Conclusion, Decision, Launch, Severity, Stage, Task, Verdict
from npufuse_tui.screens import marks
from npufuse_tui.screens.clean import clean, clean_lines

if TYPE_CHECKING:
    from npufuse_tui.loop import Loop

WORD = "approve"
_EVERY = 20  # steps of a run between two lines about it


class Leave(Exception):
    """The person wants to leave, or there are no more answers."""


class Plain:
    """One walk through the loop. `answers` is read line by line, `out` is written line by line."""

    def __init__(self, answers: TextIO, out: TextIO) -> None:
        self._answers, self._out = answers, out

    def say(self, line: str = "") -> None:
        print(line, file=self._out, flush=True)

    def ask(self, question: str) -> str:
        """The next line that is typed. Raises Leave for q and at the end of the input."""
        print(f"{question} ", end="", file=self._out, flush=True)
        line = self._answers.readline()
        if not line or line.strip().lower() in ("q", "quit"):
            raise Leave
        return line.strip()

    def choose(self, question: str, words: dict[str, str]) -> str:
        """One of the keys of `words`, asked until it is one of them."""
        choices = ", ".join(f"{key} {word}" for key, word in words.items())
        while True:
            answer = self.ask(f"{question} [{choices}]").lower()
            if answer in words:
                return answer
            self.say(tr("Please answer one of: {keys}.", keys=", ".join(words)))

    def listen(self, event: Event) -> None:
        """Tell events in words; of many alike, only some."""
        if isinstance(event, Message):
            self.say(clean(str(event.text)))
        elif isinstance(event, ScanProgress) and event.done == event.total:
            self.say(
                tr(
                    "{done} of {total} files read, {found} candidates.",
                    done=event.done,
                    total=event.total,
                    found=event.found,
                )
            )
        elif isinstance(event, CandidateChecked) and event.candidate.check is not None:
            state = marks.CHECK.get(event.candidate.check.status, marks.CHECK["skipped"])
            self.say(
                f"{event.done}/{event.total} {event.candidate.rule} {clean(event.candidate.file)}: {tr(state.word)}"
            )
        elif isinstance(event, RunStarted):
            self.say(tr("Run {label} started: {command}", label=event.label, command=clean(event.command)))
        elif isinstance(event, StepRead) and event.metric.step % _EVERY == 0:
            loss = "-" if event.metric.loss is None else f"{event.metric.loss:.4f}"
            self.say(tr("{label}: step {step}, loss {loss}", label=event.label, step=event.metric.step, loss=loss))
        elif isinstance(event, RunFinished):
            self.say(tr("Run {label}: {ended}.", label=event.label, ended=event.ended))
        elif isinstance(event, TaskChanged):
            self.say(f"{event.task.rule} {event.task.id}: {tr(marks.STATE[event.task.state].word)}")
        elif isinstance(event, Committed):
            self.say(tr("Commit {commit} on {branch}.", commit=event.commit[:12], branch=event.branch))

    # the stages

    def walk(self, loop: Loop, command: str | None, python: str | None) -> int:
        """Go through what is still to be done; the exit code."""
        if loop.session.stage is Stage.SCAN:
            loop.scan(self.listen)
        if loop.session.stage in (Stage.CANDIDATES, Stage.CHECKPOINT):
            confirmed = self.candidates(loop) and self.checkpoint(loop)
            if not confirmed:
                return ExitCode.DONE
        if loop.session.stage in (Stage.APPLY, Stage.VERIFY):
            self.run(loop, command, python)
        return self.report(loop)

    def candidates(self, loop: Loop) -> bool:
        """Ask about each candidate; False when there is none to ask about."""
        scan = loop.session.scan
        found = scan.candidates if scan else ()
        self.say(trn("{count} candidate", "{count} candidates", len(found)))
        if not found:
            for rule in scan.rules if scan else ():
                self.say(f"{rule.id}: {clean(str(rule.reason))}")
            return False
        for number, one in enumerate(found, 1):
            decided = {had.candidate for had in loop.session.approvals}
            if one.id not in decided:
                self.candidate(loop, one, f"{number}/{len(found)}")
        return True

    def candidate(self, loop: Loop, one: Candidate, place: str) -> None:
        """Tell one candidate and take the decision."""
        self.say()
        where = f"{clean(one.file)}:{one.start_line}-{one.end_line} {clean(one.qualname)}"
        self.say(f"{place} {one.rule} -> {one.api} {where}")
        self.say(f"{tr(marks.VERDICT[one.verdict].word)}: {clean(str(one.reason))}")
        for risk in one.risks:
            at = f" ({tr('line {line}', line=risk.line)})" if risk.line else ""
            self.say(f"{tr(marks.SEVERITY[risk.severity].word)} {risk.code}: {clean(str(risk.message))}{at}")
        if one.verdict is Verdict.REFUSED:
            return
        words = {
            "a": tr("Approve"),
            "x": tr("Reject"),
            "d": tr("Diff"),
            "c": tr("Check"),
            "n": tr("later"),
            "q": tr("Quit"),
        }
        while True:
            answer = self.choose(tr("What about it?"), words)
            if answer == "d":
                for line in clean_lines(one.diff or ""):
                    self.say(line)
            elif answer == "c":
                loop.check((one.id,), self.listen)
            else:
                decision = {"a": Decision.APPROVED, "x": Decision.REJECTED}.get(answer)
                if decision is not None:
                    loop.decide((one.id,), decision)
                return

    def checkpoint(self, loop: Loop) -> bool:
        """Tell what will be edited and ask once more; True when it is confirmed."""
        approved = {had.candidate for had in loop.session.approvals if had.decision is Decision.APPROVED}
        self.say()
        if not approved:
            self.say(tr("Nothing is approved, so nothing is edited."))
            return False
        plan = loop.plan()
        for refusal in plan.refusals:
            self.say(f"{tr('This cannot be applied yet:')} {clean(str(refusal.reason))}")
        if plan.refusals:
            return False
        self.say(tr("On the branch {branch}, from {base}:", branch=plan.branch, base=(plan.base or "-")[:12]))
        for edit in plan.edits:
            gate = f" [{clean(edit.gate.expression)}]" if edit.gate else ""
            self.say(f"  {edit.rule} {', '.join(map(clean, edit.files))}{gate}")
        found = loop.session.scan.candidates if loop.session.scan else ()
        dangers = [
            (one, risk) for one in found if one.id in approved for risk in one.risks if risk.severity is Severity.DANGER
        ]
        for one, risk in dangers:
            self.say(f"{tr('danger')}: {one.rule} {clean(one.file)}:{one.start_line} {risk.code}")
        word = WORD if dangers else "yes"
        if self.ask(tr("Type {word} to confirm:", word=word)) != word:
            self.say(tr("Not confirmed; nothing is edited."))
            return False
        loop.confirm()
        return True

    def run(self, loop: Loop, command: str | None, python: str | None) -> None:
        """Ask for the launch command when it is missing, then edit and verify."""
        if command is not None:
            loop.set_launch(Launch(command, python))
        if loop.session.launch is None:
            before = loop.remembered_launch
            if before is not None:
                self.say(tr("Empty takes the one of last time: {command}", command=clean(before.command)))
            typed = self.ask(tr("Launch command:"))
            while not typed and before is None:
                typed = self.ask(tr("Launch command:"))
            loop.set_launch(Launch(typed, python) if typed or before is None else before)
        if loop.session.stage is Stage.APPLY:
            loop.apply(self.listen)
        loop.verify(None, self.listen)

    def report(self, loop: Loop) -> int:
        """Tell the conclusions and where the reports are."""
        self.say()
        for task in loop.session.tasks:
            self.say(self._conclusion(task))
        paths = loop.write_reports()
        self.say(tr("Reports: {path}", path=str(paths.index)))
        adopted = [task for task in loop.session.tasks if task.commit]
        if adopted and loop.session.branch:
            self.say(f"git merge --no-ff {loop.session.branch}")
        done = loop.session.tasks and all(task.conclusion is Conclusion.ADOPT for task in loop.session.tasks)
        return ExitCode.DONE if done else ExitCode.ANSWER_IS_NO

    def _conclusion(self, task: Task) -> str:
        word = marks.CONCLUSION[task.conclusion].word if task.conclusion else marks.STATE[task.state].word
        reason = f": {clean(str(task.reason))}" if task.reason else ""
        return f"{task.rule} {task.id}: {tr(word)}{reason}"


def run(
    path: str | None,
    resume: str | None = None,
    command: str | None = None,
    python: str | None = None,
    open_loop: Callable[[], Loop] | None = None,
) -> int:
    """Walk through the loop on standard input and output; the exit code. Errors are said by the caller."""
    marks.use_ascii(True)
    plain = Plain(sys.stdin, sys.stdout)
    loop = (open_loop or _opener(path, resume, python))()
    try:
        plain.say(
            tr(
                "Session {id} of {root}. q leaves at any question; nothing is lost.",
                id=loop.session.id,
                root=loop.session.root,
            )
        )
        return plain.walk(loop, command, python)
    except Leave:
        plain.say()
        plain.say(
            tr(
                "Session {id} of {root}: npufuse --resume {id} goes on with it.",
                id=loop.session.id,
                root=loop.session.root,
            )
        )
        return ExitCode.DONE
    except NpufuseError:
        plain.say(tr("Nothing is lost: the session is saved after every step."))
        raise
    finally:
        loop.close()


def _opener(path: str | None, resume: str | None, python: str | None) -> Callable[[], Loop]:
    def make() -> Loop:
        from npufuse_tui.loop import Loop, LoopOptions

        place = Path(path or ".").expanduser()
        options = LoopOptions(python=python)
        return Loop.start(place, options) if resume is None else Loop.resume(place, resume or None, options)

    return make
