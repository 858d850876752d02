"""Errors that a person reads: one sentence that says what is wrong, with what value, and how to mend it."""

from __future__ import annotations

from enum import IntEnum

from npufuse_tui.language import Text


class ExitCode(IntEnum):
    """What the process answers with; scripts rely on these."""

    DONE = 0
    ANSWER_IS_NO = 1
    WRONG_INPUT = 2
    MACHINE_LACKS = 3
    KEPT_SAFE = 4
    INTERRUPTED = 130


class NpufuseError(Exception):
    """An error with a sentence in both languages. The class says which exit code it ends with."""

    exit_code = ExitCode.ANSWER_IS_NO

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text

    def __str__(self) -> str:
        return str(self.text)

    def __reduce__(self) -> tuple[type[NpufuseError], tuple[Text]]:
        return type(self), (self.text,)


class WrongInput(NpufuseError):
    """The call or its input is wrong: a path that is not there, an option that does not fit."""

    exit_code = ExitCode.WRONG_INPUT


class MachineLacks(NpufuseError):
    """The machine lacks something: torch in the target interpreter, git, an NPU that was demanded."""

    exit_code = ExitCode.MACHINE_LACKS


class KeptSafe(NpufuseError):
    """Refused, to keep something of the person's safe: a stale approval, a changed file, a lock, a branch that exists."""

    exit_code = ExitCode.KEPT_SAFE
