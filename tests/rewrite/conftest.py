from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of npufuse itself fails the test, where it otherwise costs one file."""
    monkeypatch.setenv("NPUFUSE_STRICT", "1")
