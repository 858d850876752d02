"""An environment in which the real torch_npu loads on a machine without an NPU and without CANN.

torch_npu's libraries want CANN's. Empty libraries of those names stand in for them, one of which defines, as functions
that return 0, every symbol that nothing else provides. Then all works that needs no device: schemas, argument checks,
meta tensors, and kernels that are registered for the CPU.

The environment is made once and kept in NPUFUSE_REAL_TORCH_NPU_ENV or the user's cache. It sees the torch of the
environment that the tests run in, and holds torch_npu only.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

VERSION = "2.13.0"
EMPTY = ("libhccl.so", "libacl_op_compiler.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so")
FILLED = "libascendcl.so"
SYSTEM = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1")
SYSTEM += ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


class Unavailable(Exception):
    """The environment cannot be made here; the message is the plain reason."""


def folder() -> Path:
    """Where the environment is, or would be."""
    given = os.environ.get("NPUFUSE_REAL_TORCH_NPU_ENV")
    if given:
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = f"{sys.implementation.name}{sys.version_info.major}{sys.version_info.minor}"
    return cache / "npufuse" / f"real-torch_npu-{VERSION}-{python}"


def environment() -> tuple[Path, dict[str, str]]:
    """(the interpreter, its environment variables). Makes it where it is not there. Raises Unavailable."""
    home = folder()
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        _make(home)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NPUFUSE_EMULATED")}
    variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [str(home / "cann"), os.environ.get("LD_LIBRARY_PATH")])
    )
    variables.pop("PYTHONPATH", None)
    return python, variables


def _make(home: Path) -> None:
    if platform.system() != "Linux":
        raise Unavailable(f"torch_npu has no wheel for {platform.system()}")
    try:
        torch = importlib.metadata.version("torch").split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        raise Unavailable("torch is not installed beside the tests") from None
    if torch != VERSION:
        raise Unavailable(f"torch {torch} is installed beside the tests, and torch_npu {VERSION} needs torch {VERSION}")
    for tool in ("gcc", "nm"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not on PATH, and stand-ins for CANN's libraries must be built")
    home.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=home.parent))
    try:
        venv.create(made, with_pip=False, symlinks=True)
        ours = Path(sysconfig.get_paths()["purelib"])
        site = next(made.glob("lib/python*/site-packages"))
        (site / "beside.pth").write_text(f"{ours}\n", encoding="utf-8")
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
        result = subprocess.run([*install, f"torch_npu=={VERSION}"], capture_output=True, text=True)
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise Unavailable(f"torch_npu {VERSION} could not be installed: {last}")
        build_libraries(site / "torch_npu", ours / "torch", made / "cann")
        (made / "complete").write_text(VERSION, encoding="utf-8")
        if home.exists():
            shutil.rmtree(home)
        made.rename(home)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def build_libraries(torch_npu: Path, torch: Path, target: Path) -> int:
    """Build the stand-ins into `target`; answers how many symbols they define."""
    own = [*torch_npu.glob("lib/*.so"), *torch_npu.glob("_C*.so")]
    wanted = set().union(*(_symbols(library, "--undefined-only") for library in own))
    providers = [*own, *torch.glob("lib/*.so*"), *filter(None, map(_system_library, SYSTEM))]
    provided = set().union(*(_symbols(library, "--defined-only") for library in providers))
    missing = sorted(name for name in wanted - provided if not name.lstrip("_").startswith("Py"))
    target.mkdir(parents=True)
    source = target / "filled.c"
    source.write_text("".join(f"long {name}(void) {{ return 0; }}\n" for name in missing), encoding="utf-8")
    _compile(source, target / FILLED)
    empty = target / "empty.c"
    empty.write_text("void npufuse_nothing(void) {}\n", encoding="utf-8")
    for name in EMPTY:
        _compile(empty, target / name)
    return len(missing)


def _symbols(library: Path, which: str) -> set[str]:
    """The names of a library's dynamic symbols; of the undefined ones those that must be there."""
    listed = subprocess.run(["nm", "-D", "-P", which, str(library)], capture_output=True, text=True).stdout
    found = set()
    for line in listed.splitlines():
        name, kind = (*line.split(), "", "")[:2]
        if which == "--undefined-only" and kind != "U":
            continue  # weak: may stay undefined
        found.add(name.partition("@")[0])
    return found


def _system_library(name: str) -> Path | None:
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return Path(found) if os.path.isabs(found) else None


def _compile(source: Path, library: Path) -> None:
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(library), str(source), f"-Wl,-soname,{library.name}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise Unavailable(f"gcc could not build {library.name}: {result.stderr.strip()[:300]}")
