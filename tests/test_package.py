"""What is in the wheel, and that it works where nothing of the repo is near."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACES = {
    "npufuse_tui": ROOT / "npufuse_tui",
    "npufuse_tui/screens": ROOT / "screens",
    "npufuse_tui/knowledge": ROOT / "knowledge",
}
FORGETTABLE = {".pyc", ".pot"}
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what git has (and from what is new), so that no leftover of a build can come in."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    for name in filter(None, _of_repo().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/", "docs/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(place), str(source)],
        check=True,
        capture_output=True,
        text=True,
    )
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs code with the wheel's content in front of everything; the repo is not on the way."""
    place = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place)

    def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
        start = f"import sys; sys.path.insert(0, {str(place)!r}); sys.meta_path[:] = [f for f in sys.meta_path if "
        start += "'editable' not in getattr(f, '__module__', '') and 'Editable' not in getattr(f, '__name__', '')];"
        return subprocess.run(
            [sys.executable, "-I", "-c", start + code, *words],
            cwd=place,
            env={**os.environ, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def _of_repo() -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    expected = set()
    for name in filter(None, _of_repo().split("\0")):
        for inside, folder in PLACES.items():
            path = ROOT / name
            if folder in path.parents and path.is_file() and path.suffix not in FORGETTABLE:
                expected.add(f"{inside}/{path.relative_to(folder).as_posix()}")
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {name for name in names if ".dist-info/" not in name}
    assert expected - ours == set()
    assert ours - expected == set()


@pytest.mark.parametrize(
    "part",
    [
        "npufuse_tui/py.typed",
        "npufuse_tui/i18n/zh.mo",
        "npufuse_tui/demo/project/data/text.txt",
        "npufuse_tui/demo/project/train.py",
        "npufuse_tui/report/page.css",
        "npufuse_tui/report/identification.html.j2",
        "npufuse_tui/verify/parsers/hf_trainer.py",
        "npufuse_tui/knowledge/rms_norm.py",
        "npufuse_tui/knowledge/devices.toml",
    ],
)
def test_parts_that_are_read_and_not_imported(wheel: Path, part: str) -> None:
    assert part in zipfile.ZipFile(wheel).namelist()


def test_the_licence_and_the_command_are_told(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        named = {name.split("/", 1)[1]: name for name in packed.namelist() if ".dist-info/" in name}
        assert "npufuse = npufuse_tui.cli:main" in packed.read(named["entry_points.txt"]).decode()
        assert packed.read(named["licenses/LICENSE"]) == (ROOT / "LICENSE").read_bytes()


def test_the_version_comes_alone(installed: Run) -> None:
    code = (
        "from npufuse_tui import cli, __version__; import npufuse_tui\n"
        "code = cli.run(['--version'])\n"
        "heavy = {'torch', 'textual', 'libcst', 'pandas', 'git', 'pydantic', 'scipy', 'jinja2'} & set(sys.modules)\n"
        "print(code, *sorted(heavy), __version__, npufuse_tui.__file__)"
    )
    done = installed(code)
    assert done.returncode == 0, done.stderr
    told, seen = done.stdout.splitlines()
    code_seen, version, file = seen.split()
    assert (code_seen, version) == ("0", told.split()[-1])
    assert not Path(file).is_relative_to(ROOT)


def test_it_scans_and_speaks_chinese_from_the_wheel(installed: Run, tmp_path: Path) -> None:
    """Knowledge, schemas, the languages and the demo's files, all read out of the installed package."""
    code = (
        "from pathlib import Path; from npufuse_tui import cli, demo\n"
        "place = demo.create(Path(sys.argv[1]))\n"
        "raise SystemExit(cli.run(['--lang', 'zh', 'scan', str(place), '--no-cache', '--jobs', '1']))"
    )
    done = installed(code, str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    rules = {line.split()[2] for line in done.stdout.splitlines() if "model/language_model.py" in line}
    assert {"rms_norm", "swiglu", "rotary", "fusion_attention"} <= rules
    assert "推荐" in done.stdout


def test_the_screens_find_their_styles_in_the_wheel(installed: Run) -> None:
    code = (
        "import asyncio\nfrom npufuse_tui.app import NpufuseApp, RealDoors, Start\n"
        "async def main():\n"
        "    start = Start(path=sys.argv[1])\n"
        "    app = NpufuseApp(RealDoors(start), start)\n"
        "    async with app.run_test(size=(80, 24)) as pilot:\n"
        "        await pilot.pause()\n"
        "        await pilot.pause()\n        print('stands', type(app.screen).__name__)\n"
        "asyncio.run(main())"
    )
    done = installed(code, str(ROOT / "knowledge"))
    assert done.returncode == 0 and "stands" in done.stdout, done.stderr[-2000:]
