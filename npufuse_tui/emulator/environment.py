"""The environment of a child process in which `import torch_npu` gives the emulator.

No file of the user's is touched and no import is hooked: the child's PYTHONPATH begins with a folder that holds the
package `torch_npu` and its metadata. The metadata names it as a backend of torch, as the real one's does, so that
torch 2.5 and newer load it with `import torch`; and tools that look for an installed distribution find one. The
folder holds nothing else of ours, and nothing but torch and the standard library is needed by what is in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from npufuse_tui import __version__, schemas
from npufuse_tui.errors import MachineLacks
from npufuse_tui.language import Text

SUFFIX = "+npufuse.emulated"
_RUNTIME = Path(__file__).resolve().parent / "runtime"


def emulated(
    environ: Mapping[str, str],
    *,
    version: str | None = None,
    strict: bool = True,
    log: Path | None = None,
    folder: Path | None = None,
) -> dict[str, str]:
    """A copy of `environ` for a child that shall see the emulator.

    `version` is the torch_npu to emulate; None takes the one that is installed where the child runs, else the newest
    that is known. `strict` makes documented limits of the NPU errors, else they are warnings. `log` is a file to which
    the child adds JSON lines about what it emulated. `folder` is where the files are laid out, by default in the
    user's cache. Raises WrongInput for a version that is none, MachineLacks where the folder cannot be written.
    """
    found = dict(environ)
    path = lay_out(version, folder)
    found["PYTHONPATH"] = os.pathsep.join([str(path), *_without_ours(environ.get("PYTHONPATH", ""), path)])
    found["NPUFUSE_EMULATED_TORCH_NPU"] = _plain(version) if version else "auto"
    found["NPUFUSE_EMULATED_STRICT"] = "1" if strict else "0"
    found["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    found.pop("NPUFUSE_EMULATED_LOG", None)
    if log is not None:
        found["NPUFUSE_EMULATED_LOG"] = str(log)
    return found


def lay_out(version: str | None = None, folder: Path | None = None) -> Path:
    """The folder to put on PYTHONPATH: made once for each content and version, and whole or not there at all."""
    shown = _plain(version)
    schemas.resolve(shown)
    digest = hashlib.sha256()
    files = _files()
    for relative, source in files:
        digest.update(relative.encode() + b"\0" + source.read_bytes() + b"\0")
    root = folder or _cache()
    target = root / f"{__version__}-{digest.hexdigest()[:16]}-torch_npu-{shown}"
    if target.is_dir():
        return target
    try:
        _make(target, files, shown)
    except OSError as error:
        raise MachineLacks(
            Text(
                "the emulator cannot be laid out in {folder} ({reason}); make it writable, or set XDG_CACHE_HOME to a "
                "folder that is",
                "无法在 {folder} 中放置模拟器（{reason}）；请使其可写，或将 XDG_CACHE_HOME 设为可写的目录",
            ).format(folder=root, reason=error.strerror or error)
        ) from error
    return target


def _make(target: Path, files: list[tuple[str, Path]], version: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        for relative, source in files:
            (made / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, made / relative)
        _write_metadata(made / f"torch_npu-{version}{SUFFIX}.dist-info", version)
        made.chmod(0o755)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _plain(version: str | None) -> str:
    return version.strip().split("+")[0] if version and version != "newest" else schemas.NEWEST


def _files() -> list[tuple[str, Path]]:
    """(path in the folder, source) of everything that the child may import or read."""
    package = [
        (path.relative_to(_RUNTIME).as_posix(), path)
        for path in sorted(_RUNTIME.rglob("*.py"))
        if "__pycache__" not in path.parts
    ]
    return [*package, *((f"schemas/{path.name}", path) for path in sorted(schemas.folder().glob("*.json")))]


def _write_metadata(folder: Path, version: str) -> None:
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {version}{SUFFIX}\n"
        "Summary: torch_npu emulated on the CPU by npufuse; not the real library\n",
        encoding="utf-8",
    )
    (folder / "entry_points.txt").write_text("[torch.backends]\ntorch_npu = torch_npu:_autoload\n", encoding="utf-8")
    (folder / "INSTALLER").write_text("npufuse\n", encoding="utf-8")
    (folder / "top_level.txt").write_text("torch_npu\n", encoding="utf-8")


def _without_ours(pythonpath: str, target: Path) -> list[str]:
    """The entries of a PYTHONPATH but for earlier folders of the emulator (an emulated process that starts another)."""
    entries = pythonpath.split(os.pathsep) if pythonpath else []
    return [entry for entry in entries if not entry or Path(entry).parent != target.parent]


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("npufuse") / "emulator"
