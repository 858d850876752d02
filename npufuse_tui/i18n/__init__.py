"""The sentences of the screens in the language that is current: gettext catalogues, one `<language>.po` and `.mo` each.

English is the source. `tr("Approve")` is the sentence now, `mark("Approve")` one that is said later; both are what
`tools/catalogue.py` collects. Sentences of the engine are `npufuse_tui.language.Text` and need no catalogue.
"""

from __future__ import annotations

import gettext
from functools import lru_cache
from pathlib import Path

from npufuse_tui.language import Text, current_language

_HERE = Path(__file__).parent


@lru_cache(maxsize=4)
def catalogue(language: str) -> gettext.NullTranslations:
    """The catalogue of a language; an empty one (English stays) where there is none."""
    try:
        with (_HERE / f"{language}.mo").open("rb") as file:
            return gettext.GNUTranslations(file)
    except OSError:
        return gettext.NullTranslations()


def tr(message: str, **values: object) -> str:
    """`message` in the current language, with `{name}` fields filled in."""
    said = catalogue(current_language()).gettext(message)
    return said.format(**values) if values else said


def trn(one: str, many: str, count: int, **values: object) -> str:
    """The form of the sentence that fits `count`, which is also put in as `{count}`."""
    return catalogue(current_language()).ngettext(one, many, count).format(count=count, **values)


def mark(message: str) -> str:
    """Marks a sentence for the catalogue and gives it back as it is; `tr` says it later."""
    return message


def both(message: str) -> Text:
    """The sentence in both languages, for documents that are written in either."""
    return Text(message, catalogue("zh").gettext(message))
