"""Help for the screen that one is on: what it is for, and its keys, made from the registry."""

from __future__ import annotations

from npufuse_tui.screens import actions
from npufuse_tui.screens.base import stage_name
from npufuse_tui.screens.clean import fit, plain, width
from npufuse_tui.screens.dialogs import Tell
from npufuse_tui.screens.page import Paragraph
from npufuse_tui.screens.situation import Situation
from textual.content import Content

from npufuse_tui.i18n import tr


def purpose(screen: str) -> list[str]:
    """What the screen is for, told to someone who does this for the first time."""
    return {
        "home": [
            tr("Open a folder with PyTorch code, or go on with a session. Scanning never changes a file."),
        ],
        "scan": [
            tr(
                "npufuse reads every Python file and looks for chains of small operators that one fused "
                "torch_npu operator can take the place of. Nothing is imported or run."
            ),
        ],
        "candidates": [
            tr(
                "Each row is a chain of small operators with the fused operator that could replace it. "
                "Read the diff and the risks, then approve or reject. Nothing is edited yet."
            ),
            tr(
                "recommended may be approved in bulk, caution one by one after reading its risks, refused "
                "is shown only, with the reason."
            ),
        ],
        "checkpoint": [
            tr(
                "All that will be edited, and where, under which switch. Only what is listed here is "
                "edited, on a branch of its own; your checkout stays as it is."
            ),
        ],
        "run": [
            tr(
                "The command that trains or runs your model. Baseline and replacements run with it, each "
                "in a worktree of its own; without an NPU the operators are emulated and speed is not "
                "measured."
            ),
        ],
        "board": [
            tr(
                "One row for each replacement: first the operator's numbers, then the loss of the "
                "training, then the speed. The first check that fails ends it."
            ),
        ],
        "report": [
            tr("What was concluded for each replacement, the reports, and how to take the branch over."),
        ],
    }[screen]


def help_body(screen: str, situation: Situation) -> list[Paragraph | Content]:
    """The text of the help page."""
    body: list[Paragraph | Content] = [plain(line) for line in purpose(screen)]
    own = [one for one in actions.ACTIONS if one.screen == screen]
    everywhere = [one for one in actions.ACTIONS if one.screen == actions.EVERYWHERE]
    for heading, listed in ((tr("On this screen"), own), (tr("Everywhere"), everywhere)):
        body += [Content(""), Content.styled(heading, "bold $accent")]
        keys = max(width(one.shown_keys) for one in listed) + 2
        labels = max(width(tr(one.label)) for one in listed) + 2
        for one in listed:
            why = one.why_not(situation)
            text = Content.assemble(
                (fit(one.shown_keys, keys), "bold"),
                (fit(tr(one.label), labels), "$quiet" if why else "$text"),
                (tr(one.tooltip), "$quiet"),
            )
            body.append(Paragraph(text, hang=keys + labels))
            if why:
                body.append(
                    Paragraph(
                        Content.styled(" " * (keys + labels) + tr("not now: {reason}", reason=why), "$warn"),
                        hang=keys + labels,
                    )
                )
    body += [
        Content(""),
        Content.styled(tr("Moving about"), "bold $accent"),
        plain(
            tr(
                "Arrows, PgUp, PgDn, Home and End move; Tab goes to the next part of the screen. The "
                "mouse works everywhere."
            )
        ),
        plain(
            tr(
                "While an input method composes, letters do not arrive: use the function keys, or F2 with "
                "arrows and Enter."
            )
        ),
    ]
    return body


class Help(Tell):
    """The help page as a dialog."""

    DEFAULT_CSS = """
    Help > Vertical { width: 96; }
    Help Page { max-height: 100%; height: auto; }
    Help > Vertical { height: 94%; }
    Help Page { height: 1fr; }
    """

    def __init__(self, screen: str, situation: Situation) -> None:
        super().__init__(tr("Help: {screen}", screen=stage_name(screen)), help_body(screen, situation))
