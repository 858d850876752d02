"""The candidates screen: filter, order, groups, marks, tabs, check, edit, gate, notes, ten thousand rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sample
from conftest import MakeApp, idle, on_screen, text_of, the_loop, type_text, until
from fake_loop import FakeDoors, FakeLoop
from npufuse_tui.screens.candidates import CandidatesScreen
from npufuse_tui.screens.dialogs import Ask, EditText, Prompt, Tell
from npufuse_tui.screens.page import Page
from textual.widgets import TextArea

from npufuse_tui.app import NpufuseApp
from npufuse_tui.language import Text
from npufuse_tui.model import Decision, Risk, Severity


def screen_of(app: NpufuseApp) -> CandidatesScreen:
    assert isinstance(app.screen, CandidatesScreen)
    return app.screen


def decisions(doors: FakeDoors) -> dict[str, Decision]:
    return {one.candidate: one.decision for one in the_loop(doors).session.approvals}


async def test_filter_as_you_type_and_clear(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await on_screen(pilot, "candidates")
        listing = screen_of(app).listing
        await pilot.press("slash")
        await type_text(pilot, "rule:swiglu")
        assert [one.id for one in listing.shown] == ["51be7704", "51be7705"]
        await type_text(pilot, " risk:danger")
        assert [one.id for one in listing.shown] == ["51be7704"]
        await pilot.press("escape")
        assert len(listing.shown) == 5
        await pilot.press("f3")
        await type_text(pilot, "nothing")
        await pilot.press("enter")
        assert "No candidate fits the filter" in text_of(app)
        await pilot.press("0")
        assert len(listing.shown) == 5


async def test_sort_group_fold_mark(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await on_screen(pilot, "candidates")
        screen = screen_of(app)
        await pilot.press("s")
        assert screen.listing.sort == "verdict"
        assert [one.verdict.value for one in screen.listing.shown][-1] == "refused"
        await pilot.press("S")
        assert next(one.verdict.value for one in screen.listing.shown) == "refused"
        await pilot.press("b")
        assert "by rule" in text_of(app)
        rows = len(screen.listing.rows)
        assert rows == 7
        await pilot.press("home", "left")
        assert len(screen.listing.rows) < rows
        await pilot.press("right")
        assert len(screen.listing.rows) == rows
        await pilot.press("Z")
        assert len(screen.listing.rows) == 2
        await pilot.press("asterisk")
        assert "5 marked" in text_of(app)
        await pilot.press("x")
        assert set(decisions(doors).values()) == {Decision.REJECTED} and len(decisions(doors)) == 5
        await pilot.press("u")
        assert not decisions(doors)


async def test_bulk_takes_only_what_is_recommended(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        assert "3 candidates will be approved" in text_of(app)
        await pilot.press("y")
        assert decisions(doors) == dict.fromkeys(["9f3a1c27", "9f3a1c28", "51be7705"], Decision.APPROVED)
        await pilot.press("u")
        await pilot.press("asterisk", "a")
        assert len(decisions(doors)) == 3
        assert "want a look each" in text_of(app)


async def test_group_of_equal_shape(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("G")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("y")
        assert decisions(doors) == dict.fromkeys(["9f3a1c27", "9f3a1c28"], Decision.APPROVED)


async def test_refused_says_why(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("end", "a")
        assert "The variance is used again" in text_of(app)
        await pilot.press("e")
        assert "no replacement to edit" in text_of(app)
        assert not decisions(doors)


async def test_risks_lead_to_their_line(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("2")
        await until(pilot, lambda: "hidden_size" in text_of(app))
        await pilot.press("enter")
        await pilot.pause()
        assert screen_of(app).pane.current == "tab_diff"
        assert "Line 19" in text_of(app)


async def test_all_tabs_tell_something(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(160, 50)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("3")
        await until(pilot, lambda: "On the device, to scale" in text_of(app))
        assert "a model, not a measurement" in text_of(app)
        await pilot.press("5")
        await until(pilot, lambda: "npu_rms_norm(Tensor" in screen_of(app).pane.page.text)
        await pilot.press("4")
        assert "Not checked yet" in text_of(app)
        await pilot.press("c")
        await idle(pilot)
        await until(pilot, lambda: "3 cases" in text_of(app))
        assert "emulated on the CPU" in text_of(app)
        await pilot.press("6")
        assert "is_torch_npu_available" in text_of(app)
        await pilot.press("down", "enter")
        assert "choose_gate" in the_loop(doors).calls


async def test_diff_options(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "candidates")
        screen = screen_of(app)
        before = screen.diff.plain_text
        assert "+" in before and "npu_rms_norm" in before
        await pilot.press("v")
        assert screen.diff.split
        await pilot.press("w")
        assert screen.diff.wrapped and "epsilon" in screen.diff.plain_text
        await pilot.press("v", "w", "2", "v")
        assert "press 1 first" in text_of(app)
        await pilot.press("f")
        assert screen.has_class("-full")
        await pilot.press("escape")
        assert not screen.has_class("-full")


async def test_more_context_shows_more_of_the_file(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/blocks.py").write_text(sample.SOURCE, "utf-8")
    doors.make = lambda: FakeLoop(tmp_path, root=str(tmp_path))
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "candidates")
        screen = screen_of(app)
        assert "self.up_proj = nn.Linear" not in screen.diff.plain_text
        await pilot.press("plus", "plus")
        assert "self.up_proj = nn.Linear" in screen.diff.plain_text
        await pilot.press("minus", "minus")
        assert "self.up_proj = nn.Linear" not in screen.diff.plain_text


async def test_edit_inline_compiles_and_checks_again(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditText))
        app.screen.query_one(TextArea).text = "return ("
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Tell))
        assert "does not compile" in text_of(app)
        await pilot.press("escape", "e")
        await until(pilot, lambda: isinstance(app.screen, EditText))
        app.screen.query_one(TextArea).text = "return x"
        await pilot.press("f5")
        await idle(pilot)
        assert the_loop(doors)._candidate("9f3a1c27").replacement == "return x"
        assert the_loop(doors)._candidate("9f3a1c27").check is not None


async def test_note(make_app: MakeApp, doors: FakeDoors) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "candidates")
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, Prompt))
        await type_text(pilot, "ask Bo")
        await pilot.press("enter")
        await until(pilot, lambda: the_loop(doors).session.notes == {"9f3a1c27": "ask Bo"})
        assert "ask Bo" in app.screen.query_one("#about", Page).text


async def test_columns_drop_out_and_wide_characters_align(make_app: MakeApp) -> None:
    from npufuse_tui.screens.candidate_table import CandidateTable, columns_for
    from npufuse_tui.screens.clean import width

    for cells in (60, 80, 100, 120, 200):
        assert "rule" in [one.id for one, _ in columns_for(cells)]
    table = CandidateTable(screen_listing())
    for room in range(60, 201, 7):
        for index in range(table.count()):
            assert width(table.row(index, room).plain) <= room
        starts = {width(table.row(index, room).plain) for index in range(table.count())}
        assert len(starts) == 1


def screen_listing():  # type: ignore[no-untyped-def]
    from npufuse_tui.screens.candidate_list import CandidateList

    listing = CandidateList()
    odd = replace(sample.norm(id="0"), file="模型/块.py", qualname="归一化.forward")
    listing.load((*sample.candidates(), odd))
    return listing


async def test_ten_thousand(make_app: MakeApp, doors: FakeDoors, tmp_path: Path) -> None:
    found = sample.many(10_000)
    doors.make = lambda: FakeLoop(tmp_path, sample.scan_result(found=found))
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await on_screen(pilot, "candidates")
        assert "10000 candidates" in text_of(app)
        await pilot.press("end")
        assert screen_of(app).table.cursor == 9_999
        await pilot.press("slash")
        await type_text(pilot, "model_0007")
        assert len(screen_of(app).listing.shown) == 7
        await pilot.press("enter", "b", "b")
        assert "by equal shape" in text_of(app)


@pytest.mark.parametrize("hostile", ["[bold red]x[/]", "\x1b]0;owned\x07title", "\x1b[31mred", "a\nb", "\u202egnp.py"])
async def test_hostile_names_are_shown_as_text(
    make_app: MakeApp, doors: FakeDoors, tmp_path: Path, hostile: str
) -> None:
    risk = Risk("odd", Severity.WARNING, Text(hostile, hostile), 20)
    bad = replace(sample.norm(), file=hostile, qualname=hostile, reason=Text(hostile, hostile), risks=(risk,))
    doors.make = lambda: FakeLoop(tmp_path, sample.scan_result(found=(bad,)))
    app = make_app()
    async with app.run_test(size=(160, 40)) as pilot:
        await on_screen(pilot, "candidates")
        for key in ("2", "3", "6", "1"):
            await pilot.press(key)
            shown = text_of(app)
            assert "\x1b" not in shown and "\x07" not in shown and "\u202e" not in shown
        if hostile.startswith("[bold"):
            assert "[bold red]x[/]" in text_of(app)
