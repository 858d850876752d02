"""A short run of the launch command that records what each candidate's region is called with.

No file of the user's is edited: a folder with one file, `sitecustomize.py`, stands first on the PYTHONPATH of the
run (see `npufuse_tui.verify.capture_hook`). Compilers are switched off by environment variables for this run alone,
so that a function under torch.compile or torch.jit.script is called as it is written.

    capture(launch, worktree, candidates, folder, environ)      runs, and reads what was recorded
    recording(candidates, worktree, folder, environ)            the environment alone, for another runner
    npufuse_tui.verify.capture_records.read(folder, candidates) what was recorded so far
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npufuse_tui.model import Candidate, Launch
from npufuse_tui.rules import Rule, load_rules
from npufuse_tui.verify.capture_records import Captured, read

_HOOK = Path(__file__).resolve().parent / "capture_hook.py"
_COMPILERS_OFF = {"TORCHDYNAMO_DISABLE": "1", "TORCH_COMPILE_DISABLE": "1", "PYTORCH_JIT": "0"}


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How much is recorded, and when the run is long enough.

    Attributes:
        time_limit: seconds for the whole run.
        calls: the run ends once every candidate's region has been called this often.
        settle: seconds that the run goes on after the first recorded call, for candidates that come later.
        details: sets of shapes that are kept in full, for each candidate and process.
        keep_inputs: keep the recorded tensors of all inputs, not of masks and indices alone.
        max_bytes: of tensors kept by one process.
        extra_rules: files or folders with rules of the repo's own.
        cancelled: asked while the command runs.
    """

    time_limit: float = 600.0
    calls: int = 64
    settle: float = 60.0
    details: int = 4
    keep_inputs: bool = False
    max_bytes: int = 512 * 2**20
    extra_rules: tuple[Path, ...] = ()
    cancelled: Callable[[], bool] = field(default=lambda: False)


def recording(
    candidates: Sequence[Candidate],
    worktree: Path,
    folder: Path,
    environ: Mapping[str, str],
    options: CaptureOptions | None = None,
) -> dict[str, str]:
    """The environment of a run that records into `folder`, which is made anew.

    `worktree` is where the candidates' files lie, as they were scanned. Other entries of PYTHONPATH stay, behind
    ours; a sitecustomize of theirs runs after ours.
    """
    options = options or CaptureOptions()
    shutil.rmtree(folder, ignore_errors=True)
    hook = folder / "hook"
    hook.mkdir(parents=True)
    shutil.copyfile(_HOOK, hook / "sitecustomize.py")
    request = {
        "folder": str(folder),
        "details": options.details,
        "keep_inputs": options.keep_inputs,
        "max_bytes": options.max_bytes,
        "files": _files(candidates, worktree, {rule.id: rule for rule in load_rules(options.extra_rules)}),
    }
    wanted = folder / "request.json"
    wanted.write_text(json.dumps(request), encoding="utf-8")
    found = {**environ, **_COMPILERS_OFF, "NPUFUSE_CAPTURE": str(wanted)}
    found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(hook), environ.get("PYTHONPATH", "")]))
    return found


def _files(candidates: Sequence[Candidate], worktree: Path, rules: Mapping[str, Rule]) -> list[dict[str, object]]:
    by_file: dict[str, list[dict[str, object]]] = {}
    for one in candidates:
        flags = _flags(rules.get(one.rule), one.variant)
        by_file.setdefault(one.file, []).append(
            {
                "id": one.id,
                "qualname": one.qualname,
                "start_line": one.start_line,
                "end_line": one.end_line,
                "bindings": [{"name": binding.name, "source": _as_code(binding.source)} for binding in one.bindings],
                "flags": flags,
            }
        )
    found: list[dict[str, object]] = []
    for name, inside in by_file.items():
        path = worktree / name
        try:
            data = path.read_bytes()
        except OSError:
            continue
        digest = hashlib.sha256(data).hexdigest()
        found.append({"path": str(path), "sha256": digest, "size": len(data), "candidates": inside})
    return found


def _as_code(source: str) -> str:
    """A binding that is an infinite constant is written as the graph names it, `constant('-inf')`."""
    found = re.fullmatch(r"constant\(['\"]?([+-]?(?:inf|nan))['\"]?\)", source.strip())
    return f"float({found.group(1)!r})" if found else source


def _flags(rule: Rule | None, variant: str) -> list[str]:
    """Inputs that a random tensor cannot stand for: what the pattern calls a flag, and the tables of a rotation."""
    if rule is None:
        return []
    pattern = next((one for one in rule.patterns if one.variant == variant), None)
    if pattern is None:
        return []
    marked = [name for name, kind in _annotations(pattern.function).items() if kind.endswith("Flag")]
    tables = [name for name in ("cos", "sin", "freqs", "freqs_cis") if name in pattern.parameters]
    return [*marked, *tables]


def _annotations(function: Callable[..., object]) -> dict[str, str]:
    return {
        name: kind if isinstance(kind, str) else getattr(kind, "__name__", "")
        for name, kind in function.__annotations__.items()
    }


def capture(
    launch: Launch,
    worktree: Path,
    candidates: Sequence[Candidate],
    folder: Path,
    environ: Mapping[str, str],
    options: CaptureOptions | None = None,
) -> dict[str, Captured]:
    """Run the launch command in `worktree` until enough is recorded, and say what each candidate was called with.

    `environ` is the environment of the run (the emulator's included, where it is wanted). The command's output goes to
    `folder`/output.log. However the command ends, what was recorded until then is the answer. Nothing of it survives.
    """
    options = options or CaptureOptions()
    complete = recording(candidates, worktree, folder, {**environ, **dict(launch.environment)}, options)
    with (folder / "output.log").open("wb") as log:
        # The user's own launch command, given by them for this purpose, is the one thing that goes through a shell.
        process = subprocess.Popen(  # noqa: S602
            launch.command,
            shell=True,
            executable="/bin/bash" if Path("/bin/bash").exists() else None,
            cwd=worktree,
            env=complete,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, folder, candidates, options)
    finally:
        _end(process)
    return read(folder, candidates)


def _wait(
    process: subprocess.Popen[bytes], folder: Path, candidates: Sequence[Candidate], options: CaptureOptions
) -> None:
    """Until the command ends, or everything has been seen often enough, or time is up."""
    deadline = time.monotonic() + options.time_limit
    settled: float | None = None
    while time.monotonic() < deadline and not options.cancelled():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.25)
            return
        found = read(folder, candidates).values()
        if settled is None and any(one.calls for one in found):
            settled = time.monotonic() + options.settle
        if found and all(one.calls >= options.calls for one in found):
            return
        if settled is not None and time.monotonic() > settled:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command's whole group: asked first, then without asking."""
    for kind, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience)
            if kind is signal.SIGTERM:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            return
