"""The first screen: open something, or go on with a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from npufuse_tui.screens import marks
from npufuse_tui.screens.base import LoopScreen, Said, stage_name
from npufuse_tui.screens.clean import clean, crop_start, fit, width
from npufuse_tui.screens.dialogs import Prompt
from npufuse_tui.screens.doors import Recent
from npufuse_tui.screens.rows import Rows
from textual.app import ComposeResult
from textual.content import Content

from npufuse_tui.i18n import tr
from npufuse_tui.model import Stage

STAGE_SCREENS = {
    Stage.SCAN: "scan",
    Stage.CANDIDATES: "candidates",
    Stage.CHECKPOINT: "checkpoint",
    Stage.APPLY: "run",
    Stage.VERIFY: "board",
    Stage.REPORT: "report",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to open. `label` and `detail` are made when they are drawn."""

    label: Callable[[], str]
    detail: Callable[[], str]
    open: Callable[[], None]
    heading: bool = False


class HomeRows(Rows):
    """The entries of the first screen."""

    def __init__(self) -> None:
        super().__init__(id="entries")
        self.entries: list[Entry] = []

    def count(self) -> int:
        return len(self.entries)

    def row(self, index: int, room: int) -> Content:
        one = self.entries[index]
        lead = marks.cursor() if index == self.cursor else " "
        label = fit(clean(one.label()), 30)
        detail = crop_start(clean(one.detail()), room - width(label) - 5)
        return Content.assemble((f" {lead} ", "$accent"), (label, "bold"), " ", (detail, "$quiet"))


class HomeScreen(LoopScreen):
    """Where one begins."""

    NAME = "home"
    CSS_PATH = "home.tcss"

    def body(self) -> ComposeResult:
        yield Said(self._welcome, id="welcome")
        yield HomeRows()

    def _welcome(self) -> Content:
        return Content.assemble(
            ("npufuse\n", "bold $accent"),
            (
                tr(
                    "Finds chains of small operators in PyTorch code, replaces them with fused torch_npu "
                    "operators on a branch, and proves each replacement."
                ),
                "",
            ),
            "\n",
            (tr("Scanning changes nothing. Nothing is edited that you did not approve."), "$quiet"),
        )

    def hint(self) -> str:
        return tr("Arrows choose, Enter opens; ? explains.")

    def on_mount(self) -> None:
        self._fill([])
        self.query_one(HomeRows).focus()
        self.run_worker(self._load_recent, thread=True, group="recent", exit_on_error=False)

    def _load_recent(self) -> None:
        recent = self.host.doors.recent()
        self.app.call_from_thread(self._fill, recent)

    def render_state(self) -> None:
        rows = self.query_one(HomeRows)
        rows.entries = self._entries(self._recent)
        rows.rows_changed()

    def _fill(self, recent: list[Recent]) -> None:
        self._recent = recent
        self.render_state()

    def _entries(self, recent: list[Recent]) -> list[Entry]:
        host = self.host
        here = host.options.path or str(Path.cwd())
        entries: list[Entry] = []
        session = host.session
        if session is not None:
            stage = STAGE_SCREENS[session.stage]
            entries.append(
                Entry(
                    lambda: tr("Go on"),
                    lambda: f"{stage_name(stage)}  {session.root}",
                    lambda: host.go_to(stage),
                )
            )
        entries += [
            Entry(lambda: tr("Scan this folder"), lambda: here, lambda: host.open_path(here)),
            Entry(lambda: tr("Open a path"), lambda: tr("a folder or a Python file"), self.do_open_path),
            Entry(
                lambda: tr("Demo"), lambda: tr("a small real model in a throw-away repo, on the CPU"), host.open_demo
            ),
        ]
        for one in recent:
            if session is None or one.id != session.id:
                entries.append(self._recent_entry(one))
        return entries

    def _recent_entry(self, one: Recent) -> Entry:
        screen = STAGE_SCREENS[Stage(one.stage)] if one.stage in {stage.value for stage in Stage} else "scan"

        def detail() -> str:
            state = tr("interrupted") + "  " if one.interrupted else ""
            return f"{state}{stage_name(screen)}  {one.when[:16].replace('T', ' ')}  {one.path}"

        return Entry(lambda: tr("Resume {id}", id=one.id), detail, lambda: self.host.open_session(one.path, one.id))

    def do_choose(self) -> None:
        rows = self.query_one(HomeRows)
        rows.entries[rows.cursor].open()

    def do_open_path(self) -> None:
        def typed(path: object) -> None:
            if isinstance(path, str) and path.strip():
                self.host.open_path(path.strip())

        here = self.host.options.path or str(Path.cwd())
        self.app.push_screen(Prompt(tr("Path of a folder or a Python file"), here), typed)

    def do_demo(self) -> None:
        self.host.open_demo()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.do_choose()
