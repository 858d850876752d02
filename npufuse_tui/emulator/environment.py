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
    user's cache. Raises WrongInput for a version that is none, OSError where the folder cannot be written.
    """
    found = dict(environ)
    path = lay_out(version, folder)
    found["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(path), *_without_ours(environ.get("PYTHONPATH", ""), path)])
    )
    found["NPUFUSE_EMULATED_TORCH_NPU"] = version.strip() if version and version != "newest" else "auto"
    if version == "newest":
        found["NPUFUSE_EMULATED_TORCH_NPU"] = schemas.NEWEST
    found["NPUFUSE_EMULATED_STRICT"] = "1" if strict else "0"
    found["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    found.pop("NPUFUSE_EMULATED_LOG", None)
    if log is not None:
        found["NPUFUSE_EMULATED_LOG"] = str(log)
    return found


def lay_out(version: str | None = None, folder: Path | None = None) -> Path:
    """The folder to put on PYTHONPATH: made once for each content and version, and whole or not there at all."""
    shown = version.strip().split("+")[0] if version and version != "newest" else schemas.NEWEST
    schemas.resolve(shown)
    digest = hashlib.sha256()
    files = _files()
    for relative, source in files:
        digest.update(relative.encode() + b"\0" + source.read_bytes() + b"\0")
    root = folder or _cache()
    target = root / f"{__version__}-{digest.hexdigest()[:16]}-torch_npu-{shown}"
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=root))
    try:
        for relative, source in files:
            (made / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, made / relative)
        _write_metadata(made / f"torch_npu-{shown}{SUFFIX}.dist-info", shown)
        made.chmod(0o755)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


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
    return [entry for entry in pythonpath.split(os.pathsep) if entry and Path(entry).parent != target.parent]


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("npufuse") / "emulator"
