"""The scan as it goes on: how far, how fast, what was found, what was skipped and why."""

from __future__ import annotations

import time

from npufuse_tui.screens import marks
from npufuse_tui.screens.base import LoopScreen
from npufuse_tui.screens.clean import clean, fit, plain
from npufuse_tui.screens.page import Page, Paragraph
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from npufuse_tui.i18n import tr, trn


class Progress(Widget):
    """A bar of blanks with a background, and the numbers beside it in words: it reads without colour too."""

    DEFAULT_CSS = "Progress { height: 3; padding: 1 3; }"

    def __init__(self) -> None:
        super().__init__()
        self.done, self.total = 0, 0
        self.words = ""

    def tell(self, done: int, total: int, words: str) -> None:
        self.done, self.total, self.words = done, total, words
        self.refresh()

    def render(self) -> Content:
        room = max(10, min(60, self.size.width - 40))
        filled = room * self.done // self.total if self.total else 0
        share = f"{100 * self.done // self.total:3d}%" if self.total else "  0%"
        return Content.assemble(
            (marks.glyph(" ", "#") * filled, "$background on $primary"),
            (marks.glyph(" ", ".") * (room - filled), "on $panel"),
            (f" {share}  ", "bold"),
            (self.words, "$quiet"),
        )


class ScanScreen(LoopScreen):
    """Shows progress, then goes on to the candidates by itself when there are any."""

    NAME = "scan"
    CSS_PATH = "scan.tcss"

    def body(self) -> ComposeResult:
        yield Progress()
        yield Page(id="found")

    def hint(self) -> str:
        if "scan" in self.host.busy:
            return tr("The candidates come up by themselves when the scan has ended.")
        scan = self.host.session.scan if self.host.session else None
        if scan is not None and not scan.candidates:
            return tr("Nothing was found; Esc goes back, the list says why for each rule.")
        return tr("g goes to the candidates.")

    def on_mount(self) -> None:
        self.query_one(Page).focus()

    def retell(self) -> None:
        super().retell()
        self.render_state()

    def render_state(self) -> None:
        live, session = self.host.live, self.host.session
        scan = session.scan if session else None
        if "scan" not in self.host.busy and scan is not None:
            words = tr("{files} files in {seconds} s", files=scan.files, seconds=f"{scan.seconds:.1f}")
            self.query_one(Progress).tell(1, 1, words)
            self.query_one(Page).show(self._finished(), keep=True)
            return
        progress = live.scan
        done, total = (progress.done, progress.total) if progress else (0, 0)
        seconds = time.monotonic() - live.scan_started if live.scan_started else 0.0
        words = tr("{done} of {total} files, {seconds} s", done=done, total=total, seconds=f"{seconds:.1f}")
        self.query_one(Progress).tell(done, total, words)
        self.query_one(Page).show(self._going_on(), keep=True)

    def _going_on(self) -> list[Paragraph | Content]:
        live = self.host.live
        found = live.scan.found if live.scan else 0
        body: list[Paragraph | Content] = [
            Content.styled(trn("{count} candidate so far", "{count} candidates so far", found), "bold")
        ]
        for rule, count in sorted(live.found.items()):
            body.append(Content.assemble("  ", (fit(rule, 24), ""), (f"{count:>6}", "$accent")))
        if live.messages:
            body += [Content(""), plain(live.messages[-1], "$quiet")]
        return body

    def _finished(self) -> list[Paragraph | Content]:
        session = self.host.session
        scan = session.scan if session else None
        if scan is None:
            return []
        return scan_summary(scan)

    def do_to_candidates(self) -> None:
        if "scan" in self.host.busy:
            self.say(tr("The scan is still going on."), "warn")
        elif self.host.session is None or self.host.session.scan is None:
            self.say(tr("Nothing was scanned yet."), "warn")
        else:
            self.host.go_to("candidates")

    def do_rescan(self) -> None:
        if self.host.working:
            self.say(tr("Work is going on; cancel it or wait until it has ended."), "warn")
        else:
            self.host.scan()


def scan_summary(scan: object) -> list[Paragraph | Content]:
    """What a scan found, for each rule, and what it skipped, with reasons."""
    from npufuse_tui.model import ScanResult

    assert isinstance(scan, ScanResult)
    body: list[Paragraph | Content] = [
        Content.styled(trn("{count} candidate", "{count} candidates", len(scan.candidates)), "bold"),
        plain(
            tr(
                "{files} files, {parsed} parsed, {cached} from the cache, {megabytes} MB, {seconds} s",
                files=scan.files,
                parsed=scan.parsed,
                cached=scan.cached,
                megabytes=f"{scan.bytes / 1e6:.1f}",
                seconds=f"{scan.seconds:.1f}",
            ),
            "$quiet",
        ),
        Content(""),
        Content.styled(
            fit(tr("Rule"), 22)
            + fit(tr("found"), 8)
            + fit(tr("recommended"), 14)
            + fit(tr("caution"), 9)
            + tr("refused"),
            "$quiet",
        ),
    ]
    for rule in scan.rules:
        line = fit(rule.id, 22) + fit(str(rule.found), 8) + fit(str(rule.recommended), 14) + fit(str(rule.caution), 9)
        body.append(Content.assemble((line + str(rule.refused), "" if rule.found else "$quiet")))
        if not rule.found and str(rule.reason):
            body.append(Paragraph(Content.assemble("  ", (clean(str(rule.reason)), "$quiet")), hang=2))
    if scan.skipped:
        body += [
            Content(""),
            Content.styled(trn("{count} file skipped", "{count} files skipped", len(scan.skipped)), "bold"),
        ]
        for one in scan.skipped[:500]:
            body.append(
                Paragraph(Content.assemble((clean(one.file), ""), "  ", (clean(str(one.reason)), "$quiet")), hang=4)
            )
        if len(scan.skipped) > 500:
            body.append(
                plain(
                    tr("and {count} more; npufuse scan --format json lists all", count=len(scan.skipped) - 500),
                    "$quiet",
                )
            )
    return body
