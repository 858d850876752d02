"""The one registry of actions: footer, help, palette, bindings and docs/keys.md are all made from it.

Every action can also be reached without a letter: by its function key, or from the palette (F2) with arrows and Enter,
because letters do not arrive while an input method composes. ctrl+i, m, j, h, s, q and z belong to terminals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npufuse_tui.screens.situation import Situation

from npufuse_tui.i18n import mark, tr
from npufuse_tui.model import TaskState, Verdict

Reason = Callable[[Situation], str | None]
EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a person can do. `label` and `tooltip` are catalogue messages.

    `footer` orders the footer; 0: not there.
    """

    id: str
    screen: str
    keys: tuple[str, ...]
    label: str
    tooltip: str
    footer: int = 0
    disabled: Reason | None = None

    def why_not(self, situation: Situation) -> str | None:
        """The reason why it cannot be used now, in the current language; None when it can."""
        return self.disabled(situation) if self.disabled else None

    @property
    def shown_keys(self) -> str:
        return " ".join(key_name(key) for key in self.keys)


_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "space": "Space",
    "escape": "Esc",
    "enter": "Enter",
    "plus": "+",
    "minus": "-",
    "asterisk": "*",
    "exclamation_mark": "!",
    "left": "Left",
    "right": "Right",
    "tab": "Tab",
    "shift+up": "Shift+Up",
    "shift+down": "Shift+Down",
}


def key_name(key: str) -> str:
    """A key as it is written on a keyboard."""
    if key in _NAMES:
        return _NAMES[key]
    if key.startswith("f") and key[1:].isdigit():
        return key.upper()
    if key.startswith("ctrl+"):
        return "Ctrl+" + key[5:].upper()
    return key


def _no_candidate(where: Situation) -> str | None:
    if where.candidate is None and not where.marked:
        return tr("No candidate is under the cursor.")
    return None


def _decide(where: Situation) -> str | None:
    if where.frozen:
        return tr("The approvals were confirmed at the checkpoint; start a new session to decide again.")
    return _no_candidate(where)


def _approve(where: Situation) -> str | None:
    if reason := _decide(where):
        return reason
    if not where.marked and where.candidate is not None and where.candidate.verdict is Verdict.REFUSED:
        return tr("A refused candidate cannot be approved: {reason}", reason=str(where.candidate.reason))
    return None


def _undo(where: Situation) -> str | None:
    if where.frozen:
        return tr("The approvals were confirmed at the checkpoint; start a new session to decide again.")
    return None if where.decided else tr("There is no decision to take back.")


def _bulk(where: Situation) -> str | None:
    if where.frozen:
        return tr("The approvals were confirmed at the checkpoint; start a new session to decide again.")
    return None if where.shown else tr("No candidate is shown.")


def _group(where: Situation) -> str | None:
    if where.frozen:
        return tr("The approvals were confirmed at the checkpoint; start a new session to decide again.")
    return None if where.candidate is not None else tr("No candidate is under the cursor.")


def _has_edit(where: Situation) -> str | None:
    if where.frozen:
        return tr("The approvals were confirmed at the checkpoint; start a new session to decide again.")
    if where.candidate is None:
        return tr("No candidate is under the cursor.")
    return None if where.candidate.replacement else tr("This candidate has no replacement to edit.")


def _check(where: Situation) -> str | None:
    if "check" in where.busy:
        return tr("A check is running; wait until it has ended.")
    return _no_candidate(where)


def _on_diff(where: Situation) -> str | None:
    return None if where.on_diff else tr("This works on the Diff tab; press 1 first.")


def _checkpoint(where: Situation) -> str | None:
    if where.frozen or where.approved:
        return None
    return tr("Nothing is approved yet: approve at least one candidate first.")


def _confirm(where: Situation) -> str | None:
    if where.frozen:
        return None
    if "refusals" in where.extra:
        return tr("The plan has refusals; mend them or take those candidates out first.")
    if "planning" in where.extra:
        return tr("The plan is still being made.")
    return None if where.approved else tr("Nothing is approved: go back and approve a candidate.")


