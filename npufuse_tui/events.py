"""What the engine tells while it works. Screens and the command line are two listeners of the same events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npufuse_tui.language import Text
from npufuse_tui.model import Baseline, Candidate, Metric, ScanResult, SkippedFile, Task


@dataclass(frozen=True, slots=True)
class Event:
    """Any event. Listeners tell them apart by class."""


@dataclass(frozen=True, slots=True)
class ScanProgress(Event):
    """`done` of `total` files looked at; `found` candidates so far."""

    done: int
    total: int
    found: int


@dataclass(frozen=True, slots=True)
class CandidateFound(Event):
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class FileSkipped(Event):
    skipped: SkippedFile


@dataclass(frozen=True, slots=True)
class ScanFinished(Event):
    result: ScanResult


@dataclass(frozen=True, slots=True)
class CandidateChecked(Event):
    """The executable proof of one candidate has run; the candidate carries it (and perhaps another verdict)."""

    candidate: Candidate
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Message(Event):
    """One line for the person: what the engine does now."""

    text: Text


@dataclass(frozen=True, slots=True)
class Applied(Event):
    """One approved candidate has been edited in a worktree."""

    candidate: str
    worktree: str


@dataclass(frozen=True, slots=True)
class BaselineChanged(Event):
    baseline: Baseline


@dataclass(frozen=True, slots=True)
class TaskChanged(Event):
    """A task has a new state or result; `task` is the whole of it."""

    task: Task


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """A run of the launch command has started; `task` is None for the baseline. `log` is the file that fills."""

    task: str | None
    label: str
    command: str
    log: str


@dataclass(frozen=True, slots=True)
class StepRead(Event):
    """A training step was read out of the log of a run."""

    task: str | None
    label: str
    metric: Metric


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    task: str | None
    label: str
    ended: str


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A passing candidate became a commit on the session's branch."""

    candidate: str
    commit: str
    branch: str


@dataclass(frozen=True, slots=True)
class ReportWritten(Event):
    path: str


Listener = Callable[[Event], None]
"""Called on the thread that does the work; a listener hands over to its own thread and returns at once."""


def ignore(event: Event) -> None:
    """A listener that does not listen."""
