"""What the tests of the screens share: the app over a recorded loop, in a known language, size and environment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_loop import FakeDoors, FakeLoop
from npufuse_tui.screens import marks
from textual.pilot import Pilot

from npufuse_tui.app import NpufuseApp, Start
from npufuse_tui.language import set_language


@pytest.fixture(autouse=True)
def known_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No developer's editor, language or terminal leaks in."""
    for name in ("EDITOR", "VISUAL", "NO_COLOR", "SSH_CONNECTION", "NPUFUSE_LANG"):
        monkeypatch.delenv(name, raising=False)
    set_language("en")
    marks.use_ascii(False)
    yield
    set_language("en")
    marks.use_ascii(False)


@pytest.fixture
def doors(tmp_path: Path) -> FakeDoors:
    return FakeDoors(tmp_path)


MakeApp = Callable[..., NpufuseApp]


@pytest.fixture
def make_app(doors: FakeDoors) -> MakeApp:
    def make(**start: object) -> NpufuseApp:
        start.setdefault("path", "/work/tiny-llm")
        return NpufuseApp(doors, Start(**start))  # type: ignore[arg-type]

    return make


async def until(pilot: Pilot[None], holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Let the app go on until something holds; fails after that many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not happen within {seconds} s, on {pilot.app.screen}:\n{text_of(pilot.app)}")
        await pilot.pause(0.01)
    await pilot.pause()


def text_of(app: object) -> str:
    """The screen as plain text."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())  # type: ignore[attr-defined]


async def on_screen(pilot: Pilot[None], name: str) -> None:
    """Wait for the screen of a stage."""
    await until(pilot, lambda: getattr(pilot.app.screen, "NAME", "") == name and pilot.app.screen.ready)


async def idle(pilot: Pilot[None]) -> None:
    """Wait until no engine work goes on and its events are taken."""
    await until(pilot, lambda: not pilot.app.busy)  # type: ignore[attr-defined]


async def type_text(pilot: Pilot[None], text: str) -> None:
    """Type as a person would."""
    names = {
        " ": "space",
        ".": "full_stop",
        "-": "minus",
        "/": "slash",
        ":": "colon",
        "=": "equals_sign",
        "_": "underscore",
    }
    await pilot.press(*(names.get(one, one) for one in text))


def the_loop(doors: FakeDoors) -> FakeLoop:
    return doors.loops[-1]
