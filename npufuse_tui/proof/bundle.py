"""What a child imports of ours, laid out in a folder of its own.

The child runs under the interpreter of the user's model, which need have nothing but torch. The folder holds only
code of ours that needs the standard library and torch, and it is all that is put in front of the child's path: what
is installed beside npufuse never reaches the child. It lies in the user's cache directory under a name made of the
version and the content, so it is made once and two npufuses never meet in one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from npufuse_tui import __version__

_ENGINE = Path(__file__).resolve().parent.parent
_FILES = ("__init__.py", "errors.py", "events.py", "language.py", "model.py", "rules.py")
_PROOF = (
    "__init__.py",
    "captured.py",
    "cases.py",
    "child.py",
    "compare.py",
    "execute.py",
    "knowledge_cases.py",
    "namespace.py",
    "outcome.py",
    "run.py",
    "stubs.py",
)
_START = "import sys\nfrom npufuse_tui.proof.child import main\nsys.exit(main(sys.argv[1:]))\n"


def lay_out(folder: Path | None = None) -> Path:
    """The bundle's folder, complete; `run_proof.py` in it starts the child.

    `folder` takes the place of the user's cache directory. Raises OSError where it cannot be written.
    """
    content = _content()
    digest = hashlib.sha256()
    for name in sorted(content):
        digest.update(name.encode() + b"\0" + hashlib.sha256(content[name]).digest())
    root = folder if folder is not None else _cache()
    target = root / f"{__version__}-{digest.hexdigest()[:16]}"
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=root))
    try:
        for name, data in content.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(data)
        made.chmod(0o755)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


def _content() -> dict[str, bytes]:
    """Path in the bundle → bytes."""
    found = {f"npufuse_tui/{name}": (_ENGINE / name).read_bytes() for name in _FILES}
    found.update({f"npufuse_tui/proof/{name}": (_ENGINE / "proof" / name).read_bytes() for name in _PROOF})
    spec = importlib.util.find_spec("npufuse_tui.knowledge")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        found.update({f"npufuse_tui/knowledge/{path.name}": path.read_bytes() for path in Path(place).glob("*.py")})
    found["run_proof.py"] = _START.encode()
    return found


def child_environment(environ: dict[str, str]) -> dict[str, str]:
    """`environ` without what would lead the child to npufuse's own interpreter or make its output unreadable."""
    found = {
        name: value for name, value in environ.items() if name not in ("PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT")
    }
    found.update(PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1", NO_COLOR="1", TERM="dumb", PYTHONIOENCODING="utf-8")
    found.setdefault("OMP_NUM_THREADS", "1")
    return found


def _cache() -> Path:
    from platformdirs import user_cache_path

    return Path(os.fspath(user_cache_path("npufuse"))) / "bundle"
