"""Bring the catalogues up to date with the sentences in the code, and compile them.

python tools/catalogue.py          collect, keep the translations that still fit, compile
python tools/catalogue.py --check  say what is missing or unused, change nothing; exit code 1 when there is something
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "npufuse_tui" / "i18n"
KEYWORDS = {"tr": None, "trn": (1, 2), "mark": None, "both": None}


def collect() -> Catalog:
    """Every sentence that the screens say, with where it stands."""
    found = Catalog(project="npufuse", charset="utf-8")
    for folder in (ROOT / "screens", ROOT / "npufuse_tui"):
        for file, line, message, comments, context in extract_from_dir(
            folder, [("**.py", "python")], keywords=KEYWORDS, comment_tags=()
        ):
            name = str(Path(folder.name) / file)
            if "i18n" not in name:
                found.add(message, None, [(name, line)], auto_comments=comments, context=context)
    return found


def load(language: str) -> Catalog:
    path = PLACE / f"{language}.po"
    if not path.exists():
        return Catalog(locale=language, project="npufuse")
    with path.open("rb") as file:
        return read_po(file, locale=language)


def updated(language: str) -> Catalog:
    """The catalogue with the sentences of today; those that are gone are dropped."""
    catalog = load(language)
    catalog.update(collect(), no_fuzzy_matching=True, update_creation_date=False)
    catalog.obsolete.clear()
    catalog.fuzzy = False
    return catalog


def untranslated(catalog: Catalog) -> list[str]:
    texts = []
    for message in catalog:
        if message.id:
            said = message.string if isinstance(message.string, (list, tuple)) else [message.string]
            if not all(said):
                texts.append(str(message.id))
    return texts


def compiled(catalog: Catalog) -> bytes:
    out = BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def as_po(catalog: Catalog) -> bytes:
    out = BytesIO()
    write_po(out, catalog, width=118, no_location=True, omit_header=False, sort_output=True)
    return out.getvalue()


def main(check: bool) -> int:
    wrong = 0
    for language in ("zh",):
        old, catalog = load(language), updated(language)
        missing = untranslated(catalog)
        now = {message.id for message in catalog if message.id}
        unused = [str(message.id) for message in old if message.id and message.id not in now]
        for name, texts in (("untranslated", missing), ("unused", unused)):
            for text in texts:
                print(f"{language}: {name}: {text}", file=sys.stderr)
        wrong += len(missing) + len(unused)
        if not check:
            (PLACE / f"{language}.po").write_bytes(as_po(catalog))
            (PLACE / f"{language}.mo").write_bytes(compiled(catalog))
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
