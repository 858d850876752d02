"""The curves are a function of what they show, and each line has the cells that it says, in both languages."""

from __future__ import annotations

import subprocess
import sys

import pytest

DRAWN_TWICE = """
import sys
from npufuse_tui.language import set_language
from npufuse_tui.model import Metric
set_language(sys.argv[1])
from npufuse_tui.screens.curves import CurvesView
from textual.app import App

class Shown(App):
    def compose(self):
        yield CurvesView()

async def main():
    app = Shown()
    async with app.run_test(size=(80, 14)) as pilot:
        view = app.query_one(CurvesView)
        steps = [Metric(step, 5.0 - step / 10, 0.02 + step % 3 / 1000) for step in range(20)]
        view.tell(steps, steps, "task")
        await pilot.pause()
        drawings = [view.render() for _ in range(3)]
        lines = drawings[0].split("\\n")
        room = view.content_size.width // 3 * 3
        assert [line.cell_len for line in lines] == [room] * view.content_size.height, drawings[0].plain
        assert all(one == drawings[0] and one.spans == drawings[0].spans for one in drawings)

import asyncio
asyncio.run(main())
"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_same_steps_are_drawn_the_same_in_a_fresh_process(language: str) -> None:
    done = subprocess.run([sys.executable, "-c", DRAWN_TWICE, language], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
