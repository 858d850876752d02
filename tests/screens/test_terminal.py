"""In a real pseudo-terminal, by keyboard alone: from Home to Report; the terminal is given back on every way out."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

PLAY = Path(__file__).with_name("play.py")
KEYS = {"f5": "\x1b[15~", "enter": "\r", "escape": "\x1b", "down": "\x1b[B", "f2": "\x1bOQ", "f6": "\x1b[17~"}


class Terminal:
    """A child on a pseudo-terminal and the screen that a person would see."""

    def __init__(self, arguments: list[str], size: tuple[int, int] = (80, 24), **environment: str) -> None:
        surroundings = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        surroundings.pop("NO_COLOR", None)
        self.child = pexpect.spawn(
            sys.executable, arguments, env=surroundings, dimensions=(size[1], size[0]), timeout=60
        )
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""

    def read(self) -> None:
        try:
            data = self.child.read_nonblocking(65536, timeout=0.1)
        except pexpect.TIMEOUT:
            return
        self.raw += data
        self.stream.feed(data)

    @property
    def text(self) -> str:
        columns = range(self.screen.columns)
        return "\n".join("".join(self.screen.buffer[y][x].data for x in columns) for y in range(self.screen.lines))

    def wait(self, word: str | Callable[[str], bool], seconds: float = 60) -> None:
        holds = word if callable(word) else lambda text: word in text
        deadline = time.monotonic() + seconds
        while not holds(self.text):
            assert time.monotonic() < deadline, f"{word} did not come:\n{self.text}"
            self.read()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.child.send(KEYS.get(key, key))

    def ended(self, seconds: float = 60) -> int:
        deadline = time.monotonic() + seconds
        while self.child.isalive():
            assert time.monotonic() < deadline, f"it did not end:\n{self.text}"
            try:
                self.read()
            except pexpect.EOF:
                break
        try:
            while True:
                self.raw += self.child.read_nonblocking(65536, timeout=1)
        except (pexpect.EOF, pexpect.TIMEOUT):
            pass
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus)


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*arguments: str, size: tuple[int, int] = (80, 24), **environment: str) -> Terminal:
        opened.append(Terminal([str(PLAY), str(tmp_path), *arguments], size, **environment))
        return opened[-1]

    yield start
    for one in opened:
        one.child.close(force=True)


def test_from_home_to_report_by_keyboard(play: Callable[..., Terminal]) -> None:
    there = play()
    there.wait("Scan this folder")
    there.press("enter")
    there.wait("5 candidates")
    there.press("a")
    there.wait("1 approved;")
    there.press("f6")
    there.wait("2 approved")
    there.press("f5")
    there.wait("branch")
    there.press("f5")
    there.wait("Danger is left")
    there.press(*"approve", "enter")
    there.wait("Launch command")
    there.press(*"python train.py", "f5")
    there.wait("2 of 2 concluded")
    there.press("g")
    there.wait("Reports")
    there.wait("adopt 1")
    there.press("q")
    assert there.ended() == 0
    assert_given_back(there)


def assert_given_back(there: Terminal) -> None:
    """Alternate screen left, mouse reports off, cursor shown."""
    end = there.raw.rpartition(b"\x1b[?1049l")
    assert end[1], "the alternate screen was not left"
    assert there.raw.rfind(b"\x1b[?1000l") > there.raw.rfind(b"\x1b[?1000h")
    assert there.raw.rfind(b"\x1b[?25h") > there.raw.rfind(b"\x1b[?25l")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_terminal_is_given_back_after_a_signal(play: Callable[..., Terminal], number: signal.Signals) -> None:
    there = play()
    there.wait("Scan this folder")
    there.child.kill(number)
    if number is signal.SIGINT:  # Ctrl-C in the terminal is a key; the signal itself ends the app too
        there.press("q")
    there.ended()
    assert_given_back(there)


def test_ascii_draws_nothing_of_ambiguous_width(play: Callable[..., Terminal]) -> None:
    import unicodedata

    there = play("en", "--ascii")
    there.wait("Scan this folder")
    there.press("enter")
    there.wait("5 candidates")
    there.press("a")
    there.wait("1 approved;")
    assert all(ord(one) < 128 or unicodedata.east_asian_width(one) in "WFN" for one in there.text)
    assert "\u2713" not in there.text
    there.press("q")
    assert there.ended() == 0


def test_sixteen_colours_and_chinese(play: Callable[..., Terminal]) -> None:
    there = play("zh", TERM="xterm", COLORTERM="")
    there.wait(lambda text: "扫描此文件夹" in text.replace(" ", ""))
    there.press("enter")
    there.wait(lambda text: "5个候选项" in text.replace(" ", ""))
    there.press("q")
    assert there.ended() == 0
