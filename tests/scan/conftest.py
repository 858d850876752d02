from __future__ import annotations

from pathlib import Path

import pytest

from npufuse_tui.scan import cache


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of npufuse itself fails the test, where it otherwise costs one file."""
    monkeypatch.setenv("NPUFUSE_STRICT", "1")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    folder = tmp_path_factory.mktemp("cache") / "scan"
    monkeypatch.setattr(cache, "folder", lambda: folder)
    return folder
