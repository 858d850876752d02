"""The words of a command line: a path where a command's name could stand, and options that may stand anywhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

EVERYWHERE = {"--lang": True, "--debug": False}
"""Options of npufuse itself that are also understood behind a command: name → takes a value."""

VERBATIM = "emulate"
"""The command behind which everything belongs to another program."""

_SESSION = re.compile(r"[0-9]{4,8}(-[0-9]{1,6}(-[0-9a-f]{0,8})?)?")


def arranged(
    words: Sequence[str], commands: Collection[str], with_value: Collection[str], optional: str = "--resume"
) -> list[str]:
    """The words as the parser wants them.

    A first word that is no command becomes `--path=WORD`; `optional` gets an empty value when none follows that could
    be one; options of EVERYWHERE are moved to the front. `with_value` names npufuse's options that take a value.
    """
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found += [f"--path={one}" for one in rest]
            break
        if word in commands:
            return [*found, *_hoisted(word, rest)]
        if word == optional:
            value = rest.pop(0) if rest and _is_session(rest[0], commands) else ""
            found.append(f"{optional}={value}")
        elif word in with_value and rest:
            found += [word, rest.pop(0)]
        elif word.startswith("-") and word != "-":
            found.append(word)
        else:
            found.append(f"--path={word}")
    return found


def language_asked(words: Sequence[str]) -> str | None:
    """The value of --lang, wherever it stands; needed before the help texts are made."""
    for place, word in enumerate(words):
        if word == "--" or word == VERBATIM:
            return None
        if word.startswith("--lang="):
            return word.partition("=")[2]
        if word == "--lang":
            return words[place + 1] if place + 1 < len(words) else None
    return None


def _hoisted(command: str, rest: list[str]) -> list[str]:
    """The command and its words, with the options of npufuse itself in front of it."""
    if command == VERBATIM:
        return [command, *rest]
    front: list[str] = []
    kept: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            kept += [word, *rest]
            break
        if word.partition("=")[0] in EVERYWHERE and ("=" in word or not EVERYWHERE.get(word)):
            front.append(word)
        elif EVERYWHERE.get(word) and rest:
            front += [word, rest.pop(0)]
        else:
            kept.append(word)
    return [*front, command, *kept]


def _is_session(word: str, commands: Collection[str]) -> bool:
    return bool(_SESSION.fullmatch(word)) and word not in commands and not Path(word).exists()
