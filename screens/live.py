"""What the engine's events add up to while it works: the part of the picture that is not in the session yet."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field

from npufuse_tui.events import (
    CandidateChecked,
    CandidateFound,
    Event,
    FileSkipped,
    Message,
    RunFinished,
    RunStarted,
    ScanFinished,
    ScanProgress,
    StepRead,
)
from npufuse_tui.model import Candidate, Metric, SkippedFile

RunKey = tuple[str | None, str]


@dataclass(slots=True)
class Run:
    """A run of the launch command as it goes on. `started` and `ended_at` are monotonic seconds."""

    task: str | None
    label: str
    command: str
    log: str
    started: float
    ended: str | None = None
    ended_at: float | None = None
    metrics: list[Metric] = field(default_factory=list)

    def seconds(self, now: float) -> float:
        return (self.ended_at or now) - self.started


@dataclass(slots=True)
class Live:
    """Folded events. `take` is called on the thread of the screens only."""

    scan: ScanProgress | None = None
    scan_started: float | None = None
    scan_ended: float | None = None
    found: Counter[str] = field(default_factory=Counter)
    skipped: deque[SkippedFile] = field(default_factory=lambda: deque(maxlen=500))
    skipped_count: int = 0
    messages: deque[str] = field(default_factory=lambda: deque(maxlen=200))
    checked: dict[str, Candidate] = field(default_factory=dict)
    checks: tuple[int, int] = (0, 0)
    runs: dict[RunKey, Run] = field(default_factory=dict)
    current: RunKey | None = None

    def take(self, event: Event) -> None:
        """Add one event to the picture."""
        if isinstance(event, StepRead):
            run = self.runs.get((event.task, event.label))
            if run is not None:
                run.metrics.append(event.metric)
        elif isinstance(event, ScanProgress):
            self.scan = event
            self.scan_started = self.scan_started or time.monotonic()
        elif isinstance(event, CandidateFound):
            self.found[event.candidate.rule] += 1
        elif isinstance(event, FileSkipped):
            self.skipped.append(event.skipped)
            self.skipped_count += 1
        elif isinstance(event, ScanFinished):
            self.scan_ended = time.monotonic()
        elif isinstance(event, CandidateChecked):
            self.checked[event.candidate.id] = event.candidate
            self.checks = (event.done, event.total)
        elif isinstance(event, Message):
            self.messages.append(str(event.text))
        elif isinstance(event, RunStarted):
            key = (event.task, event.label)
            self.runs[key] = Run(event.task, event.label, event.command, event.log, time.monotonic())
            self.current = key
        elif isinstance(event, RunFinished):
            run = self.runs.get((event.task, event.label))
            if run is not None:
                run.ended, run.ended_at = event.ended, time.monotonic()

    def begin_scan(self) -> None:
        """Forget the scan before."""
        self.scan, self.scan_started, self.scan_ended = None, time.monotonic(), None
        self.found.clear()
        self.skipped.clear()
        self.skipped_count = 0

    def runs_of(self, task: str | None) -> list[Run]:
        return [run for run in self.runs.values() if run.task == task]
