"""The Python of the user's model: which one it is, and what it has.

Nothing here imports torch. The probe runs in a child with a time limit, asks the metadata of the installed packages,
and imports torch only where torch_npu is installed, since whether that can be loaded decides how every other child
is started.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from npufuse_tui.errors import MachineLacks, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Launch

OLDEST = (3, 10)

_PROBE = """
import importlib.metadata as m, importlib.util as u, json, os, sys
def version(*names):
    for name in names:
        try: return m.version(name)
        except Exception: pass
    return None
def there(name):
    try: return u.find_spec(name) is not None
    except Exception: return False
found = {"version": "%d.%d.%d" % sys.version_info[:3], "path": sys.executable, "torch": None, "torch_npu": None,
         "npu": False, "why": "", "loads": None}
if there("torch"):
    found["torch"] = version("torch") or "unknown"
if there("torch_npu"):
    found["torch_npu"] = version("torch_npu", "torch-npu") or "unknown"
if found["torch_npu"] and "npufuse.emulated" in found["torch_npu"]:
    found["torch_npu"] = None
elif found["torch"] and found["torch_npu"]:
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    try:
        import torch
        import torch_npu
        found["loads"] = True
        found["npu"] = bool(torch.npu.is_available()) and torch.npu.device_count() > 0
        if not found["npu"]: found["why"] = "torch_npu loads and sees no device"
    except BaseException as problem:
        found["loads"] = False
        found["why"] = (type(problem).__name__ + ": " + str(problem)).splitlines()[0][:300]
