"""The board: the run as it goes on, its log, its curves, cancel, skip and retry."""

from __future__ import annotations

from pathlib import Path

from conftest import MakeApp, idle, on_screen, text_of, type_text, until
from fake_loop import FakeDoors, FakeLoop
from npufuse_tui.screens.board import BoardScreen
from npufuse_tui.screens.curves import CurvesView
from npufuse_tui.screens.dialogs import Ask, Prompt
from npufuse_tui.screens.log_view import LogView
from textual.pilot import Pilot

from npufuse_tui.app import NpufuseApp
from npufuse_tui.model import Decision, Launch, Stage, TaskState


def applied(folder: Path) -> FakeLoop:
    """A session that stands before its runs."""
    loop = FakeLoop(folder)
    loop.scan()
    loop.decide(("9f3a1c27", "51be7704"), Decision.APPROVED)
    loop.confirm()
    loop.set_launch(Launch("python train.py"))
    loop.apply()
    return loop


async def at_board(pilot: Pilot[None], app: NpufuseApp) -> BoardScreen:
    await on_screen(pilot, "board")
    assert isinstance(app.screen, BoardScreen)
    return app.screen


async def test_a_run_as_it_goes_on(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    loop = applied(tmp_path)
    doors.make = lambda: loop
    app = make_app(resume="")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await at_board(pilot, app)
        loop.hold.clear()
        await pilot.press("c")
        await until(pilot, lambda: "step 30" in text_of(app))
        log = screen.query_one(LogView)
        await until(pilot, lambda: log.log_file is not None and len(log.log_file) >= 30)
        await pilot.press("g")
        assert "Wait until the verification has ended" in text_of(app)
        assert not screen.pinned and screen.rows.chosen is None  # the cursor is with the baseline that runs
        await pilot.press("2")
        await until(pilot, lambda: "loss: baseline and fused" in text_of(app))
        loop.hold.set()
        await until(pilot, lambda: loop.session.stage is Stage.REPORT)
        await idle(pilot)
        assert "2 of 2 concluded" in text_of(app)
        await pilot.press("home", "down")
        await until(pilot, lambda: "60 steps compared" in screen.query_one(CurvesView).summary())
        await pilot.press("3")
        assert "speed was not measured" in text_of(app)


async def test_log_search_follow_and_first_error(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    loop = applied(tmp_path)
    loop.verify()
    doors.make = lambda: loop
    log = tmp_path / "logs" / "base-baseline-2.log"
    lines = [f"step {number}" for number in range(500)]
    lines[123] = "RuntimeError: \x1b[31mout of memory\x1b]0;title\x07"
    log.write_text("\n".join(lines) + "\n", "utf-8")
    app = make_app(resume="")
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "report")
        await idle(pilot)
        await pilot.press("escape")
        screen = await at_board(pilot, app)
        view = screen.query_one(LogView)
        await until(pilot, lambda: view.log_file is not None and len(view.log_file) == 500)
        await until(pilot, lambda: "step 499" in text_of(app))
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: view.found == 123)
        assert "out of memory" in text_of(app) and "\x1b" not in text_of(app)
        assert not view.follow
        await pilot.press("slash")
        await type_text(pilot, "step 45")
        await pilot.press("enter")
        await until(pilot, lambda: view.found == 450)
        await pilot.press("n")
        await until(pilot, lambda: view.found == 451)
        await pilot.press("p")
        await until(pilot, lambda: view.found == 450)
        await pilot.press("f")
        await until(pilot, lambda: "step 499" in text_of(app))
        await pilot.press("y")
        assert "step 499" in app.clipboard


async def test_cancel_then_go_on(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    loop = applied(tmp_path)
    doors.make = lambda: loop
    app = make_app(resume="")
    async with app.run_test(size=(100, 30)) as pilot:
        await at_board(pilot, app)
        loop.hold.clear()
        await pilot.press("c")
        await until(pilot, lambda: bool(app.live.runs))
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("y")
        await idle(pilot)
        assert loop.session.stage is Stage.VERIFY
        await pilot.press("c")
        await until(pilot, lambda: loop.session.stage is Stage.REPORT)


async def test_retry_with_other_steps_and_skip(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    loop = applied(tmp_path)
    loop.verify()
    doors.make = lambda: loop
    app = make_app(resume="")
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "report")
        await idle(pilot)
        await pilot.press("escape")
        await at_board(pilot, app)
        await pilot.press("r")
        assert "No task is under the cursor" in text_of(app)
        await pilot.press("down", "down", "R")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("backspace", "backspace", "9", "enter")
        assert "at least 50" in text_of(app)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await pilot.press("enter")
        await until(pilot, lambda: "retry" in loop.calls)
        await until(pilot, lambda: loop.session.stage is Stage.REPORT)
        assert loop.session.tasks[1].state is TaskState.LOSS_FAILED
        await idle(pilot)
        await pilot.press("s")
        assert "This task has ended" in text_of(app) and "skip" not in loop.calls


async def test_skip_what_still_waits(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    loop = applied(tmp_path)
    doors.make = lambda: loop
    app = make_app(resume="")
    async with app.run_test(size=(100, 30)) as pilot:
        await at_board(pilot, app)
        await pilot.press("down", "s")
        assert "skip" in loop.calls
