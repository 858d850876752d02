"""The two languages that a person may read npufuse in, and text that is held in both.

Sentences that belong to one place (a risk, an error, a rule's title) are written there as a `Text`, in both
languages, side by side. `str(text)` is the sentence in the current language.
"""

from __future__ import annotations

import locale
import os
from typing import NamedTuple

LANGUAGES = ("en", "zh")

_current = "en"


class Text(NamedTuple):
    """One sentence in English and Chinese. Format both at once with `text.format(name=value)`."""

    en: str
    zh: str

    def __str__(self) -> str:
        return self.in_language(_current)

    def in_language(self, language: str) -> str:
        """The sentence in `language` ("en" or "zh")."""
        return self.zh if language == "zh" else self.en

    def format(self, *args: object, **values: object) -> Text:
        """Both sentences with the same values put in; a value that is a `Text` is put in in its own language."""
        return Text(
            self.en.format(*_said(args, "en"), **dict(zip(values, _said(tuple(values.values()), "en"), strict=True))),
            self.zh.format(*_said(args, "zh"), **dict(zip(values, _said(tuple(values.values()), "zh"), strict=True))),
        )


def _said(values: tuple[object, ...], language: str) -> list[object]:
    return [value.in_language(language) if isinstance(value, Text) else value for value in values]


def same(sentence: str) -> Text:
    """Text that is the same in every language: a code, a path, a number."""
    return Text(sentence, sentence)


def current_language() -> str:
    """The language that `str(text)` speaks now."""
    return _current


def set_language(language: str) -> None:
    """Switch the language of everything that is said from now on. Raises ValueError for one that is not known."""
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    global _current
    _current = language


def language_of_locale() -> str:
    """The language that the environment asks for: zh for a Chinese locale, else en."""
    for name in ("NPUFUSE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"
