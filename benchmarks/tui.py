"""How quick the screens are: `python benchmarks/tui.py [--json]`.

Measured with Textual's pilot (headless) and, for the start, on a real pseudo-terminal; each line says its goal. A key's
time runs from the key until the app has nothing left to do. Numbers are of this machine, now: nothing is remembered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "screens"))

import sample  # noqa: E402
from fake_loop import FakeDoors, FakeLoop  # noqa: E402
from npufuse_tui.screens.candidates import CandidatesScreen  # noqa: E402
from npufuse_tui.screens.diff_view import DiffView  # noqa: E402
from npufuse_tui.screens.log_view import LogView  # noqa: E402
from textual.app import App, ComposeResult  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from npufuse_tui.app import NpufuseApp, Start  # noqa: E402
from npufuse_tui.model import Decision, Launch  # noqa: E402

Row = tuple[str, float, float, str]


def first_screen(repeat: int) -> list[Row]:
    """From the command to the first screen, on the demo repo, in a pseudo-terminal."""
    import pexpect

    folder = Path(tempfile.mkdtemp()) / "demo"
    code = "import sys; from pathlib import Path; from npufuse_tui.demo import create; create(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, stdout=subprocess.DEVNULL)
    command = Path(sys.executable).with_name("npufuse")
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        child = pexpect.spawn(
            str(command),
            ["--lang", "en", str(folder)],
            dimensions=(24, 80),
            env={**os.environ, "TERM": "xterm-256color"},
        )
        child.expect(b"Quit", timeout=60)
        seconds.append(time.perf_counter() - start)
        child.close(force=True)
    return [("first screen after the command (median)", statistics.median(seconds), 0.6, "s")]


async def ready(pilot: Pilot[None], screen: type) -> None:
    deadline = time.monotonic() + 60
    while not (isinstance(pilot.app.screen, screen) and pilot.app.screen.ready):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{screen.__name__} did not come up")
        await pilot.pause(0.01)
    await pilot.pause()


async def key(pilot: Pilot[None], name: str) -> float:
    """Milliseconds until a key is dealt with."""
    start = time.perf_counter()
    await _press(pilot, name)
    return 1000 * (time.perf_counter() - start)


async def _press(pilot: Pilot[None], name: str) -> None:
    from textual import events

    app = pilot.app
    character = name if len(name) == 1 else None
    app.post_message(events.Key(name, character))
    done = asyncio.Event()
    app.call_later(done.set)  # behind the key in the app's queue
    await done.wait()
    screen = app.screen
    drawn = asyncio.Event()
    screen.call_after_refresh(drawn.set)
    await drawn.wait()


async def table(rows: int) -> list[Row]:
    """Keys in the candidate table with that many candidates."""
    folder = Path(tempfile.mkdtemp())
    doors = FakeDoors(folder, lambda: FakeLoop(folder, sample.scan_result(found=sample.many(rows))))
    app = NpufuseApp(doors, Start(path="/work/tiny-llm"))
    moves, letters = [], []
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot, CandidatesScreen)
        for _ in range(60):
            for name in ("down", "pagedown", "up", "end", "home"):
                moves.append(await key(pilot, name))
        await key(pilot, "slash")
        for name in "model_0123":
            letters.append(await key(pilot, "underscore" if name == "_" else name))
    return [
        (f"key in the table, {rows} candidates (95th percentile)", percentile(moves), 50, "ms"),
        (f"letter of the filter, {rows} candidates (95th percentile)", percentile(letters), 50, "ms"),
    ]


class One(App[None]):
    """A single widget on a screen."""

    def __init__(self, widget: DiffView | LogView) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget

    def get_theme_variable_defaults(self) -> dict[str, str]:
        from npufuse_tui.screens.theme import MEANINGS

        return dict(MEANINGS)


async def diff(lines: int) -> list[Row]:
    """A diff that changes every fifth line of a file of that many lines, shown whole."""
    import difflib

    old = [f"    value_{number} = function_{number}(first, second={number})\n" for number in range(lines)]
    new = [line.replace("first", "third") if number % 5 == 0 else line for number, line in enumerate(old)]
    text = "".join(difflib.unified_diff(old, new, "a/x.py", "b/x.py", n=lines))
    view = DiffView()
    async with One(view).run_test(size=(160, 50)) as pilot:
        view.show("")
        await pilot.pause()
        start = time.perf_counter()
        view.show(text)
        drawn = asyncio.Event()
        view.call_after_refresh(drawn.set)
        await drawn.wait()
        took = 1000 * (time.perf_counter() - start)
    return [(f"diff of a file of {lines} lines", took, 200, "ms")]


async def flood(seconds: float, rate: int) -> list[Row]:
    """Keys on the board while a log grows by that many lines a second, then the memory after a million lines."""
    from npufuse_tui.screens.board import BoardScreen
    from npufuse_tui.screens.report import ReportScreen

    folder = Path(tempfile.mkdtemp())
    loop = FakeLoop(folder)
    loop.scan()
    loop.decide(("9f3a1c27", "51be7704"), Decision.APPROVED)
    loop.confirm()
    loop.set_launch(Launch("python train.py"))
    loop.apply()
    loop.verify()
    log = folder / "logs" / "base-baseline-2.log"
    stop = threading.Event()

    def write() -> None:
        begun, written = time.monotonic(), 0
        with log.open("ab", buffering=0) as file:
            while not stop.is_set():
                due = int((time.monotonic() - begun) * rate) - written
                if due > 0:
                    file.write(b"step 12345 loss 2.345678 grad_norm 1.234 lr 3e-4 time 0.123\n" * due)
                    written += due
                stop.wait(0.01)

    waits = []
    app = NpufuseApp(FakeDoors(folder, lambda: loop), Start(resume=""))
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot, ReportScreen)
        while app.busy:
            await pilot.pause(0.05)
        app.go_to("board")
        await ready(pilot, BoardScreen)
        thread = threading.Thread(target=write)
        thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            waits.append(await key(pilot, "down"))
            waits.append(await key(pilot, "up"))
            await asyncio.sleep(0.02)
        stop.set()
        thread.join()
        with log.open("ab") as file:
            for _ in range(100):
                file.write(b"step 12345 loss 2.345678 grad_norm 1.234 lr 3e-4 time 0.123\n" * 10_000)
        view = app.screen.query_one(LogView)
        assert view.log_file is not None
        while view.log_file.poll():
            await pilot.pause(0)
        shown = len(view.log_file)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        (f"longest wait for a key at {rate} log lines a second", max(waits), 100, "ms"),
        (f"most memory of this process after {shown} log lines", memory, 300, "MB"),
    ]


def percentile(values: list[float], share: float = 0.95) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--repeat", type=int, default=5)
    options = asked.parse_args()
    rows: list[Row] = asyncio.run(flood(5, 20_000))
    rows += asyncio.run(table(10_000))
    rows += asyncio.run(diff(5_000))
    rows += first_screen(options.repeat)
    if options.json:
        print(
            json.dumps([{"what": what, "value": value, "goal": goal, "unit": unit} for what, value, goal, unit in rows])
        )
    else:
        for what, value, goal, unit in rows:
            print(f"{'ok  ' if value <= goal else 'over'} {what:<62} {value:9.2f} {unit:<3} goal {goal:g} {unit}")
    return 0 if all(value <= goal for _, value, goal, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
