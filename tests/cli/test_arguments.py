"""A path where a command's name could stand, options that may stand anywhere, and an optional value."""

from __future__ import annotations

from pathlib import Path

import pytest

from npufuse_tui.commands.arguments import arranged, language_asked

COMMANDS = {"scan", "api", "emulate"}
WITH_VALUE = {"--run", "--python", "--lang", "--resume"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], []),
        (["."], ["--path=."]),
        (["models/", "--run", "python t.py"], ["--path=models/", "--run", "python t.py"]),
        (["--run", "scan", "x"], ["--run", "scan", "--path=x"]),
        (["scan", "x"], ["scan", "x"]),
        (["./scan"], ["--path=./scan"]),
        (["--resume"], ["--resume="]),
        (["--resume", "20261201-0403"], ["--resume=20261201-0403"]),
        (["--resume", "."], ["--resume=", "--path=."]),
        ([".", "--resume", "--ascii"], ["--path=.", "--resume=", "--ascii"]),
        (["--", "-odd", "--path"], ["--path=-odd", "--path=--path"]),
        (["scan", "x", "--lang", "zh", "--debug"], ["--lang", "zh", "--debug", "scan", "x"]),
        (["scan", "--lang=zh", "x"], ["--lang=zh", "scan", "x"]),
        (["scan", "--", "--lang"], ["scan", "--", "--lang"]),
        (["emulate", "python", "--lang", "zh"], ["emulate", "python", "--lang", "zh"]),
        (["-"], ["--path=-"]),
    ],
)
def test_arranged(words: list[str], expected: list[str]) -> None:
    assert arranged(words, COMMANDS, WITH_VALUE) == expected


def test_a_folder_that_is_called_like_a_session_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "20261201").mkdir()
    assert arranged(["--resume", "20261201"], COMMANDS, WITH_VALUE) == ["--resume=", "--path=20261201"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--lang", "zh"], "zh"),
        (["scan", "--lang=en"], "en"),
        (["scan", "."], None),
        (["emulate", "x", "--lang", "zh"], None),
        (["--", "--lang", "zh"], None),
        (["--lang"], None),
    ],
)
def test_language_asked(words: list[str], expected: str | None) -> None:
    assert language_asked(words) == expected
