"""Every action of the screen by name; arrows and Enter are enough."""

from __future__ import annotations

from typing import ClassVar

from npufuse_tui.screens.actions import Action, actions_of
from npufuse_tui.screens.base import Field
from npufuse_tui.screens.clean import fit, width
from npufuse_tui.screens.dialogs import Dialog
from npufuse_tui.screens.rows import Rows
from npufuse_tui.screens.situation import Situation
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from npufuse_tui.i18n import tr


class PaletteRows(Rows, can_focus=False):
    """The actions that fit what was typed; those that cannot be used now say why."""

    def __init__(self, screen: str, situation: Situation) -> None:
        super().__init__()
        self._all = [one for one in actions_of(screen) if one.id != "palette"]
        self._situation = situation
        self.fitting: list[Action] = self._all

    def narrow(self, query: str) -> None:
        words = query.lower().split()
        self.fitting = [
            one
            for one in self._all
            if all(word in f"{tr(one.label)} {tr(one.tooltip)} {one.label} {one.id}".lower() for word in words)
        ]
        self.cursor = 0
        self.rows_changed()

    def count(self) -> int:
        return len(self.fitting)

    def row(self, index: int, room: int) -> Content:
        one = self.fitting[index]
        why = one.why_not(self._situation)
        label = fit(tr(one.label), 24)
        keys = fit(one.shown_keys, 16)
        said = why or tr(one.tooltip)
        return Content.assemble(
            (" " + label, "$quiet" if why else "bold"),
            (keys, "$accent"),
            (fit(said, room - width(label) - width(keys) - 1), "$warn" if why else "$quiet"),
        )


class Palette(Dialog):
    """Dismissed with the id of the action that was chosen, or None."""

    DEFAULT_CSS = """
    Palette > Vertical { width: 96; height: 90%; }
    Palette PaletteRows { height: 1fr; background: $surface; margin: 1 1 0 1; }
    Palette PaletteRows > .rows--cursor-away { background: $cursor-row; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
    ]

    def __init__(self, screen: str, situation: Situation) -> None:
        super().__init__()
        self._screen_name, self._situation = screen, situation

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(tr("All actions")), classes="title")
            yield Field(placeholder=tr("type to narrow down"), id="query")
            yield PaletteRows(self._screen_name, self._situation)
            yield Static(Content(tr("Arrows and Enter choose, Esc closes.")), classes="below low")

    def on_mount(self) -> None:
        self.query_one("#query").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(PaletteRows).narrow(event.value)

    def on_input_submitted(self) -> None:
        rows = self.query_one(PaletteRows)
        self.dismiss(rows.fitting[rows.cursor].id if rows.fitting else None)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.dismiss(self.query_one(PaletteRows).fitting[event.index].id)

    def action_move(self, by: int) -> None:
        rows = self.query_one(PaletteRows)
        rows.place_cursor(rows.cursor + by)
