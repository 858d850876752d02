"""The CANN software on this machine: found by the environment or in its usual places, read from its version files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("libascendcl.so", "libge_runner.so", "libhccl.so", "libopapi.so")
_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_VERSION_FILES = (
    "*-linux/ascend_toolkit_install.info",
    "*-linux/ascend_nnrt_install.info",
    "ascend_toolkit_install.info",
)
_PARTS = ("runtime", "compiler", "opp", "hccl")
_LINE = re.compile(r"^\s*(?:Version|version)\s*=\s*(\S+)", re.MULTILINE)
_CONFIG_LINE = re.compile(r"toolkit_(?:installed|running|upgrade)_version\s*=\s*\[?[^:\]\s]*:?([^\]\s]+)")
_SMALL = 1 << 20  # bytes; version files have a few hundred


@dataclass(frozen=True, slots=True)
class Cann:
    """One CANN installation.

    `named` is the environment variable that names it, None when it was found in a usual place and no variable is set.
    `set_env` is the script that sets the environment up; `loadable` says whether LD_LIBRARY_PATH reaches its libraries.
    """

    home: Path
    version: str | None
    parts: tuple[tuple[str, str], ...]
    libraries: tuple[str, ...]
    set_env: Path | None
    named: str | None
    loadable: bool
    kernels: tuple[str, ...]

    def part(self, name: str) -> str | None:
        return dict(self.parts).get(name)


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver and firmware as installed: versions from their own files, and the device nodes."""

    version: str | None
    firmware: str | None
    nodes: tuple[str, ...]


def find_cann(environ: Mapping[str, str], root: Path = Path("/")) -> Cann | None:
    """The installation that the environment names, else the first in the usual places under `root`."""
    for variable in _HOMES:
        value = environ.get(variable)
        if value and Path(value).is_dir():
            return _read(Path(value), environ, variable)
    for home in _usual(root, environ):
        if home.is_dir() and any((home / one).exists() for one in ("lib64", "runtime", "compiler", "version.cfg")):
            return _read(home, environ, None)
    return None


def wrong_home(environ: Mapping[str, str]) -> str | None:
    """What a variable says when it names a folder that is not there."""
    for variable in _HOMES:
        value = environ.get(variable)
        if value and not Path(value).is_dir():
            return f"{variable}={value}"
    return None


def find_driver(root: Path = Path("/")) -> Driver:
    """The driver's and firmware's version files and the device nodes under `root`."""
    base = root / "usr/local/Ascend"
    install = _text(root / "etc/ascend_install.info")
    moved = re.search(r"Driver_Install_Path_Param\s*=\s*(\S+)", install)
    if moved:
        base = root / moved[1].lstrip("/")
    nodes = sorted(one.name for one in (root / "dev").glob("davinci[0-9]*")) if (root / "dev").is_dir() else []
    return Driver(
        version=_version(base / "driver/version.info"),
        firmware=_version(base / "firmware/version.info"),
        nodes=tuple(nodes),
    )


def _usual(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    places = [root / "usr/local/Ascend"]
    if environ.get("HOME"):
        places.append(Path(environ["HOME"]) / "Ascend")
    for place in places:
        yield place / "ascend-toolkit/latest"
        yield place / "cann"
        yield from sorted(place.glob("cann-*"), reverse=True)
        yield from sorted((one for one in place.glob("ascend-toolkit/[0-9]*")), reverse=True)
        yield place / "nnrt/latest"


def _read(home: Path, environ: Mapping[str, str], named: str | None) -> Cann:
    places = [home / "lib64", *sorted(home.glob("*-linux/lib64")), home / "runtime/lib64", home / "compiler/lib64"]
    libraries = tuple(one for one in LIBRARIES if any((place / one).exists() for place in places))
    scripts = [
        home / "set_env.sh",
        home.parent / "set_env.sh",
        home / "bin/setenv.bash",
        home.parent.parent / "set_env.sh",
    ]
    search = [Path(one) for one in environ.get("LD_LIBRARY_PATH", "").split(":") if one]
    return Cann(
        home=home,
        version=_toolkit_version(home),
        parts=tuple((one, found) for one in _PARTS if (found := _version(home / one / "version.info"))),
        libraries=libraries,
        set_env=next((one for one in scripts if one.is_file()), None),
        named=named,
        loadable=any((place / "libascendcl.so").exists() for place in search),
        kernels=_kernels(home),
    )


def _kernels(home: Path) -> tuple[str, ...]:
    """The products for which compiled operators are installed, such as ascend910b."""
    for place in ("opp/built-in/op_impl/ai_core/tbe/kernel", "opp/built-in/op_impl/ai_core/tbe/kernel/config"):
        folder = home / place
        if folder.is_dir():
            found = sorted(one.name for one in folder.iterdir() if one.is_dir() and one.name.startswith("ascend"))
            if found:
                return tuple(found)
    return ()


def _toolkit_version(home: Path) -> str | None:
    for pattern in _VERSION_FILES:
        for path in sorted(home.glob(pattern)):
            if found := _version(path):
                return found
    config = _CONFIG_LINE.search(_text(home / "version.cfg"))
    if config:
        return config[1]
    for part in ("toolkit", *_PARTS):
        if found := _version(home / part / "version.info"):
            return found
    named = re.search(r"(?:cann-|ascend-toolkit/)(\d[\w.]*)$", str(home.resolve()))
    return named[1] if named else None


def _version(path: Path) -> str | None:
    found = _LINE.search(_text(path))
    return found[1] if found else None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _SMALL:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
