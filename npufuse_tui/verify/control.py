"""What a person may do to a verification while it runs, from any thread."""

from __future__ import annotations

import threading


class Control:
    """Cancel, skip and retry. Every method returns at once; the runs are ended by the threads that run them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._all = False
        self._cancelled: set[str] = set()
        self._skipped: set[str] = set()
        self._again: dict[str, int | None] = {}

    def cancel(self, task: str | None = None) -> None:
        """Stop one task, or (None) the whole verification."""
        with self._guard:
            if task is None:
                self._all = True
            else:
                self._cancelled.add(task)

    def skip(self, task: str) -> None:
        """Do not run the task in this verification, or stop it where it runs."""
        with self._guard:
            self._skipped.add(task)

    def retry(self, task: str, steps: int | None = None) -> None:
        """Run the task again in this verification, once it has ended; with another number of steps if given."""
        with self._guard:
            self._again[task] = steps
            self._cancelled.discard(task)
            self._skipped.discard(task)

    def stopped(self, task: str | None = None) -> bool:
        """Whether the task (None: the baseline) shall not go on."""
        with self._guard:
            return self._all or task in self._cancelled or task in self._skipped

    def skipped(self, task: str) -> bool:
        with self._guard:
            return task in self._skipped and not self._all

    def take_retries(self) -> dict[str, int | None]:
        """The retries asked for since the last time: task → steps or None."""
        with self._guard:
            found, self._again = self._again, {}
            return {} if self._all else found
