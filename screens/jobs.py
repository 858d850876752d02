"""Engine work in threads: what it tells goes through one queue, which the app empties a few times a second."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from npufuse_tui.errors import NpufuseError
from npufuse_tui.events import Event, Listener


@dataclass(frozen=True, slots=True)
class JobEnded(Event):
    """A piece of engine work has ended: with a result, a sentence for the person, or a mistake of ours."""

    job: str
    result: object = None
    error: NpufuseError | None = None
    trace: str = ""
    then: Callable[[object], None] | None = None
    otherwise: Callable[[], None] | None = None


class Jobs:
    """Which work is going on. Threads only put events into the queue; they never touch a widget."""

    def __init__(self) -> None:
        self._queue: deque[Event] = deque()
        self._busy: set[str] = set()

    @property
    def busy(self) -> frozenset[str]:
        return frozenset(self._busy)

    def listen(self, event: Event) -> None:
        """The listener that the engine gets; called on its threads."""
        self._queue.append(event)

    def prepare(
        self,
        job: str,
        work: Callable[[Listener], object],
        then: Callable[[object], None] | None = None,
        otherwise: Callable[[], None] | None = None,
    ) -> Callable[[], None]:
        """The function to run in a thread. Raises ValueError when that job is going on already."""
        if job in self._busy:
            raise ValueError(f"the job {job} is going on already")
        self._busy.add(job)

        def run() -> None:
            try:
                result = work(self.listen)
            except NpufuseError as error:
                self._queue.append(JobEnded(job, error=error, then=then, otherwise=otherwise))
            except BaseException as error:
                detail = "".join(traceback.format_exception(error))
                self._queue.append(JobEnded(job, trace=detail, then=then, otherwise=otherwise))
            else:
                self._queue.append(JobEnded(job, result, then=then, otherwise=otherwise))

        return run

    def ended(self, job: str) -> None:
        self._busy.discard(job)

    def drain(self, most: int = 20_000) -> list[Event]:
        """The events since the last time, oldest first."""
        taken: list[Event] = []
        while self._queue and len(taken) < most:
            taken.append(self._queue.popleft())
        return taken