print("\\nnpufuse-probe " + json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, probed. `environment` is what children under it need set."""

    path: Path
    version: str
    torch: str | None
    torch_npu: str | None
    npu: bool
    why_no_npu: Text | None
    environment: tuple[tuple[str, str], ...] = ()

    def demand_torch(self) -> None:
        """Raises MachineLacks, with the mend, when there is no torch or the Python is too old for the harness."""
        if tuple(int(part) for part in self.version.split(".")[:2]) < OLDEST:
            raise MachineLacks(
                Text(
                    "{path} is Python {version}, and the checks need 3.10 or newer: name another one with --python",
                    "{path} 是 Python {version}，检查需要 3.10 或更新的版本：请用 --python 指定另一个解释器",
                ).format(path=self.path, version=self.version)
            )
        if self.torch is None:
            raise MachineLacks(
                Text(
                    "{path} (Python {version}) has no torch: install it there, or name another one with --python",
                    "{path}（Python {version}）没有安装 torch：请在其中安装 torch，或用 --python 指定模型所用的解释器",
                ).format(path=self.path, version=self.version)
            )


_probed: dict[tuple[str, float, float], Interpreter] = {}


def probe(python: Path, time_limit: float = 120.0) -> Interpreter:
    """What the interpreter has. Asked once in a process for each state of the executable and its site-packages.

    Raises WrongInput when `python` cannot be run as one, MachineLacks when it does not answer within `time_limit`
    seconds.
    """
    key = (str(python), *_stamps(python))
    if key not in _probed:
        _probed[key] = _ask(python, time_limit)
    return _probed[key]


def _ask(python: Path, time_limit: float) -> Interpreter:
    with tempfile.TemporaryDirectory(prefix="npufuse-probe-") as empty:
        try:
            done = subprocess.run(
                [str(python), "-c", _PROBE],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=time_limit,
                cwd=empty,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as problem:
            raise MachineLacks(
                Text(
                    "{path} did not answer within {seconds:.0f} s: run it by hand, or name another one with --python",
                    "{path} 在 {seconds:.0f} 秒内没有回应：请手动运行它试试，或用 --python 指定另一个解释器",
                ).format(path=python, seconds=time_limit)
            ) from problem
        except OSError as problem:
            raise _no_python(python, problem.strerror or str(problem)) from problem
    lines = [line for line in done.stdout.splitlines() if line.startswith("npufuse-probe ")]
    if not lines:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise _no_python(python, said[:200])
    found = json.loads(lines[-1].removeprefix("npufuse-probe "))
    return Interpreter(
        path=python,
        version=found["version"],
        torch=found["torch"],
        torch_npu=found["torch_npu"],
        npu=found["npu"],
        why_no_npu=None if found["npu"] else _why(found),
        environment=(("TORCH_DEVICE_BACKEND_AUTOLOAD", "0"),) if found["loads"] is False else (),
    )


def _why(found: dict[str, str | None]) -> Text:
    if found["torch"] is None:
        return Text("torch is not installed", "没有安装 torch")
    if found["torch_npu"] is None:
        return Text("torch_npu is not installed", "没有安装 torch_npu")
    return Text("torch_npu cannot use an NPU: {why}", "torch_npu 无法使用 NPU：{why}").format(why=found["why"])


def _no_python(python: Path, why: str) -> WrongInput:
    return WrongInput(
        Text(
            "{path} cannot be run as a Python interpreter ({why}): name one with --python",
            "{path} 不能作为 Python 解释器运行（{why}）：请用 --python 指定一个",
        ).format(path=python, why=why)
    )


def _stamps(python: Path) -> tuple[float, float]:
    """When the executable and what is installed beside it last changed; 0 where that cannot be told."""

    def changed(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0

    packages = [changed(path) for path in python.parent.parent.glob("lib/python3*/site-packages")]
    return changed(python), max(packages, default=0.0)


def find_python(explicit: str | None, launch: Launch | None, root: Path) -> Path:
    """The interpreter of the user's model: the one named, else the launch command's, else the repo's, else npufuse's
    own.

    `explicit` is a path or a command name (`--python`). Raises WrongInput when it is neither.
    """
    if explicit:
        return _named(explicit, root)
    if launch is not None and launch.python:
        return _named(launch.python, root)
    search = dict(launch.environment).get("PATH") if launch is not None else None
    if launch is not None:
        found = _of_command(launch.command, root, search)
        if found is not None:
            return found
    own = Path(sys.executable)
    for folder in (".venv", "venv"):
        candidate = root / folder / "bin" / "python"
        if os.access(candidate, os.X_OK):
            return candidate
    if importlib.util.find_spec("torch") is not None:
        return own
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    beside = [Path(active) / "bin" / "python"] if active else []
    on_path = [Path(place) for name in ("python", "python3") if (place := shutil.which(name))]
    others = [one for one in (*beside, *on_path) if os.access(one, os.X_OK)]
    return others[0] if others else own


def _named(name: str, root: Path) -> Path:
    expanded = Path(name).expanduser()
    places = [expanded] if expanded.is_absolute() else [Path.cwd() / expanded, root / expanded]
    for place in places if os.sep in name or expanded.is_absolute() else []:
        if place.is_dir():  # an environment's folder
            place = place / "bin" / "python"
        if os.access(place, os.X_OK) and place.is_file():
            return place.absolute()
    found = shutil.which(name) if os.sep not in name else None
    if found:
        return Path(found).absolute()
    raise WrongInput(
        Text(
            "there is no Python interpreter at {name}: give --python a path or a command that exists",
            "{name} 处没有 Python 解释器：请给 --python 一个存在的路径或命令",
        ).format(name=name)
    )


_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_ACTIVATE = re.compile(r"(?:^|[;&\n]\s*|\s)(?:source|\.)\s+(\S+)/bin/activate\b")
_WRAPPERS = {"nohup", "time", "nice", "exec", "env", "stdbuf", "numactl", "setsid", "command"}
_SHELLS = {"bash", "sh", "zsh", "dash"}
_PYTHON = re.compile(r"^python[0-9.]*$")


def _of_command(command: str, root: Path, search: str | None, depth: int = 0) -> Path | None:
    """The interpreter that a shell command would use, as far as its words tell; None where they do not.

    Sees `VAR=1 python …`, `/path/bin/python …`, `torchrun …` (the interpreter beside the script), `source
    env/bin/activate && …` and a script given to a shell, one level deep.
    """
    activated = _ACTIVATE.search(command)
    if activated:
        python = (root / Path(activated.group(1)).expanduser()) / "bin" / "python"
        if os.access(python, os.X_OK):
            return python
    for part in re.split(r"&&|\|\||[;|\n]", command):
        words = _words(part)
        while words and (_ASSIGNMENT.match(words[0]) or words[0] in _WRAPPERS or words[0].startswith("-")):
            words.pop(0)
        if not words:
            continue
        name = Path(words[0]).name
        if name in _SHELLS and depth < 2:
            script = next((root / word for word in words[1:] if not word.startswith("-")), None)
            if script is not None and script.is_file():
                text = script.read_text(encoding="utf-8", errors="replace")
                found = _of_command(text.replace("\\\n", " "), root, search, depth + 1)
                if found is not None:
                    return found
            if "-c" in words and words.index("-c") + 1 < len(words):
                return _of_command(words[words.index("-c") + 1], root, search, depth + 1)
            continue
        executable = _executable(words[0], root, search)
        if executable is None:
            continue
        if _PYTHON.match(name):
            return executable
        if executable.suffix == ".sh" and depth < 2:
            found = _of_command(
                executable.read_text(encoding="utf-8", errors="replace").replace("\\\n", " "), root, search, depth + 1
            )
            if found is not None:
                return found
            continue
        behind = _interpreter_of_script(executable)
        if behind is not None:
            return behind
    return None


def _words(part: str) -> list[str]:
    lines = [line for line in part.splitlines() if not line.lstrip().startswith("#")]
    try:
        return shlex.split(" ".join(lines), comments=True)
    except ValueError:
        return part.split()


def _executable(word: str, root: Path, search: str | None) -> Path | None:
    if os.sep in word:
        place = root / Path(word).expanduser()
        return place.absolute() if os.access(place, os.X_OK) and place.is_file() else None
    found = shutil.which(word, path=search)
    return Path(found) if found else None


def _interpreter_of_script(script: Path) -> Path | None:
    """The Python in the first line of a console script such as torchrun, accelerate or deepspeed."""
    try:
        with script.open("rb") as file:
            first = file.readline(512)
            second = file.readline(512)
    except OSError:
        return None
    for line in (first, second):  # a long path is written as: #!/bin/sh, then '''exec' "/path/python" …
        found = re.search(rb"(/[^'\"\s]*/python[0-9.]*)", line)
        if found:
            python = Path(os.fsdecode(found.group(1)))
            return python if os.access(python, os.X_OK) else None
    return None