def _take_out(where: Situation) -> str | None:
    if where.frozen:
        return tr("The approvals were confirmed at the checkpoint; start a new session to decide again.")
    return None if where.candidate else tr("No candidate is under the cursor.")


def _start(where: Situation) -> str | None:
    if "verify" in where.busy:
        return tr("A verification is running.")
    return None if "command" in where.extra else tr("The launch command is missing: type it first.")


_RUNNING = (TaskState.OP_CHECK, TaskState.LOSS_CHECK, TaskState.SPEED_CHECK)


def _cancel(where: Situation) -> str | None:
    return None if "verify" in where.busy else tr("Nothing is running.")


def _skip(where: Situation) -> str | None:
    if where.task is None:
        return tr("No task is under the cursor.")
    if where.task.conclusion is not None or where.task.state is TaskState.CONCLUDED:
        return tr("This task has ended.")
    return None


def _retry(where: Situation) -> str | None:
    if "verify" in where.busy:
        return tr("A verification is running; cancel it or wait until it has ended.")
    return None if where.task is not None else tr("No task is under the cursor.")


def _verify(where: Situation) -> str | None:
    if "verify" in where.busy:
        return tr("A verification is running.")
    return None


def _log(where: Situation) -> str | None:
    return None if where.log else tr("There is no log to look at yet.")


def _report(where: Situation) -> str | None:
    if "verify" in where.busy:
        return tr("Wait until the verification has ended, or cancel it with x.")
    return None


def _filtered(where: Situation) -> str | None:
    return None if where.filtered else tr("No filter is set.")


