"""Where a torch_npu's own files are: an installed package, a wheel, or a folder. Nothing is imported from it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text

DOCUMENTATION = "_op_plugin_docs.py"
DECLARATIONS = "csrc/aten/npu_native_functions_by_codegen.yaml"
VERSION = "version.py"

_FIND = "import importlib.util as u; s = u.find_spec('torch_npu'); print((s and s.origin) or '')"
_TIME_LIMIT = 10.0  # seconds; finding a package is a matter of milliseconds
_LARGEST = 64 * 1024 * 1024  # bytes; the real files have about one megabyte


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """The files of one torch_npu: `root` is its package folder, or a wheel when `wheel` is set."""

    root: Path
    wheel: bool

    def read(self, name: str) -> str | None:
        """The text of a file of the package, or None when it has none of that name."""
        if not self.wheel:
            path = self.root / name
            try:
                if path.stat().st_size > _LARGEST:
                    return None
                return path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                return None
        names, read = _wheel(*self.stamp)
        size = names.get(f"torch_npu/{name}")
        if size is None or size > _LARGEST:
            return None
        return read(f"torch_npu/{name}").decode("utf-8", errors="replace")

    @property
    def version(self) -> str | None:
        """The version that the package says it has."""
        text = self.read(VERSION) or ""
        match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
        if match:
            return match[1]
        if self.wheel:
            named = re.match(r"torch_npu-([^-]+)-", self.root.name)
            return named[1] if named else None
        return None

    @property
    def stamp(self) -> tuple[str, int, int]:
        """Changes when the files do."""
        path = self.root if self.wheel else self.root / DECLARATIONS
        try:
            status = path.stat()
        except OSError:
            return (str(self.root), 0, 0)
        return (str(self.root), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=2)
def _wheel(path: str, changed: int, size: int) -> tuple[dict[str, int], Callable[[str], bytes]]:
    """The names and sizes in a wheel, and how one is read: its table of contents is long, and read once."""
    archive = zipfile.ZipFile(path)
    return {one.filename: one.file_size for one in archive.infolist()}, archive.read


def package_at(path: Path) -> PackageFiles:
    """The torch_npu at a path: a wheel, its package folder, or a folder that holds it (site-packages, an environment).

    Raises WrongInput when there is none.
    """
    path = path.expanduser()
    if path.is_file():
        files = PackageFiles(path, wheel=True)
        try:
            names, _ = _wheel(*files.stamp)
        except (zipfile.BadZipFile, OSError):
            names = {}
        if f"torch_npu/{DECLARATIONS}" in names or f"torch_npu/{DOCUMENTATION}" in names:
            return files
        raise _none_at(path)
    for root in (path, path / "torch_npu", *sorted(path.glob("lib*/python3*/site-packages/torch_npu"))):
        if (root / DECLARATIONS).is_file() or (root / DOCUMENTATION).is_file():
            return PackageFiles(root, wheel=False)
    raise _none_at(path)


def installed_package(python: str | None = None) -> PackageFiles | None:
    """The torch_npu that an interpreter would import, found by its path alone; None where there is none.

    `python` None means: of the current environment. The emulator's stand-in has no such files and is not found.
    """
    # Links are not followed: the Python of a virtual environment is a link to one that has other packages.
    if python is None or Path(shutil.which(python) or python).absolute() == Path(sys.executable).absolute():
        places = [Path(place) / "torch_npu" for place in sys.path if place]
    else:
        places = [Path(place) for place in (_ask(python),) if place]
    for root in places:
        if (root / DECLARATIONS).is_file() or (root / DOCUMENTATION).is_file():
            return PackageFiles(root, wheel=False)
    return None


def _ask(python: str) -> str:
    try:
        answer = subprocess.run(
            [python, "-c", _FIND], capture_output=True, text=True, timeout=_TIME_LIMIT, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = answer.stdout.strip().splitlines()
    return str(Path(lines[-1]).parent) if answer.returncode == 0 and lines and lines[-1] else ""


def _none_at(path: Path) -> WrongInput:
    return WrongInput(
        Text(
            "{path} holds no torch_npu; give a torch_npu wheel, its package folder, or a version that "
            "`npufuse api list` names",
            "{path} 里没有 torch_npu；请给出 torch_npu 的 wheel 文件、其包目录，或 `npufuse api list` 列出的版本号",
        ).format(path=path)
    )
