"""The checkpoint: all that will be edited, before anything is."""

from __future__ import annotations

from npufuse_tui.screens import details, marks
from npufuse_tui.screens.base import LoopScreen, Said
from npufuse_tui.screens.clean import clean, plain
from npufuse_tui.screens.page import Page, Paragraph
from npufuse_tui.screens.plan_view import plan_body
from npufuse_tui.screens.situation import Situation
from textual.app import ComposeResult
from textual.content import Content

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Approval, Candidate, Decision, Severity
from npufuse_tui.workspace.apply_plan import ApplyPlan

WORD = "approve"


class CheckpointScreen(LoopScreen):
    """Shows the plan, asks for a typed word where danger is left, and only then lets the approvals be frozen."""

    NAME = "checkpoint"
    CSS_PATH = "checkpoint.tcss"

    def __init__(self) -> None:
        super().__init__()
        self.plan: ApplyPlan | None = None
        self._planned: tuple[Approval, ...] | None = None
        self._failed = False

    def body(self) -> ComposeResult:
        yield Said(self._headline, id="headline")
        yield Page(id="plan")

    def on_mount(self) -> None:
        self.query_one(Page).focus()

    def hint(self) -> str:
        if super().situation().frozen:
            return tr("Confirmed. g goes on to the run set-up.")
        return tr("Read what will be edited; g asks once more before anything is. Esc goes back.")

    def situation(self) -> Situation:
        extra = set()
        if self.plan is None:
            extra.add("planning")
        elif self.plan.refusals:
            extra.add("refusals")
        return Situation(session=self.host.session, candidate=self._here(), busy=self.host.busy, extra=frozenset(extra))

    def _here(self) -> Candidate | None:
        target = self.query_one(Page).target
        return target if isinstance(target, Candidate) else None

    def approved(self) -> list[tuple[Candidate, Approval]]:
        """The approved candidates with their approvals."""
        session = self.host.session
        if session is None or session.scan is None:
            return []
        found = {one.id: one for one in session.scan.candidates}
        return [
            (found[had.candidate], had)
            for had in session.approvals
            if had.decision is Decision.APPROVED and had.candidate in found
        ]

    def dangers(self) -> list[tuple[Candidate, str]]:
        """Danger-level risks of what is approved."""
        return [
            (one, risk.code) for one, _ in self.approved() for risk in one.risks if risk.severity is Severity.DANGER
        ]

    def on_screen_resume(self) -> None:
        self._failed = False
        super().on_screen_resume()

    def render_state(self) -> None:
        loop, session = self.host.loop, self.host.session
        if loop is None or session is None:
            return
        if self._planned != session.approvals and not self._failed and "plan" not in self.host.busy:
            self.plan, self._planned = None, session.approvals
            if self.approved():
                self.host.start_job("plan", lambda _: loop.plan(), self._got_plan, self._no_plan)
                return
        self.query_one("#headline", Said).retell()
        self.query_one(Page).show(self._body(), keep=True)

    def _got_plan(self, plan: object) -> None:
        assert isinstance(plan, ApplyPlan)
        self.plan = plan

    def _no_plan(self) -> None:
        self._failed = True

    def _headline(self) -> Content:
        count = len(self.approved())
        if super().situation().frozen:
            state = marks.NOTICE["ok"]
            return Content.assemble(
                (state.glyph, state.colour),
                " ",
                (trn("{count} approval, confirmed", "{count} approvals, confirmed", count), "bold"),
            )
        return Content.assemble(
            (trn("{count} approved candidate", "{count} approved candidates", count), "bold"),
            ("   " + tr("nothing is written yet"), "$quiet"),
        )

    def _body(self) -> list[Paragraph | Content]:
        approved = self.approved()
        if not approved:
            return [details.quiet(tr("Nothing is approved: Esc goes back to the candidates."))]
        if self.plan is None and not self._failed:
            return [details.quiet(tr("Working out what will be edited."))]
        return plan_body(self.plan, approved, self.host.session)

    # intents

    def do_confirm(self) -> None:
        loop = self.host.loop
        if loop is None:
            return
        if super().situation().frozen:
            self.host.go_to("run")
            return
        dangers = self.dangers()
        count = len(self.approved())
        body: list[Paragraph | Content] = [
            plain(
                trn(
                    "{count} candidate will be edited on a branch.",
                    "{count} candidates will be edited on a branch.",
                    count,
                ),
                "bold",
            ),
            plain(
                tr(
                    "Your checkout stays as it is. The approvals are recorded with your name, the time and "
                    "the hash of each edit."
                ),
                "$quiet",
            ),
        ]
        if dangers:
            body += [Content(""), Content.styled(tr("Danger is left:"), "bold $bad")]
            body += [
                Paragraph(
                    Content.assemble(
                        (marks.SEVERITY[Severity.DANGER].glyph, "$bad"),
                        " ",
                        clean(f"{one.rule}  {one.file}:{one.start_line}  {code}"),
                    ),
                    hang=2,
                )
                for one, code in dangers
            ]
            body.append(plain(tr("Type {word} to confirm all the same.", word=WORD), "$quiet"))
        self.host.ask(tr("Confirm the approvals?"), list(body), tr("Confirm"), self._confirmed, WORD if dangers else "")

    def _confirmed(self) -> None:
        loop = self.host.loop
        if loop is not None and self.host.attempt(loop.confirm):
            self.host.go_to("run")

    def do_take_out(self) -> None:
        loop, one = self.host.loop, self._here()
        if loop is not None and one is not None and self.host.attempt(lambda: loop.decide((one.id,), None)):
            self.say(tr("Taken out: {place}", place=clean(one.qualname)), "ok")
