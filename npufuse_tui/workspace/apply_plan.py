"""What an apply will do, said before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npufuse_tui.language import Text
from npufuse_tui.model import Edit, FileEdit, Gate


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """One approved candidate. `edit` is what will be written; `files` are its files, relative to the root of the scan.

    `diff` is against the base and what the person approved; `own` says that the replacement is the person's own.
    """

    candidate: str
    rule: str
    edit: Edit
    files: tuple[str, ...]
    gate: Gate | None
    diff: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class PlanRefusal:
    """Why something cannot be applied, with the mend. `candidate` None: it holds for all of them."""

    candidate: str | None
    reason: Text


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """All of it. `base` is the commit that edits start from, `branch` the branch that passing edits end on.

    `links` are the untracked entries (relative to the top of the repo) that worktrees get, by the rule in `link_rule`,
    a file that the person may change. `notes` are worth knowing and stop nothing. Nothing is applied while there are
    refusals. `sources` are the files to edit as they were when the plan was made.
    """

    repository: str | None
    base: str | None
    branch: str
    edits: tuple[PlannedEdit, ...]
    refusals: tuple[PlanRefusal, ...] = ()
    notes: tuple[Text, ...] = ()
    links: tuple[str, ...] = ()
    link_rule: str = ""
    sources: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def file_edits(self) -> tuple[FileEdit, ...]:
        return tuple(file for one in self.edits for file in one.edit.files)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(sorted({name for one in self.edits for name in one.files}))