_A = Action
ACTIONS: tuple[Action, ...] = (
    _A("help", EVERYWHERE, ("question_mark", "f1"), mark("Help"), mark("What this screen is for and its keys"), 1),
    _A("palette", EVERYWHERE, ("f2", "ctrl+p"), mark("All actions"), mark("Find any action by its name"), 90),
    _A("back", EVERYWHERE, ("escape",), mark("Back"), mark("To the screen before; nothing is lost"), 80),
    _A("language", EVERYWHERE, ("f12", "L"), mark("Chinese / English"), mark("Switch the language at once")),
    _A("theme", EVERYWHERE, ("f11", "T"), mark("Theme"), mark("Dark, light, colour-blind-safe")),
    _A("quit", EVERYWHERE, ("q", "f10"), mark("Quit"), mark("Leave; all is saved, --resume goes on"), 95),
    # home
    _A("choose", "home", ("enter", "f5", "g"), mark("Open"), mark("Open what is under the cursor"), 2),
    _A("open_path", "home", ("o", "f3"), mark("Open a path"), mark("Type the path of a folder or a Python file"), 10),
    _A("demo", "home", ("d", "f4"), mark("Demo"), mark("A small real model in a throw-away repo"), 20),
    # scan
    _A("to_candidates", "scan", ("g", "f5"), mark("To the candidates"), mark("Look at what was found"), 2),
    _A("rescan", "scan", ("r", "f4"), mark("Scan again"), mark("Read all files once more"), 20),
    # candidates
    _A(
        "approve",
        "candidates",
        ("a", "f6"),
        mark("Approve"),
        mark("Approve the candidate, or all that are marked"),
        3,
        _approve,
    ),
    _A(
        "reject",
        "candidates",
        ("x", "f7"),
        mark("Reject"),
        mark("Reject the candidate, or all that are marked"),
        4,
        _decide,
    ),
    _A("undo", "candidates", ("u", "f8"), mark("Undo"), mark("Take the last decision back"), 5, _undo),
    _A(
        "to_checkpoint",
        "candidates",
        ("g", "f5"),
        mark("Checkpoint"),
        mark("See all that will be edited, then confirm"),
        2,
        _checkpoint,
    ),
    _A(
        "filter",
        "candidates",
        ("slash", "f3"),
        mark("Filter"),
        mark("By rule, file, function, verdict or risk, as you type"),
        10,
    ),
    _A("toggle_mark", "candidates", ("space",), mark("Mark"), mark("Mark for an action on several"), 12, _no_candidate),
    _A(
        "check",
        "candidates",
        ("c", "f9"),
        mark("Check"),
        mark("Run original and replacement side by side in a child process"),
        14,
        _check,
    ),
    _A(
        "edit",
        "candidates",
        ("e", "f4"),
        mark("Edit"),
        mark("Write your own replacement; it is compiled and proven again"),
        16,
        _has_edit,
    ),
    _A(
        "approve_recommended",
        "candidates",
        ("A",),
        mark("Approve all recommended"),
        mark("All shown candidates with the verdict recommended"),
        0,
        _bulk,
    ),
    _A(
        "approve_group",
        "candidates",
        ("G",),
        mark("Approve the group"),
        mark("All candidates of equal shape that may be approved in bulk"),
        0,
        _group,
    ),
    _A(
        "mark_all",
        "candidates",
        ("asterisk",),
        mark("Mark all shown"),
        mark("Mark all that the filter shows, or none"),
        0,
        _bulk,
    ),
    _A("clear_filter", "candidates", ("0",), mark("Clear the filter"), mark("Show all candidates again"), 0, _filtered),
    _A("sort", "candidates", ("s",), mark("Sort"), mark("By the next column"), 18),
    _A("sort_reverse", "candidates", ("S",), mark("Reverse the order"), mark("Turn the order round")),
    _A("group", "candidates", ("b",), mark("Group"), mark("By rule, by equal shape, by file, or not"), 19),
    _A("fold", "candidates", ("left",), mark("Fold"), mark("Close the group under the cursor")),
    _A("unfold", "candidates", ("right",), mark("Unfold"), mark("Open the group under the cursor")),
    _A("fold_all", "candidates", ("Z",), mark("Fold all groups"), mark("Close all groups, or open all")),
    _A(
        "next_undecided",
        "candidates",
        ("n",),
        mark("Next undecided"),
        mark("Go to the next candidate without a decision"),
    ),
    _A(
        "previous_undecided",
        "candidates",
        ("p",),
        mark("Previous undecided"),
        mark("Go to the previous candidate without a decision"),
    ),
    _A("tab_diff", "candidates", ("1",), mark("Diff"), mark("What the edit changes")),
    _A(
        "tab_risks", "candidates", ("2",), mark("Risks"), mark("What to know before approving; Enter jumps to the line")
    ),
    _A("tab_explain", "candidates", ("3",), mark("Explain"), mark("The chain against the fused operator")),
    _A("tab_check", "candidates", ("4",), mark("Check results"), mark("The measured numbers of each case")),
    _A("tab_api", "candidates", ("5",), mark("API"), mark("Signature, constraints and versions of the fused operator")),
    _A(
        "tab_reuse",
        "candidates",
        ("6",),
        mark("Reuse"),
        mark("Switches that the repo has, and the gate that was chosen"),
    ),
    _A("maximise", "candidates", ("f",), mark("Full size"), mark("Give the details the whole screen, or half of it")),
    _A("split", "candidates", ("v",), mark("Side by side"), mark("Diff in one column or in two"), 0, _on_diff),
    _A("wrap", "candidates", ("w",), mark("Wrap"), mark("Wrap long lines of the diff"), 0, _on_diff),
    _A(
        "more_context",
        "candidates",
        ("plus",),
        mark("More context"),
        mark("Show more lines around each change"),
        0,
        _on_diff,
    ),
    _A(
        "less_context",
        "candidates",
        ("minus",),
        mark("Less context"),
        mark("Show fewer lines around each change"),
        0,
        _on_diff,
    ),
    _A(
        "open_file",
        "candidates",
        ("o",),
        mark("Open in editor"),
        mark("Open the file at the line in $EDITOR"),
        0,
        _no_candidate,
    ),
    _A("note", "candidates", ("m",), mark("Note"), mark("Write a note on the candidate"), 0, _no_candidate),
    _A(
        "copy_diff",
        "candidates",
        ("y",),
        mark("Copy the diff"),
        mark("Copy the diff to the clipboard"),
        0,
        _no_candidate,
    ),
    _A(
        "skipped",
        "candidates",
        ("i",),
        mark("Scan summary"),
        mark("Rules, files and what was skipped, with the reason"),
    ),
    # checkpoint
    _A(
        "confirm",
        "checkpoint",
        ("g", "f5"),
        mark("Confirm"),
        mark("Ask once more, then freeze the approvals"),
        2,
        _confirm,
    ),
    _A(
        "take_out",
        "checkpoint",
        ("x", "f7"),
        mark("Take out"),
        mark("Take the approval under the cursor back"),
        4,
        _take_out,
    ),
    # run set-up
    _A("start", "run", ("f5", "ctrl+g"), mark("Start"), mark("Edit the branch and verify each replacement"), 2, _start),
    # board
    _A("to_report", "board", ("g", "f5"), mark("Report"), mark("Conclusions and reports"), 2, _report),
    _A(
        "resume_runs",
        "board",
        ("c", "f4"),
        mark("Continue"),
        mark("Run what is still waiting or was interrupted"),
        3,
        _verify,
    ),
    _A("cancel", "board", ("x", "f7"), mark("Cancel"), mark("End the run; what was measured stays"), 4, _cancel),
    _A("skip", "board", ("s", "f8"), mark("Skip"), mark("Leave this task out and go on with the next"), 5, _skip),
    _A("retry", "board", ("r", "f6"), mark("Retry"), mark("Run this task again"), 6, _retry),
    _A(
        "rerun",
        "board",
        ("R",),
        mark("Other steps"),
        mark("Run this task again with another number of steps"),
        0,
        _retry,
    ),
    _A("tab_log", "board", ("1",), mark("Log"), mark("The live log of the run")),
    _A(
        "tab_curves", "board", ("2",), mark("Curves"), mark("Loss and step time against the baseline, with the 1% band")
    ),
    _A("tab_result", "board", ("3",), mark("Result"), mark("What was measured, and the conclusion")),
    _A("follow", "board", ("f", "f9"), mark("Follow"), mark("Stay at the end of the log, or stop there"), 10, _log),
    _A("search", "board", ("slash", "f3"), mark("Search"), mark("Find text in the log"), 12, _log),
    _A("next_match", "board", ("n",), mark("Next match"), mark("Go to the next match"), 0, _log),
    _A("previous_match", "board", ("p",), mark("Previous match"), mark("Go to the previous match"), 0, _log),
    _A(
        "first_error",
        "board",
        ("exclamation_mark", "e"),
        mark("First error"),
        mark("Jump to the first error in the log"),
        14,
        _log,
    ),
    _A("copy_log", "board", ("y",), mark("Copy"), mark("Copy the lines of the log that are on the screen"), 0, _log),
    _A("larger", "board", ("m",), mark("Full size"), mark("Give the details the whole screen, or half of it")),
    # report
    _A("open_html", "report", ("o", "enter", "f5"), mark("Open"), mark("Open the report under the cursor"), 2),
    _A("copy_request", "report", ("y", "f4"), mark("Copy PR text"), mark("Copy the text of a pull request"), 3),
    _A("clean_up", "report", ("x", "f7"), mark("Clean up"), mark("Remove the worktrees; branch and reports stay"), 5),
    _A("write_again", "report", ("r", "f6"), mark("Write again"), mark("Write all reports once more"), 6),
)

SCREENS = ("home", "scan", "candidates", "checkpoint", "run", "board", "report")


def actions_of(screen: str) -> list[Action]:
    """The actions of a screen, those that work everywhere last."""
    own = [one for one in ACTIONS if one.screen == screen]
    return own + [one for one in ACTIONS if one.screen == EVERYWHERE]


def action(screen: str, id: str) -> Action:
    """The action with that id on that screen. Raises KeyError when there is none."""
    for one in actions_of(screen):
        if one.id == id:
            return one
    raise KeyError(f"screen {screen} has no action {id}")


def footer_actions(screen: str) -> list[Action]:
    return sorted((one for one in actions_of(screen) if one.footer), key=lambda one: one.footer)
