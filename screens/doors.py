"""What the screens need from outside a session: opening one, the recent ones, the demo. The app brings it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from npufuse_tui.loop import Loop


@dataclass(frozen=True, slots=True)
class Recent:
    """A session that can be gone on with."""

    id: str
    path: str
    when: str
    stage: str
    interrupted: bool = False


class Doors(Protocol):
    """Ways into a session. Each raises the errors of `npufuse_tui.errors` with a sentence for the person."""

    def start(self, path: str) -> Loop: ...

    def resume(self, path: str, session: str | None) -> Loop: ...

    def recent(self) -> list[Recent]: ...

    def demo(self) -> tuple[str, str]:
        """Make the demo's repo; its path and its launch command."""
        ...
