"""What a child imports of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from npufuse_tui.proof import bundle


def test_laid_out_once_and_whole(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: bundle.lay_out(tmp_path), range(16)))
    assert len(found) == 1 and [path.name for path in tmp_path.iterdir()] == [found.pop().name]


def test_content_decides_the_name(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    first = bundle.lay_out(tmp_path)
    content = bundle._content()
    monkeypatch.setattr(bundle, "_content", lambda: {**content, "npufuse_tui/more.py": b""})
    assert bundle.lay_out(tmp_path) != first


def test_what_is_in_it_needs_the_standard_library_and_torch_alone(tmp_path: Path) -> None:
    """Every module is imported by a Python that sees no site-packages; torch is a stand-in that is never called."""
    folder = bundle.lay_out(tmp_path)
    modules = sorted(
        path.relative_to(folder).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        for path in (folder / "npufuse_tui").rglob("*.py")
    )
    assert "npufuse_tui.proof.execute" in modules and "npufuse_tui.knowledge.rms_norm" in modules
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(folder)!r})\n" + "".join(f"import {name}\n" for name in modules),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_child_environment_keeps_what_the_model_needs() -> None:
    given = {
        "PYTHONPATH": "/usr/local/Ascend/python",
        "PYTHONHOME": "/x",
        "PYTHONSTARTUP": "/y",
        "LD_LIBRARY_PATH": "/z",
    }
    found = bundle.child_environment(given)
    assert found["PYTHONPATH"] == "/usr/local/Ascend/python" and found["LD_LIBRARY_PATH"] == "/z"
    assert "PYTHONHOME" not in found and "PYTHONSTARTUP" not in found
    assert os.environ.get("OMP_NUM_THREADS") is None or found["OMP_NUM_THREADS"]
