"""Questions and messages over a screen.

Cancel is what Enter does unless the person moves; `y` confirms, never the key that asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from npufuse_tui.screens.base import Field
from npufuse_tui.screens.clean import clean, plain
from npufuse_tui.screens.page import Page, Paragraph
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea

from npufuse_tui.i18n import tr

_CSS = """
Dialog { align: center middle; background: $background 60%; }
Dialog > Vertical { width: 76; max-width: 96%; height: auto; max-height: 94%; background: $surface; padding: 0; }
Dialog .title { width: 100%; height: 1; background: $panel; text-style: bold; padding: 0 1; }
Dialog Page { height: auto; max-height: 16; background: $surface; padding: 0 1; margin: 1 1 0 1; }
Dialog Field { margin: 1 2 0 2; }
Dialog .below { height: 1; margin: 1 2; align-horizontal: right; }
Dialog .low { color: $quiet; margin: 0 2 1 2; height: auto; }
Dialog Button { margin-left: 2; min-width: 10; background: $panel; color: $text; }
Dialog Button:focus { background: $primary; color: $background; text-style: bold; }
Dialog TextArea { height: 18; border: none; background: $background; margin: 1 1 0 1; }
Dialog.-ascii > Vertical { border: ascii $quiet; }
"""


class Dialog(ModalScreen[object]):
    """Base of all dialogs: a panel in the middle with a title."""

    DEFAULT_CSS = _CSS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", show=False)]

    def action_cancel(self) -> None:
        self.dismiss(None)


class Ask(Dialog):
    """Yes or no; True when confirmed. Cancel has the focus. With `word`, the word must be typed to confirm."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, body: Sequence[Paragraph | Content], confirm: str, word: str = "") -> None:
        super().__init__()
        self._title, self._body, self._confirm, self._word = title, body, confirm, word

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self._title), classes="title")
            yield Page()
            if self._word:
                yield Field(placeholder=tr("type {word} here", word=self._word), id="word")
            with Horizontal(classes="below"):
                yield Button(tr("Cancel"), id="cancel", compact=True)
                yield Button(f"{self._confirm} (y)" if not self._word else self._confirm, id="confirm", compact=True)

    def on_mount(self) -> None:
        page = self.query_one(Page)
        page.can_focus = False
        page.show(self._body)
        if self._word:
            self.query_one("#confirm", Button).disabled = True
            self.query_one("#word").focus()
        else:
            self.query_one("#cancel").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one("#confirm", Button).disabled = event.value.strip() != self._word

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() == self._word:
            self.dismiss(True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_confirm(self) -> None:
        if not self._word:
            self.dismiss(True)


class Prompt(Dialog):
    """One line of text; None when cancelled."""

    def __init__(self, title: str, value: str = "", hint: str = "") -> None:
        super().__init__()
        self._title, self._value, self._hint = title, value, hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self._title), classes="title")
            yield Field(self._value, id="line")
            yield Static(Content(self._hint or tr("Enter takes it, Esc leaves it.")), classes="below low")

    def on_mount(self) -> None:
        self.query_one("#line", Field).cursor_position = len(self._value)
        self.query_one("#line").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class EditText(Dialog):
    """A small editor for the replacement, for when there is no $EDITOR; the text, or None when cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("f5", "take", show=False, priority=True)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self._title), classes="title")
            yield TextArea(self._text, show_line_numbers=True, tab_behavior="indent", compact=True)
            yield Static(Content(tr("F5 takes the text, Esc leaves it.")), classes="below low")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text)


class Tell(Dialog):
    """Something to read: an error with what is safe and what to do next, or a summary."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "cancel", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, title: str, body: Sequence[Paragraph | Content]) -> None:
        super().__init__()
        self._title, self._body = title, body

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self._title), classes="title")
            yield Page()
            yield Static(Content(tr("Esc closes, y copies.")), classes="below low")

    def on_mount(self) -> None:
        page = self.query_one(Page)
        page.show(self._body)
        page.focus()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.query_one(Page).text)


def error_box(sentence: str, detail: str = "") -> Tell:
    """The box that shows an error: the sentence, that nothing is lost, and (for our own mistakes) what to report."""
    body: list[Paragraph | Content] = [plain(sentence, "$text"), Content("")]
    body.append(plain(tr("Nothing is lost: the session is saved after every step."), "$quiet"))
    if detail:
        body += [Content(""), plain(tr("For a bug report:"), "$quiet")]
        body += [Paragraph(plain(clean(line), "$quiet"), hang=4) for line in detail.splitlines()]
    return Tell(tr("This did not work"), body)
