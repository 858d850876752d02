"""The catalogue is whole, the registry is consistent, states are said in both languages."""

from __future__ import annotations

import importlib
import inspect
import unicodedata
from pathlib import Path

import pytest
from npufuse_tui.screens import actions, marks
from npufuse_tui.screens.base import LoopScreen
from npufuse_tui.screens.situation import Situation

from npufuse_tui import i18n
from npufuse_tui.app import NpufuseApp
from npufuse_tui.i18n import tr
from npufuse_tui.language import set_language

ROOT = Path(__file__).resolve().parents[2]


def catalogue_tool():  # type: ignore[no-untyped-def]
    pytest.importorskip("babel")
    spec = importlib.util.spec_from_file_location("catalogue", ROOT / "tools" / "catalogue.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:Skipping f-string")
def test_nothing_is_untranslated_or_unused() -> None:
    tool = catalogue_tool()
    now = tool.updated("zh")
    assert not tool.untranslated(now)
    ids = {message.id for message in now if message.id}
    unused = [message.id for message in tool.load("zh") if message.id and message.id not in ids]
    assert not unused


def test_compiled_catalogue_is_that_of_the_source() -> None:
    tool = catalogue_tool()
    assert (Path(i18n.__file__).parent / "zh.mo").read_bytes() == tool.compiled(tool.load("zh"))


def test_fields_are_the_same_in_both_languages() -> None:
    from string import Formatter

    tool = catalogue_tool()

    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    for message in tool.load("zh"):
        if message.id:
            one = message.id if isinstance(message.id, str) else message.id[-1]
            said = message.string if isinstance(message.string, str) else message.string[0]
            assert fields(said) == fields(one), one


def test_no_text_of_ambiguous_width() -> None:
    """Glyphs that some terminals draw two cells wide stay out of what we say ourselves."""
    tool = catalogue_tool()
    for message in tool.load("zh"):
        if message.id:
            texts = [*([message.id] if isinstance(message.id, str) else message.id)]
            texts += [message.string] if isinstance(message.string, str) else list(message.string)
            for text in texts:
                wide = [one for one in text if unicodedata.east_asian_width(one) == "A"]
                assert not wide, (text, wide)
    for table in (
        marks.VERDICT,
        marks.DECISION,
        marks.PRIORITY,
        marks.SEVERITY,
        marks.CHECK,
        marks.STATE,
        marks.NOTICE,
    ):
        for one in table.values():
            assert unicodedata.east_asian_width(one.fine) != "A" and one.plain.isascii()


def test_keys_do_not_clash_and_are_not_the_terminal_s() -> None:
    taken = {f"ctrl+{letter}" for letter in "imjhsqz"}
    for screen in actions.SCREENS:
        keys = [key for one in actions.actions_of(screen) for key in one.keys]
        assert len(keys) == len(set(keys)), screen
        assert not taken & set(keys)


def test_no_widget_takes_the_key_of_an_action() -> None:
    """A list or page with the focus must not swallow what the footer offers."""
    from npufuse_tui.screens.candidate_table import CandidateTable
    from npufuse_tui.screens.diff_view import DiffView
    from npufuse_tui.screens.log_view import LogView
    from npufuse_tui.screens.page import Page
    from npufuse_tui.screens.task_rows import TaskRows

    folds = {"left", "right"}  # in a diff they go sideways; in the table they fold
    for cls in (CandidateTable, DiffView, LogView, Page, TaskRows):
        keys = {key for one in cls.BINDINGS for key in one.key.split(",")}  # type: ignore[union-attr]
        for base in cls.__mro__[1:]:
            if base.__module__.startswith("npufuse_tui"):
                keys |= {key for one in getattr(base, "BINDINGS", []) for key in one.key.split(",")}
        for one in actions.ACTIONS:
            assert not (set(one.keys) & keys) - folds, (cls, one.id)


def test_every_action_has_a_method_and_a_screen() -> None:
    screens = {cls.NAME: cls for cls in NpufuseApp.SCREENS.values()}  # type: ignore[attr-defined]
    assert set(screens) == set(actions.SCREENS)
    for name, cls in screens.items():
        for one in actions.actions_of(name):
            assert callable(getattr(cls, f"do_{one.id}", None)), f"{name} cannot {one.id}"
        offered = {one.id for one in actions.actions_of(name)}
        methods = {method[3:] for method, _ in inspect.getmembers(cls, inspect.isfunction) if method.startswith("do_")}
        assert methods <= offered, f"{name}: {methods - offered} is in no registry"


def test_every_action_has_a_way_without_letters() -> None:
    """Its own function key or arrow, or the palette: F2 is on every screen and lists every action."""
    for screen in actions.SCREENS:
        palette = actions.action(screen, "palette")
        assert "f2" in palette.keys


def test_reasons_are_sentences_in_both_languages() -> None:
    for language in ("en", "zh"):
        set_language(language)
        for one in actions.ACTIONS:
            why = one.why_not(Situation())
            assert why is None or len(why) > 4
            assert tr(one.label) and tr(one.tooltip)


def test_help_and_footer_begin_with_help() -> None:
    for screen in actions.SCREENS:
        assert actions.footer_actions(screen)[0].id == "help"


def test_screen_files_are_short() -> None:
    for path in [*(ROOT / "screens").glob("*.py")]:
        if path.name != "actions.py":  # a table
            assert len(path.read_text("utf-8").splitlines()) <= 400, path
    for cls in NpufuseApp.SCREENS.values():
        path = Path(inspect.getfile(cls))  # type: ignore[arg-type]
        assert issubclass(cls, LoopScreen)  # type: ignore[arg-type]
        assert len(path.read_text("utf-8").splitlines()) <= 300, path


def test_the_key_tables_of_the_docs_are_those_of_the_registry() -> None:
    spec = importlib.util.spec_from_file_location("keys", ROOT / "tools" / "keys.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(check=True) == 0
