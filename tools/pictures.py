"""Export the pictures of the README from the app itself into docs/pictures: `python tools/pictures.py`.

The app shows the recorded session of the tests, so that the pictures are the same on every machine.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "pictures"
FONTS = "ui-monospace, 'Cascadia Mono', Menlo, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"


def local(svg: str) -> str:
    """The picture without fonts from the network."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return re.sub(r"font-family: ?Fira Code, monospace", f"font-family: {FONTS}", svg)


async def take(language: str) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "screens"))
    import test_snapshots as walks
    from fake_loop import FakeDoors, FakeLoop

    from npufuse_tui.app import NpufuseApp, Start
    from npufuse_tui.language import set_language

    set_language(language)
    for steps in (walks.candidates, walks.explain, walks.checkpoint, walks.board, walks.curves, walks.report):
        folder = Path(tempfile.mkdtemp())

        def loop(folder: Path = folder) -> FakeLoop:
            made = FakeLoop(folder)
            made.shown = Path("/work/tiny-llm/.git/npufuse/20261201-0400-ab/reports")
            return made

        doors = FakeDoors(folder, loop)
        app = NpufuseApp(doors, Start(path="/work/tiny-llm"))
        async with app.run_test(size=(120, 36)) as pilot:
            await steps(pilot, doors)
            await pilot.pause()
            PLACE.mkdir(parents=True, exist_ok=True)
            (PLACE / f"{steps.__name__}.{language}.svg").write_text(local(app.export_screenshot()), "utf-8")


if __name__ == "__main__":
    for chosen in ("en", "zh"):
        asyncio.run(take(chosen))
