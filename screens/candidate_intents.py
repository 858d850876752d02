"""What a person can do on the candidates screen, as intents to the loop. The screen itself shows the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from npufuse_tui.screens import candidate_list, editor
from npufuse_tui.screens.base import LoopScreen
from npufuse_tui.screens.candidate_list import Heading
from npufuse_tui.screens.details import ChooseGate, JumpTo
from npufuse_tui.screens.dialogs import EditText, Prompt, Tell
from npufuse_tui.screens.page import Page
from npufuse_tui.screens.rows import Rows

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Candidate, Decision, Verdict

if TYPE_CHECKING:
    from npufuse_tui.screens.candidates import CandidatesScreen


class CandidateIntents(LoopScreen):
    """The `do_…` methods of the candidates screen's actions."""

    @property
    def me(self) -> CandidatesScreen:
        return cast("CandidatesScreen", self)

    def _aim(self) -> list[Candidate]:
        """What an action is about: the marked ones, else the group under the cursor, else the candidate."""
        listing, here = self.me.listing, self.me.table.here
        if listing.marked:
            return [one for one in listing.candidates if one.id in listing.marked]
        if isinstance(here, Heading):
            return [one for one in listing.shown if one.id in here.members]
        return [here] if here is not None else []

    def _decide(self, ids: list[str], decision: Decision) -> bool:
        loop = self.host.loop
        if loop is None or not ids:
            return False
        done = self.host.attempt(lambda: loop.decide(tuple(ids), decision))
        if done:
            self.me.listing.marked.clear()
            said = {
                Decision.APPROVED: lambda: trn(
                    "{count} approved; u takes it back.", "{count} approved; u takes them back.", len(ids)
                ),
                Decision.REJECTED: lambda: trn(
                    "{count} rejected; u takes it back.", "{count} rejected; u takes them back.", len(ids)
                ),
            }
            self.say(said[decision](), "ok")
            self.host.refresh_screens()
        return done

    def do_approve(self) -> None:
        aim = self._aim()
        one_by_one = len(aim) == 1 and not isinstance(self.me.table.here, Heading)
        fit = [
            one for one in aim if one.verdict is Verdict.RECOMMENDED or (one_by_one and one.verdict is Verdict.CAUTION)
        ]
        left = len(aim) - len(fit)
        if not fit:
            self.say(tr("None of these may be approved in bulk: look at each one."), "warn")
            return
        if self._decide([one.id for one in fit], Decision.APPROVED):
            if left:
                self.say(
                    tr("{count} approved; {left} are not recommended and want a look each.", count=len(fit), left=left),
                    "warn",
                )
            elif one_by_one:
                self._advance()

    def do_reject(self) -> None:
        aim = self._aim()
        if self._decide([one.id for one in aim], Decision.REJECTED) and len(aim) == 1:
            self._advance()

    def _advance(self) -> None:
        index = self.me.listing.undecided(self.me.table.cursor, 1)
        if index is not None:
            self.me.table.place_cursor(index)

    def do_undo(self) -> None:
        loop = self.host.loop
        if loop is not None and self.host.attempt(loop.undo):
            self.say(tr("The last decision is taken back."), "ok")

    def do_approve_recommended(self) -> None:
        self._bulk(self.me.listing.recommended(), tr("Approve all recommended"))

    def do_approve_group(self) -> None:
        one = self.me.here
        if one is not None:
            self._bulk(self.me.listing.same_group(one), tr("Approve the group"))

    def _bulk(self, ids: list[str], title: str) -> None:
        if not ids:
            self.say(tr("None that is undecided may be approved in bulk."), "warn")
            return
        from textual.content import Content

        body = [Content(trn("{count} candidate will be approved.", "{count} candidates will be approved.", len(ids)))]
        body.append(Content.styled(tr("Nothing is edited before the checkpoint; u takes it back."), "$quiet"))

        def approve() -> None:
            self._decide(ids, Decision.APPROVED)

        self.host.ask(title, list(body), tr("Approve"), approve)

    # marking, order, groups

    def do_toggle_mark(self) -> None:
        marked, here = self.me.listing.marked, self.me.table.here
        if isinstance(here, Heading):
            members = set(here.members)
            marked.difference_update(members) if members <= marked else marked.update(members)
        elif here is not None:
            marked.symmetric_difference_update({here.id})
        self.me.table.refresh()
        self.me.table.action_move(1)
        self.host.refresh_screens()

    def do_mark_all(self) -> None:
        shown = {one.id for one in self.me.listing.shown}
        marked = self.me.listing.marked
        marked.difference_update(shown) if shown <= marked else marked.update(shown)
        self.host.refresh_screens()

    def do_filter(self) -> None:
        field = self.query_one("#query")
        field.display = True
        field.focus()
        self.say(tr("Type words, or rule: file: function: verdict: risk: and a word. Enter keeps it, Esc clears it."))

    def do_clear_filter(self) -> None:
        from npufuse_tui.screens.base import Field

        self.query_one("#query", Field).value = ""
        self.query_one("#query").display = False
        self.me.filter_by("")

    def _arrange(self) -> None:
        self.me.rearranged(self.me.here.id if self.me.here else None)

    def do_sort(self) -> None:
        listing = self.me.listing
        listing.sort, listing.descending = candidate_list.next_of(candidate_list.SORTS, listing.sort), False
        self._arrange()
        self.say(tr("Sorted: {order}.", order=tr(dict(candidate_list.SORTS)[listing.sort])))

    def do_sort_reverse(self) -> None:
        self.me.listing.descending = not self.me.listing.descending
        self._arrange()

    def do_group(self) -> None:
        listing = self.me.listing
        listing.group = candidate_list.next_of(candidate_list.GROUPS, listing.group)
        listing.closed.clear()
        self._arrange()
        self.say(tr("Groups: {order}.", order=tr(dict(candidate_list.GROUPS)[listing.group])))

    def _heading_index(self) -> int | None:
        rows = self.me.listing.rows
        return next(
            (at for at in range(self.me.table.cursor, -1, -1) if at < len(rows) and isinstance(rows[at], Heading)), None
        )

    def _fold(self, closed: bool) -> None:
        index = self._heading_index()
        if index is None:
            self.say(tr("The table is not grouped; b groups it."), "warn")
            return
        row = self.me.listing.rows[index]
        assert isinstance(row, Heading)
        if closed:
            self.me.listing.closed.add(row.key)
        else:
            self.me.listing.closed.discard(row.key)
        self.me.listing.arrange()
        self.me.table.rows_changed()
        self.me.table.place_cursor(index)
        self.me.table.refresh()

    def do_fold(self) -> None:
        self._fold(True)

    def do_unfold(self) -> None:
        self._fold(False)

    def do_fold_all(self) -> None:
        listing = self.me.listing
        keys = {row.key for row in listing.rows if isinstance(row, Heading)}
        listing.closed = set() if keys and keys <= listing.closed else keys
        self._arrange()

    def do_next_undecided(self) -> None:
        self._go_undecided(1)

    def do_previous_undecided(self) -> None:
        self._go_undecided(-1)

    def _go_undecided(self, step: int) -> None:
        index = self.me.listing.undecided(self.me.table.cursor, step)
        if index is None:
            self.say(tr("All that are shown are decided."), "ok")
        else:
            self.me.table.place_cursor(index)

    # tabs and the diff

    def _tab(self, id: str) -> None:
        self.me.pane.open_tab(id)

    def do_tab_diff(self) -> None:
        self._tab("tab_diff")

    def do_tab_risks(self) -> None:
        self._tab("tab_risks")
        self.me.pane.open_widget.focus()

    def do_tab_explain(self) -> None:
        self._tab("tab_explain")

    def do_tab_check(self) -> None:
        self._tab("tab_check")

    def do_tab_api(self) -> None:
        self._tab("tab_api")

    def do_tab_reuse(self) -> None:
        self._tab("tab_reuse")
        self.me.pane.open_widget.focus()

    def do_maximise(self) -> None:
        self.toggle_class("-full")
        (self.me.pane.open_widget if self.has_class("-full") else self.me.table).focus()

    def do_split(self) -> None:
        self.me.diff.set_options(split=not self.me.diff.split)

    def do_wrap(self) -> None:
        self.me.diff.set_options(wrapped=not self.me.diff.wrapped)

    def _widen(self, by: int) -> None:
        one, diff = self.me.here, self.me.diff
        if one is not None:
            extra = max(0, diff.extra + by)
            diff.extra = extra
            diff.show(
                one.diff, {one.file: self.host.read_lines(one.file)} if extra else {}, str(one.reason), one.start_line
            )

    def do_more_context(self) -> None:
        self._widen(10)

    def do_less_context(self) -> None:
        self._widen(-10)

    def on_page_chosen(self, event: Page.Chosen) -> None:
        if isinstance(event.target, JumpTo):
            self._jump(event.target)
        elif isinstance(event.target, ChooseGate) and self.me.here is not None:
            one, gate, loop = self.me.here, event.target.gate, self.host.loop
            if self.situation().frozen:
                self.say(tr("The approvals are confirmed; the gate stays as it is."), "warn")
            elif loop is not None and self.host.attempt(lambda: loop.choose_gate(one.id, gate)):
                self.say(tr("The gate is changed; the diff is made anew."), "ok")

    def _jump(self, to: JumpTo) -> None:
        one = self.me.here
        if one is not None and one.file == to.file:
            self._tab("tab_diff")
            self.me.diff.focus()
            if self.me.diff.go_to(to.line):
                self.say(tr("Line {line}", line=to.line))
                return
        self.host.run_worker(editor.open_at(self.host, to.file, to.line), group="editor", exit_on_error=False)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self._tab("tab_diff")
        self.me.diff.focus()

    # check, edit, note

    def do_check(self) -> None:
        loop, ids = self.host.loop, tuple(one.id for one in self._aim() if one.replacement)
        if loop is None or not ids:
            self.say(tr("There is nothing to check here: no replacement."), "warn")
            return
        self.host.live.checked.clear()
        self.host.start_job("check", lambda listen: loop.check(ids, listen), lambda _: self._checked(ids))
        self._tab("tab_check")
        self.say(
            trn(
                "Checking {count} candidate in a child process.",
                "Checking {count} candidates in child processes.",
                len(ids),
            )
        )

    def _checked(self, ids: tuple[str, ...]) -> None:
        session = self.host.session
        found = {one.id: one for one in session.scan.candidates} if session and session.scan else {}
        statuses = [found[id].check.status for id in ids if id in found and found[id].check]  # type: ignore[union-attr]
        failed = statuses.count("failed")
        if failed:
            self.say(trn("{count} check failed.", "{count} checks failed.", failed), "bad")
        else:
            self.say(tr("{passed} of {count} checks passed.", passed=statuses.count("passed"), count=len(ids)), "ok")

    async def do_edit(self) -> None:
        one, loop = self.me.here, self.host.loop
        if one is None or loop is None or one.replacement is None:
            return

        def typed(text: object) -> None:
            if not isinstance(text, str) or text == one.replacement:
                self.say(tr("Nothing was changed."))
            elif self.host.attempt(lambda: loop.edit_replacement(one.id, text)):
                self.host.start_job(
                    "check", lambda listen: loop.check((one.id,), listen), lambda _: self._checked((one.id,))
                )

        title = tr("Replacement of {rule} in {place}", rule=one.rule, place=one.qualname)
        outside = await editor.edit_text(self.host, one.replacement, ".py")
        if outside is editor.NO_EDITOR:
            self.app.push_screen(EditText(title, one.replacement), typed)
        else:
            typed(outside)

    async def do_open_file(self) -> None:
        if self.me.here is not None:
            await editor.open_at(self.host, self.me.here.file, self.me.here.start_line)

    def do_note(self) -> None:
        one, loop, session = self.me.here, self.host.loop, self.host.session
        if one is None or loop is None or session is None:
            return

        def typed(text: object) -> None:
            if isinstance(text, str):
                self.host.attempt(lambda: loop.note(one.id, text.strip()))

        self.app.push_screen(Prompt(tr("Note on {place}", place=one.qualname), session.notes.get(one.id, "")), typed)

    def do_copy_diff(self) -> None:
        if self.me.here is not None and self.me.here.diff:
            self.host.copy(self.me.here.diff, tr("the diff"))

    def do_skipped(self) -> None:
        from npufuse_tui.screens.scan import scan_summary

        session = self.host.session
        if session is not None and session.scan is not None:
            self.app.push_screen(Tell(tr("Scan summary"), scan_summary(session.scan)))

    def do_to_checkpoint(self) -> None:
        self.host.go_to("checkpoint")
