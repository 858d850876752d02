"""The whole way, by keyboard, over a recorded loop."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from conftest import MakeApp, idle, on_screen, text_of, the_loop, type_text, until
from fake_loop import FakeDoors
from npufuse_tui.screens.dialogs import Ask, Tell
from npufuse_tui.screens.help import Help
from npufuse_tui.screens.page import Page
from npufuse_tui.screens.palette import Palette

from npufuse_tui.errors import KeptSafe
from npufuse_tui.language import Text, set_language
from npufuse_tui.model import Conclusion, Decision, Stage, TaskState

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_from_home_to_report(make_app: MakeApp, doors: FakeDoors, size: tuple[int, int], language: str) -> None:
    set_language(language)
    app = make_app(path=None)
    async with app.run_test(size=size) as pilot:
        await on_screen(pilot, "home")
        await pilot.press("enter")
        await on_screen(pilot, "candidates")
        await pilot.press("a", "a")
        decided = {one.candidate: one.decision for one in the_loop(doors).session.approvals}
        assert decided == {"9f3a1c27": Decision.APPROVED, "51be7704": Decision.APPROVED}
        await pilot.press("g")
        await on_screen(pilot, "checkpoint")
        await idle(pilot)
        assert the_loop(doors).session.stage is Stage.CANDIDATES
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("enter")  # the field is empty: nothing is confirmed
        assert the_loop(doors).session.stage is Stage.CANDIDATES
        await type_text(pilot, "approve")
        await pilot.press("enter")
        await on_screen(pilot, "run")
        assert the_loop(doors).session.stage is Stage.APPLY
        await type_text(pilot, "python train.py")
        await pilot.press("f5")
        await on_screen(pilot, "board")
        await until(pilot, lambda: the_loop(doors).session.stage is Stage.REPORT)
        await idle(pilot)
        session = the_loop(doors).session
        assert [one.conclusion for one in session.tasks] == [Conclusion.ADOPT, Conclusion.REJECT]
        assert session.launch is not None and session.launch.command == "python train.py"
        await pilot.press("g")
        await on_screen(pilot, "report")
        await idle(pilot)
        told = app.screen.query_one(Page).text
        assert "index.html" in told
        assert "git merge --no-ff npufuse/" in told
        await pilot.press("q")
    assert app._exit


async def test_going_back_loses_nothing(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("a", "down", "x")
        await pilot.press("slash")
        await type_text(pilot, "decoder")
        await pilot.press("enter")
        await pilot.press("escape")
        await on_screen(pilot, "home")
        await pilot.press("enter")  # the first entry goes on with the open session
        await on_screen(pilot, "candidates")
        assert "2 shown" in text_of(app)
        assert len(doors.loops) == 1
        assert len(the_loop(doors).session.approvals) == 2


async def test_escape_walks_back_through_all_stages(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("a", "g")
        await on_screen(pilot, "checkpoint")
        await idle(pilot)
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("y")
        await on_screen(pilot, "run")
        await pilot.press("escape")
        await on_screen(pilot, "checkpoint")
        assert "confirmed" in text_of(app)
        await pilot.press("escape")
        await on_screen(pilot, "candidates")
        await pilot.press("a")
        assert "confirmed at the checkpoint" in text_of(app)


async def test_cancel_has_the_focus_in_the_confirmation(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("a", "g")
        await on_screen(pilot, "checkpoint")
        await idle(pilot)
        for key in ("enter", "g", "escape"):
            await pilot.press("g")
            await until(pilot, lambda: isinstance(app.screen, Ask))
            await pilot.press(key)
            assert the_loop(doors).session.stage is Stage.CANDIDATES
            if isinstance(app.screen, Ask):  # the key that asked does nothing
                await pilot.press("escape")
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("right", "enter")
        await on_screen(pilot, "run")


async def test_a_key_that_does_nothing_says_so(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("J")
        assert "J does nothing here" in text_of(app)
        await pilot.press("u")
        assert "no decision to take back" in text_of(app)


async def test_help_and_palette(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        assert "Approve the candidate" in text_of(app)
        await pilot.press("escape")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, Palette))
        await type_text(pilot, "reject")
        await pilot.press("enter")
        await until(pilot, lambda: bool(the_loop(doors).session.approvals))
        assert the_loop(doors).session.approvals[0].decision is Decision.REJECTED


async def test_language_and_theme_switch_live(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("a", "f12")
        await pilot.pause()
        assert "候选项" in text_of(app) and "已批准" in text_of(app)
        await pilot.press("escape")
        await on_screen(pilot, "home")
        assert "扫描此文件夹" in text_of(app)
        first = app.theme
        await pilot.press("f11")
        assert app.theme != first


async def test_engine_errors_are_told_and_nothing_is_lost(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        the_loop(doors).fail["decide"] = KeptSafe(Text("the file changed since the scan", "文件已变化"))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Tell))
        assert "the file changed since the scan" in text_of(app)
        assert "Nothing is lost" in text_of(app)
        await pilot.press("escape")
        the_loop(doors).fail["check"] = RuntimeError("a mistake of ours")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Tell))
        assert "a mistake of ours" in text_of(app)
        await pilot.press("enter")
        await pilot.press("a")
        assert len(the_loop(doors).session.approvals) == 1


async def test_disk_full_is_told(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        the_loop(doors).fail["decide"] = OSError(28, "No space left on device")
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Tell))
        assert "No space left on device" in text_of(app)


@pytest.mark.parametrize(
    "sentence", [Text("the session is held by process 12", "会话被占用"), Text("/gone does not exist", "/gone 不存在")]
)
async def test_a_session_that_cannot_be_opened(make_app: MakeApp, doors: FakeDoors, sentence: Text) -> None:
    doors.error = KeptSafe(sentence)
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, Tell))
        assert sentence.en in text_of(app)
        await pilot.press("escape")
        await on_screen(pilot, "home")


async def test_too_small_and_back(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert "Too small" in text_of(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "candidates" in text_of(app) and "Too small" not in text_of(app)


async def test_quit_while_a_run_goes_on_asks_first(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app(command="python train.py")
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("a", "g")
        await on_screen(pilot, "checkpoint")
        await idle(pilot)
        await pilot.press("g", "y")
        await on_screen(pilot, "run")
        the_loop(doors).hold.clear()
        await pilot.press("f5")
        await on_screen(pilot, "board")
        await until(pilot, lambda: bool(app.live.runs))
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("q")  # the key that asked does not confirm
        assert not app._exit
        await pilot.press("y")
        await until(pilot, lambda: app._exit)
    assert "cancel" in the_loop(doors).calls
    assert all(one.state is not TaskState.CONCLUDED for one in the_loop(doors).session.tasks)


async def test_resume_goes_where_it_stopped(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    loop = doors.make()
    loop.scan()
    loop.decide(("9f3a1c27",), Decision.APPROVED)
    loop.confirm()
    doors.make = lambda: loop
    app = make_app(resume="")
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "run")


async def test_sigterm_leaves_in_order(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await on_screen(pilot, "candidates")
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        await until(pilot, lambda: app._exit)
