"""The report screen: conclusions, the files, how to take the branch over, and cleaning up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from npufuse_tui.screens import details, marks
from npufuse_tui.screens.base import LoopScreen, Said
from npufuse_tui.screens.clean import clean, fit, plain
from npufuse_tui.screens.page import Page, Paragraph
from npufuse_tui.screens.task_rows import result_words, state_mark
from textual.app import ComposeResult
from textual.content import Content

from npufuse_tui.i18n import tr, trn
from npufuse_tui.model import Conclusion, Session

if TYPE_CHECKING:
    from npufuse_tui.report.session_report import ReportPaths


class ReportScreen(LoopScreen):
    """Where the job ends."""

    NAME = "report"
    CSS_PATH = "report.tcss"

    def __init__(self) -> None:
        super().__init__()
        self.paths: ReportPaths | None = None
        self._for: tuple[object, ...] | None = None
        self._asked: tuple[object, ...] | None = None

    def body(self) -> ComposeResult:
        yield Said(self._headline, id="headline")
        yield Page(id="report")

    def on_mount(self) -> None:
        self.query_one(Page).focus()

    def hint(self) -> str:
        return tr("Enter opens a report, y copies the text for a pull request, x cleans up, q leaves.")

    def on_screen_resume(self) -> None:
        self._write()
        super().on_screen_resume()

    def _write(self, again: bool = False) -> None:
        """Have the reports written, when what they tell has changed."""
        loop, session = self.host.loop, self.host.session
        if loop is None or session is None or self.host.working:
            return
        key = (session.id, session.tasks, session.approvals)
        if key != self._asked or again:
            self._asked = key
            self.host.start_job("report", loop.write_reports, self._written)

    def _written(self, paths: object) -> None:
        self.paths = paths  # type: ignore[assignment]
        if self.is_current:
            self.say(tr("The reports are written."), "ok")

    def _headline(self) -> Content:
        session = self.host.session
        if session is None:
            return Content("")
        found = [task.conclusion for task in session.tasks]
        parts = []
        for conclusion in Conclusion:
            state = marks.CONCLUSION[conclusion]
            parts += [(f"{state.said()} {found.count(conclusion)}", f"bold {state.colour}"), ("   ", "")]
        return Content.assemble(*parts)

    def render_state(self) -> None:
        session = self.host.session
        if session is None:
            return
        self.query_one("#headline", Said).retell()
        self.query_one(Page).show(self._body(session), keep=True)

    def _body(self, session: Session) -> details.Body:
        body: details.Body = []
        found = {one.id: one for one in session.scan.candidates} if session.scan else {}
        for task in session.tasks:
            state, one = state_mark(task), found.get(task.id)
            place = f"{one.file}:{one.start_line}" if one else task.id
            body.append(
                Paragraph(
                    Content.assemble(
                        (fit(state.said(), 22), state.colour),
                        (f"{task.rule}  ", "bold"),
                        clean(place),
                        "  ",
                        (result_words(task), "$quiet"),
                    ),
                    hang=22,
                )
            )
            if task.reason is not None:
                body.append(Paragraph(plain(" " * 22 + str(task.reason), "$quiet"), hang=22))
        if not session.tasks:
            body.append(details.quiet(tr("Nothing was verified.")))
        body += ["", details.heading(tr("Reports"))]  # type: ignore[list-item]
        if self.paths is None:
            body.append(
                details.quiet(
                    tr("The reports are being written.")
                    if "report" in self.host.busy
                    else tr("Not written yet; r writes them.")
                )
            )
        else:
            for name, path in self._files(self.paths, found):
                body.append(
                    Paragraph(
                        Content.assemble((fit(name, 30), "bold"), (clean(str(path)), "$info")), hang=30, target=path
                    )
                )
        body += self._merge(session)
        return [Content(one) if isinstance(one, str) else one for one in body]

    def _files(self, paths: ReportPaths, found: Mapping[str, object]) -> list[tuple[str, Path]]:
        files = [(tr("All reports"), paths.index), (tr("Conclusion"), paths.conclusion)]
        if paths.identification_html is not None:
            files.append((tr("What was found"), paths.identification_html))
        for id, path in paths.validation:
            one = found.get(id)
            files.append((tr("Validation of {rule}", rule=getattr(one, "rule", id)), path))
        return [*files, (tr("Text of a pull request"), paths.pull_request)]

    def _merge(self, session: Session) -> details.Body:
        adopted = [task for task in session.tasks if task.commit]
        if not session.branch or not adopted:
            return [Content(""), details.quiet(tr("No replacement passed, so there is no branch to merge."))]
        body: details.Body = [Content(""), details.heading(tr("Taking it over"))]
        body.append(
            plain(
                trn(
                    "{count} commit is on {branch}.",
                    "{count} commits are on {branch}.",
                    len(adopted),
                    branch=session.branch,
                )
            )
        )
        for command in (
            f"git log -p {(session.base or '')[:12]}..{session.branch}",
            f"git merge --no-ff {session.branch}",
        ):
            body.append(Content.assemble("  ", (clean(command), "$code-name")))
        return body

    # intents

    def do_open_html(self) -> None:
        target = self.query_one(Page).target
        path = target if isinstance(target, Path) else self.paths.index if self.paths else None
        if path is None:
            self.say(tr("Not written yet; r writes them."), "warn")
        elif not path.exists():
            self.say(tr("The file is gone: {path}; r writes it again.", path=str(path)), "warn")
        else:
            self.app.open_url(path.as_uri())
            self.app.copy_to_clipboard(str(path))
            self.say(tr("Opened, and its path is copied: {path}", path=str(path)), "ok")

    def on_page_chosen(self, event: Page.Chosen) -> None:
        self.do_open_html()

    def do_copy_request(self) -> None:
        loop = self.host.loop
        if loop is not None:
            self.host.attempt(lambda: self.host.copy(loop.pull_request_text(), tr("the text of a pull request")))

    def do_write_again(self) -> None:
        self._write(again=True)

    def do_clean_up(self) -> None:
        loop = self.host.loop
        if loop is None:
            return
        body = [
            plain(tr("The worktrees of this session are removed.")),
            plain(tr("Branch, backup and reports stay."), "$quiet"),
        ]
        self.host.ask(
            tr("Clean up?"),
            list(body),
            tr("Clean up"),
            lambda: self.host.start_job("clean", lambda _: loop.clean_up(), self._cleaned),
        )

    def _cleaned(self, _: object) -> None:
        self.say(tr("The worktrees are removed."), "ok")
