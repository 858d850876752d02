"""Pictures of every screen at three sizes in both languages, and of what the themes and NO_COLOR do to them.

`pytest tests/screens/test_snapshots.py --snapshot-update` draws them anew; look at each one that changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeApp, idle, on_screen, the_loop, type_text, until
from fake_loop import FakeDoors, FakeLoop
from npufuse_tui.screens import theme
from npufuse_tui.screens.dialogs import Ask
from npufuse_tui.screens.help import Help
from npufuse_tui.screens.palette import Palette
from textual.pilot import Pilot

from npufuse_tui.language import set_language
from npufuse_tui.model import Decision, Launch, Stage

pytest.importorskip("pytest_textual_snapshot")

Steps = Callable[[Pilot[None], FakeDoors], Awaitable[None]]
SIZES = [(80, 24), (120, 40), (200, 60)]


async def home(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("escape")
    await on_screen(pilot, "home")
    await until(pilot, lambda: len(pilot.app.screen.query_one("#entries").entries) == 5)  # type: ignore[attr-defined]


async def scan(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    pilot.app.go_to("scan")  # type: ignore[attr-defined]
    await on_screen(pilot, "scan")


async def candidates(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("a", "x", "b")


async def risks(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("2")


async def explain(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("3")
    await idle(pilot)


async def check(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("c")
    await idle(pilot)


async def reuse(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("down", "6")


async def split(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("f", "v", "w")


async def checkpoint(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("a", "a", "g")
    await on_screen(pilot, "checkpoint")
    await idle(pilot)


async def confirm(pilot: Pilot[None], doors: FakeDoors) -> None:
    await checkpoint(pilot, doors)
    await pilot.press("g")
    await until(pilot, lambda: isinstance(pilot.app.screen, Ask))


async def run(pilot: Pilot[None], doors: FakeDoors) -> None:
    await confirm(pilot, doors)
    await type_text(pilot, "approve")
    await pilot.press("enter")
    await on_screen(pilot, "run")
    await type_text(pilot, "python train.py")


async def board(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    loop = the_loop(doors)
    loop.decide(("9f3a1c27", "51be7704"), Decision.APPROVED)
    loop.confirm()
    loop.set_launch(Launch("python train.py"))
    pilot.app.go_to("board")  # type: ignore[attr-defined]
    await on_screen(pilot, "board")
    await pilot.press("c")
    await until(pilot, lambda: loop.session.stage is Stage.REPORT)
    await idle(pilot)
    await pilot.press("home", "down")


async def curves(pilot: Pilot[None], doors: FakeDoors) -> None:
    await board(pilot, doors)
    await pilot.press("2")


async def result(pilot: Pilot[None], doors: FakeDoors) -> None:
    await board(pilot, doors)
    await pilot.press("3")


async def report(pilot: Pilot[None], doors: FakeDoors) -> None:
    await board(pilot, doors)
    await pilot.press("g")
    await on_screen(pilot, "report")
    await idle(pilot)


async def help_page(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("f1")
    await until(pilot, lambda: isinstance(pilot.app.screen, Help))


async def palette(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
    await pilot.press("f2")
    await until(pilot, lambda: isinstance(pilot.app.screen, Palette))


SCREENS: tuple[Steps, ...] = (home, scan, candidates, checkpoint, run, board, report)
PARTS: tuple[Steps, ...] = (risks, explain, check, reuse, split, confirm, curves, result, help_page, palette)


@pytest.fixture
def take(snap_compare: Any, make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> Callable[..., bool]:
    def loop() -> FakeLoop:
        made = FakeLoop(tmp_path)
        made.shown = Path("/work/tiny-llm/.git/npufuse/20261201-0400-ab/reports")
        return made

    doors.make = loop

    def compare(steps: Steps, size: tuple[int, int], **start: object) -> bool:
        app = make_app(**start)

        async def before(pilot: Pilot[None]) -> None:
            await steps(pilot, doors)
            app.screen.set_focus(app.screen.focused)
            await pilot.pause()

        return bool(snap_compare(app, terminal_size=size, run_before=before))

    return compare


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("steps", SCREENS, ids=lambda steps: steps.__name__)
def test_screen(take: Callable[..., bool], steps: Steps, size: tuple[int, int], language: str) -> None:
    set_language(language)
    assert take(steps, size)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("steps", PARTS, ids=lambda steps: steps.__name__)
def test_part(take: Callable[..., bool], steps: Steps, language: str) -> None:
    set_language(language)
    assert take(steps, (80, 24))


@pytest.mark.parametrize("name", [one.name for one in theme.THEMES[1:]])
def test_theme(take: Callable[..., bool], name: str) -> None:
    assert take(candidates, (120, 40), theme=name)


def test_ascii(take: Callable[..., bool]) -> None:
    assert take(candidates, (80, 24), ascii=True)


def test_no_color(take: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert take(candidates, (80, 24))


def test_too_small(take: Callable[..., bool]) -> None:
    assert take(too_small, (20, 5))


async def too_small(pilot: Pilot[None], doors: FakeDoors) -> None:
    await on_screen(pilot, "candidates")
