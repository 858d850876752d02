"""Write the tables of keys, docs/keys.md and docs/keys.zh.md, from the registry of actions.

`--check` changes nothing and answers 1 when they are stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from npufuse_tui.screens import actions
from npufuse_tui.screens.base import stage_name

from npufuse_tui.i18n import tr
from npufuse_tui.language import set_language

DOCS = Path(__file__).resolve().parent.parent / "docs"
WORDS = {
    "en": (
        "Keys",
        "Made from the registry of actions by `tools/keys.py`.",
        "Key",
        "Action",
        "What it does",
        "Everywhere",
    ),
    "zh": ("按键", "由 `tools/keys.py` 根据操作登记表生成。", "按键", "操作", "作用", "通用"),
}


def document(language: str) -> str:
    """The page in one language."""
    set_language(language)
    title, origin, key, action, what, everywhere = WORDS[language]
    lines = [f"# {title}", "", origin]
    for screen in (actions.EVERYWHERE, *actions.SCREENS):
        lines += ["", f"## {everywhere if screen == actions.EVERYWHERE else stage_name(screen)}", ""]
        lines += [f"| {key} | {action} | {what} |", "|---|---|---|"]
        for one in actions.ACTIONS:
            if one.screen == screen:
                keys = " ".join(f"`{actions.key_name(name)}`" for name in one.keys)
                lines.append(f"| {keys} | {tr(one.label)} | {tr(one.tooltip)} |")
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    stale = 0
    for language, name in (("en", "keys.md"), ("zh", "keys.zh.md")):
        text = document(language)
        path = DOCS / name
        if check:
            stale += not path.exists() or path.read_text("utf-8") != text
        else:
            path.write_text(text, "utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
