"""States as a person sees them: a glyph, a word and a colour, never the colour alone.

Glyphs are of unambiguous width (Unicode East Asian Width N); `--ascii` swaps them for ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from npufuse_tui.i18n import mark, tr
from npufuse_tui.model import Conclusion, Decision, Priority, Severity, TaskState, Verdict

_ascii = False


def use_ascii(on: bool) -> None:
    """Draw everything with ASCII glyphs from now on."""
    global _ascii
    _ascii = on


def ascii_only() -> bool:
    return _ascii


def glyph(fine: str, plain: str) -> str:
    """`fine`, or `plain` under --ascii."""
    return plain if _ascii else fine


@dataclass(frozen=True, slots=True)
class Mark:
    """How a state is shown."""

    fine: str
    plain: str
    word: str
    colour: str

    @property
    def glyph(self) -> str:
        return self.plain if _ascii else self.fine

    def label(self) -> Content:
        """Glyph and word in the colour of the state."""
        return Content.styled(f"{self.glyph} {tr(self.word)}", self.colour)

    def said(self) -> str:
        return f"{self.glyph} {tr(self.word)}"


VERDICT = {
    Verdict.RECOMMENDED: Mark("✓", "+", mark("recommended"), "$ok"),
    Verdict.CAUTION: Mark("⚠", "!", mark("caution"), "$warn"),
    Verdict.REFUSED: Mark("⊘", "-", mark("refused"), "$quiet"),
}
DECISION: dict[Decision | None, Mark] = {
    Decision.APPROVED: Mark("✓", "+", mark("approved"), "$ok"),
    Decision.REJECTED: Mark("✗", "x", mark("rejected"), "$bad"),
    None: Mark(" ", " ", mark("undecided"), "$quiet"),
}
PRIORITY = {
    Priority.HIGH: Mark("▴", "^", mark("high"), "$text"),
    Priority.MEDIUM: Mark(" ", " ", mark("medium"), "$text"),
    Priority.LOW: Mark("▾", "v", mark("low"), "$quiet"),
}
SEVERITY = {
    Severity.INFO: Mark("ℹ", "i", mark("info"), "$info"),
    Severity.WARNING: Mark("⚠", "!", mark("warning"), "$warn"),
    Severity.DANGER: Mark("✗", "X", mark("danger"), "$bad"),
}
CHECK = {
    "passed": Mark("✓", "+", mark("passed"), "$ok"),
    "failed": Mark("✗", "x", mark("failed"), "$bad"),
    "skipped": Mark("◌", "o", mark("skipped"), "$quiet"),
}
STATE = {
    TaskState.PENDING: Mark("◌", "o", mark("waiting"), "$quiet"),
    TaskState.OP_CHECK: Mark("▸", ">", mark("operator check"), "$info"),
    TaskState.OP_FAILED: Mark("✗", "x", mark("operator check failed"), "$bad"),
    TaskState.LOSS_CHECK: Mark("▸", ">", mark("loss check"), "$info"),
    TaskState.LOSS_FAILED: Mark("✗", "x", mark("loss check failed"), "$bad"),
    TaskState.SPEED_CHECK: Mark("▸", ">", mark("speed check"), "$info"),
    TaskState.CONCLUDED: Mark("✓", "+", mark("concluded"), "$ok"),
    TaskState.BLOCKED: Mark("⊘", "-", mark("blocked"), "$warn"),
    TaskState.INTERRUPTED: Mark("⚠", "!", mark("interrupted"), "$warn"),
}
CONCLUSION = {
    Conclusion.ADOPT: Mark("✓", "+", mark("adopt"), "$ok"),
    Conclusion.REJECT: Mark("✗", "x", mark("reject"), "$bad"),
    Conclusion.BLOCKED: Mark("⊘", "-", mark("blocked"), "$warn"),
}
BASELINE = {
    "pending": STATE[TaskState.PENDING],
    "running": Mark("▸", ">", mark("running"), "$info"),
    "passed": CHECK["passed"],
    "failed": CHECK["failed"],
}
NOTICE = {
    "info": Mark("ℹ", "i", mark("note"), "$info"),
    "ok": Mark("✓", "+", mark("done"), "$ok"),
    "warn": Mark("⚠", "!", mark("not now"), "$warn"),
    "bad": Mark("✗", "x", mark("error"), "$bad"),
}


def cursor() -> str:
    return glyph("❯", ">")


def separator() -> str:
    return glyph("›", ">")


def folded(closed: bool) -> str:
    return glyph("▸", "+") if closed else glyph("▾", "-")
