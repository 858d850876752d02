"""Runs jobs in children and hands their outcomes back as they come.

One child runs many jobs, since starting torch is what costs. A child that dies or exceeds the time limit is ended with
its whole group, the job that it had started gets the blame, and another child goes on behind it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npufuse_tui.errors import MachineLacks
from npufuse_tui.language import Text
from npufuse_tui.proof import bundle
from npufuse_tui.proof.interpreter import Interpreter
from npufuse_tui.proof.outcome import failed

Outcome = Mapping[str, Any]

_GRACE = 2.0  # seconds that a child has to end by itself


@dataclass(frozen=True, slots=True)
class Children:
    """How children are started. Times in seconds; `start_limit` covers the import of torch."""

    interpreter: Interpreter
    environ: Mapping[str, str]
    device: str = "cpu"
    dtypes: tuple[str, ...] = ()
    extra_rules: tuple[Path, ...] = ()
    time_limit: float = 60.0
    start_limit: float = 240.0
    threads: int = 1
    cancelled: Callable[[], bool] = field(default=lambda: False)


def outcomes(jobs: Sequence[Mapping[str, Any]], children: Children) -> Iterator[tuple[int, Outcome]]:
    """(index, outcome) of every job, in order, as soon as each is there.

    Raises MachineLacks when a child cannot even start (torch or torch_npu does not load there); stops early, with
    what there is, when `children.cancelled()` says so.
    """
    first = 0
    with tempfile.TemporaryDirectory(prefix="npufuse-proof-") as scratch:
        while first < len(jobs) and not children.cancelled():
            for index, outcome in _one_child(jobs, first, children, Path(scratch)):
                yield index, outcome
                first = index + 1


def _one_child(
    jobs: Sequence[Mapping[str, Any]], first: int, children: Children, scratch: Path
) -> Iterator[tuple[int, Outcome]]:
    """Outcomes from `first` on, until the child ends; at least one, or an error."""
    request = {
        "jobs": list(jobs),
        "first": first,
        "device": children.device,
        "dtypes": list(children.dtypes),
        "extra_rules": [str(path.resolve()) for path in children.extra_rules],
        "threads": children.threads,
    }
    jobs_file = scratch / "jobs.json"
    jobs_file.write_text(json.dumps(request), encoding="utf-8")
    log = scratch / "child.log"
    room = scratch / "room"  # where the child stands: empty, so that nothing in it can be imported
    room.mkdir(exist_ok=True)
    environ = bundle.child_environment({**children.environ, **dict(children.interpreter.environment)})
    read_end, write_end = os.pipe()
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(
                [
                    str(children.interpreter.path),
                    str(bundle.lay_out() / "run_proof.py"),
                    str(jobs_file),
                    str(write_end),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=room,
                env=environ,
                pass_fds=(write_end,),
                start_new_session=True,
            )
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
    started: int | None = None
    loaded = False
    try:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            for line in _lines(pipe, children):
                if "ready" in line:
                    loaded = True
                elif "failed" in line:
                    raise _cannot_start(children.interpreter, line["failed"])
                elif "start" in line:
                    started = line["start"]
                elif "done" in line:
                    started = None
                    yield line["done"], line["outcome"]
        ended = "ended"
    except TimeoutError:
        ended = "timed out"
        child.kill()
    except BaseException:  # the listener went away, or an error: do not wait for the child
        child.kill()
        raise
    finally:
        if children.cancelled():
            child.kill()
        _end(child)
    if children.cancelled():
        return
    if not loaded:
        said = _last_line(log) or f"exit code {child.returncode}"
        raise _cannot_start(
            children.interpreter, said if ended == "ended" else f"torch did not load in {children.start_limit:.0f} s"
        )
    if started is not None:
        yield started, _blamed(child.returncode, ended, children, log)
    elif ended == "timed out":
        raise _cannot_start(children.interpreter, "the child stopped answering between two jobs")


def _lines(pipe: Any, children: Children) -> Iterator[dict[str, Any]]:
    """JSON lines out of a pipe. Raises TimeoutError when none comes in time; ends with the pipe or when cancelled."""
    held = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        deadline = time.monotonic() + children.start_limit
        while not children.cancelled():
            if time.monotonic() > deadline:
                raise TimeoutError
            if not selector.select(min(0.5, max(0.0, deadline - time.monotonic()))):
                continue
            data = os.read(pipe.fileno(), 1 << 16)
            if not data:
                return
            *whole, held = (held + data).split(b"\n")
            for line in whole:
                yield json.loads(line)
            if whole:
                deadline = time.monotonic() + children.time_limit


def _end(child: subprocess.Popen[bytes]) -> None:
    """Wait a moment for a child that has closed its pipe, then end it and whatever it started."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=_GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _blamed(code: int | None, ended: str, children: Children, log: Path) -> Outcome:
    if ended == "timed out":
        reason = Text("the check did not end within {0:.0f} s", "检查未能在 {0:.0f} 秒内结束").format(
            children.time_limit
        )
    elif code is not None and code < 0:
        name = signal.Signals(-code).name if -code in {one.value for one in signal.Signals} else str(-code)
        reason = Text(
            "the code crashed the process that checked it ({name})", "代码使检查它的进程崩溃（{name}）"
        ).format(name=name)
    else:
        reason = Text(
            "the code ended the process that checked it (exit code {code}) {last}",
            "代码结束了检查它的进程（退出码 {code}）{last}",
        ).format(code=code, last=_last_line(log))
    return failed(reason)


def _last_line(log: Path) -> str:
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""
    return ""


def _cannot_start(interpreter: Interpreter, why: str) -> MachineLacks:
    return MachineLacks(
        Text(
            "the checks cannot start under {path}: {why}; repair torch there or name another Python with --python",
            "无法用 {path} 启动检查：{why}；请修复其中的 torch，或用 --python 指定另一个解释器",
        ).format(path=interpreter.path, why=why.strip()[:400])
    )
