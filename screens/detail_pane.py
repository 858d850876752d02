"""The tabs beside the candidates: Diff, Risks, Explain, Check, API, Reuse. Only the tab that is open is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npufuse_tui.screens.clean import width
from npufuse_tui.screens.details import Body
from npufuse_tui.screens.diff_view import DiffView
from npufuse_tui.screens.page import Page
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.style import Style
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from npufuse_tui.i18n import tr


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: its action's id in the registry, its name, and what makes its page (None: it has a widget of its own)."""

    id: str
    name: Callable[[], str]
    make: Callable[[], Body] | None = None


class TabBar(Widget):
    """The names of the tabs with the digit that opens each; the open one is marked by brackets and colour."""

    auto_links = False
    DEFAULT_CSS = "TabBar { height: 1; background: $panel; }"

    def __init__(self, tabs: tuple[Tab, ...]) -> None:
        super().__init__()
        self._tabs = tabs
        self.current = tabs[0].id

    def retell(self) -> None:
        self.refresh()

    def render(self) -> Content:
        tight = self.size.width < sum(width(tab.name()) + 4 for tab in self._tabs)
        parts: list[Content] = []
        for number, tab in enumerate(self._tabs, 1):
            open_now = tab.id == self.current
            click = Style.from_meta({"@click": f"screen.run('{tab.id}')"})
            left, right = ("[", "]") if open_now else (" ", " ")
            name = f"{left}{number} {tab.name()}{right}" if not tight or open_now else f" {number} "
            parts.append(Content.styled(name, "bold $accent" if open_now else "$quiet").stylize(click))
        return Content("").join(parts)


class TabbedPane(Vertical):
    """A tab bar above one page, or above the widget that a tab has of its own (its id is the tab's)."""

    DEFAULT_CSS = """
    TabbedPane ContentSwitcher { height: 1fr; }
    TabbedPane ContentSwitcher > * { height: 100%; }
    """

    def __init__(self, tabs: tuple[Tab, ...], *own: Widget, id: str | None = None) -> None:
        super().__init__(id=id)
        self.tabs, self._own = tabs, own
        self.current = tabs[0].id

    def compose(self) -> ComposeResult:
        yield TabBar(self.tabs)
        with ContentSwitcher(initial=self._widget_of(self.current)):
            yield from self._own
            yield Page(id="page")

    def _widget_of(self, tab: str) -> str:
        return tab if any(one.id == tab for one in self._own) else "page"

    @property
    def page(self) -> Page:
        return self.query_one("#page", Page)

    @property
    def open_widget(self) -> Widget:
        """The widget of the tab that is open."""
        return self.query_one(f"#{self._widget_of(self.current)}")

    def open_tab(self, id: str) -> None:
        """Open a tab and make what it shows."""
        self.current = id
        bar = self.query_one(TabBar)
        bar.current = id
        bar.refresh()
        had_focus = self.open_widget.has_focus or any(one.has_focus for one in (*self._own, self.page))
        self.query_one(ContentSwitcher).current = self._widget_of(id)
        self.refill()
        if had_focus:
            self.open_widget.focus()

    def refill(self, keep: bool = False) -> None:
        """Make the open tab's page again."""
        tab = next(one for one in self.tabs if one.id == self.current)
        if tab.make is not None:
            self.page.show(tab.make(), keep=keep)


def candidate_tabs(
    risks: Callable[[], Body],
    explain: Callable[[], Body],
    check: Callable[[], Body],
    api: Callable[[], Body],
    reuse: Callable[[], Body],
) -> tuple[Tab, ...]:
    """The tabs of the candidates screen."""
    return (
        Tab("tab_diff", lambda: tr("Diff")),
        Tab("tab_risks", lambda: tr("Risks"), risks),
        Tab("tab_explain", lambda: tr("Explain"), explain),
        Tab("tab_check", lambda: tr("Check"), check),
        Tab("tab_api", lambda: tr("API"), api),
        Tab("tab_reuse", lambda: tr("Reuse"), reuse),
    )


def diff_widget() -> DiffView:
    return DiffView(id="tab_diff")
