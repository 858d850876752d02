"""The candidates: a table, and beside it (below it when narrow) what is to be known about the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable

from npufuse_tui.screens import candidate_list, chain, details, knowledge_pages
from npufuse_tui.screens.base import Field, LoopScreen, Said
from npufuse_tui.screens.candidate_intents import CandidateIntents
from npufuse_tui.screens.candidate_list import CandidateList, Heading
from npufuse_tui.screens.candidate_table import CandidateTable
from npufuse_tui.screens.detail_pane import TabbedPane, candidate_tabs, diff_widget
from npufuse_tui.screens.diff_view import DiffView
from npufuse_tui.screens.page import Page
from npufuse_tui.screens.rows import Rows
from npufuse_tui.screens.situation import Situation
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Candidate, Decision

_SETTLE = 0.04  # seconds after the last move of the cursor until the details follow


class CandidatesScreen(CandidateIntents, LoopScreen):
    """Where a person reads and decides."""

    NAME = "candidates"
    CSS_PATH = "candidates.tcss"

    def __init__(self) -> None:
        super().__init__()
        self.listing = CandidateList()
        self._shown: tuple[object, ...] = ()
        self._settle: Timer | None = None
        self._facts: dict[str, object] = {}

    def body(self) -> ComposeResult:
        pane = TabbedPane(
            candidate_tabs(self._risks, self._explain, self._check, self._api, self._reuse), diff_widget(), id="pane"
        )
        with Container(id="work"):
            with Vertical(id="list"):
                yield Said(self._status, id="status")
                yield Field(id="query")
                yield CandidateTable(self.listing, id="table")
            with Vertical(id="details"):
                yield Page(id="about")
                yield pane

    def hint(self) -> str:
        if self.situation().frozen:
            return tr("The approvals are confirmed; g goes on.")
        return tr("Read the diff and the risks (Tab, 1-6), then a approves, x rejects; g goes to the checkpoint.")

    @property
    def table(self) -> CandidateTable:
        return self.query_one(CandidateTable)

    @property
    def pane(self) -> TabbedPane:
        return self.query_one(TabbedPane)

    @property
    def diff(self) -> DiffView:
        return self.query_one(DiffView)

    @property
    def here(self) -> Candidate | None:
        """The candidate under the cursor; the first of the group when the cursor is on a heading."""
        here = self.table.here
        if isinstance(here, Heading):
            return next((one for one in self.listing.shown if one.id in here.members[:1]), None)
        return here

    def situation(self) -> Situation:
        return Situation(
            session=self.host.session,
            candidate=self.here,
            marked=len(self.listing.marked),
            shown=len(self.listing.shown),
            busy=self.host.busy,
            filtered=bool(self.listing.query),
            on_diff=self.pane.current == "tab_diff",
        )

    def on_mount(self) -> None:
        about = self.query_one("#about", Page)
        about.can_focus = False
        self.query_one("#query").display = False
        self.table.focus()

    # state to screen

    def render_state(self) -> None:
        session = self.host.session
        if session is None or session.scan is None:
            return
        self.listing.decisions = {one.candidate: one.decision for one in session.approvals}
        self.listing.load(session.scan.candidates)
        if "check" in self.host.busy and self.host.live.checked:
            self.listing.replace(self.host.live.checked)
        self.table.rows_changed()
        self.query_one("#status", Said).retell()
        self._follow_cursor()

    def retell(self) -> None:
        super().retell()
        self._shown = ()

    def _status(self) -> Content:
        total, shown = len(self.listing.candidates), len(self.listing.shown)
        decisions = list(self.listing.decisions.values())
        parts = [trn("{count} candidate", "{count} candidates", total)]
        if shown != total:
            parts.append(tr("{count} shown", count=shown))
        parts.append(tr("{count} approved", count=decisions.count(Decision.APPROVED)))
        parts.append(tr("{count} rejected", count=decisions.count(Decision.REJECTED)))
        if self.listing.marked:
            parts.append(tr("{count} marked", count=len(self.listing.marked)))
        if self.listing.group != "none":
            parts.append(tr(dict(candidate_list.GROUPS)[self.listing.group]))
        done, count = self.host.live.checks
        if "check" in self.host.busy and count:
            parts.append(tr("checking {done} of {total}", done=done, total=count))
        return Content.styled(" " + "   ".join(parts), "$quiet")

    def _approval(self, one: Candidate) -> object:
        session = self.host.session
        return next((had for had in session.approvals if had.candidate == one.id), None) if session else None

    def _follow_cursor(self) -> None:
        """Show what belongs to the candidate under the cursor, when it is not what is shown already."""
        one = self.here
        session = self.host.session
        if one is None or session is None:
            self.query_one("#about", Page).show([details.quiet(tr("No candidate fits the filter; 0 clears it."))])
            self.diff.show(None)
            self.pane.page.show([])
            self._shown = ()
            return
        approval = next((had for had in session.approvals if had.candidate == one.id), None)
        note = session.notes.get(one.id, "")
        key = (one.id, one.check, one.diff, approval, note, self.pane.current)
        if key == self._shown:
            return
        new = not self._shown or self._shown[0] != one.id
        again = not new and self._shown[2] == one.diff
        self._shown = key
        self.query_one("#about", Page).show(details.summary(one, approval, note))
        if not again:
            sources = {one.file: self.host.read_lines(one.file)} if self.diff.extra else {}
            self.diff.show(one.diff, sources, str(one.reason), one.start_line)
        self.pane.refill(keep=not new)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.query_one("#status", Said).retell()
        if self._settle is not None:
            self._settle.stop()
        self._settle = self.set_timer(_SETTLE, self._settled)

    def _settled(self) -> None:
        self._settle = None
        self._follow_cursor()
        self.refresh_frame()

    # what the tabs show

    def _room(self) -> int:
        return max(30, self.pane.page.scrollable_content_region.width or self.pane.size.width - 3)

    def _risks(self) -> details.Body:
        return details.risks(self.here) if self.here else []

    def _explain(self) -> details.Body:
        one = self.here
        if one is None:
            return []
        told = self._known(f"explain {one.id} {one.check}", lambda: knowledge_pages.explanation(one))
        return chain.explain(one, told, self._room())  # type: ignore[arg-type]

    def _check(self) -> details.Body:
        return details.check(self.here) if self.here else []

    def _api(self) -> details.Body:
        one = self.here
        if one is None:
            return []
        found = self._known(f"api {one.api}", lambda: knowledge_pages.facts(one))
        return knowledge_pages.facts_body(found, self._room()) if found else [details.quiet(tr("Looking it up."))]

    def _known(self, key: str, make: Callable[[], object]) -> object:
        """Something that takes a moment to find out: what was found, or None while a thread looks."""
        if key not in self._facts and "facts" not in self.host.busy:

            def keep(found: object) -> None:
                self._facts[key] = found
                self.pane.refill(keep=True)

            self.host.start_job("facts", lambda _: make(), keep)
        return self._facts.get(key)

    def _reuse(self) -> details.Body:
        return details.reuse(self.here, None, self.situation().frozen) if self.here else []

    # filter as you type

    def on_input_changed(self, event: Input.Changed) -> None:
        self.filter_by(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one("#query").display = bool(event.value)
        self.table.focus()

    def filter_by(self, query: str) -> None:
        """Show what fits; the cursor stays on its candidate when that is still there."""
        keep = self.here.id if self.here else None
        self.listing.query = query
        self.rearranged(keep)

    def rearranged(self, keep: str | None) -> None:
        """The rows are in another order: put the cursor back on its candidate."""
        self.listing.arrange()
        self.table.rows_changed()
        index = self.listing.index_of(keep)
        self.table.place_cursor(index if index is not None else 0)
        self.query_one("#status", Said).retell()
        self._settled()

    def do_back(self) -> None:
        field = self.query_one("#query", Field)
        if field.has_focus:
            if field.value:
                field.value = ""
            field.display = False
            self.table.focus()
        elif self.has_class("-full"):
            self.remove_class("-full")
            self.table.focus()
        elif not self.table.has_focus:
            self.table.focus()
        else:
            super().do_back()
