"""One run of the person's launch command: started, read while it runs, ended, and what came of it.

The command writes into a log file, not into a pipe: a grandchild that holds its output open keeps nobody waiting, and
nothing that it prints can fill our memory. See `processes` for how a run is ended, `log_file` for how the log stays
bounded, `steps` for how steps are read.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from npufuse_tui.errors import MachineLacks
from npufuse_tui.language import Text
from npufuse_tui.model import Metric, RunRecord
from npufuse_tui.verify import event_files, processes
from npufuse_tui.verify.log_file import BoundedLog, last_lines
from npufuse_tui.verify.loss_check import enough
from npufuse_tui.verify.metrics import MetricsWriter
from npufuse_tui.verify.reading import Parser
from npufuse_tui.verify.speed_check import warmup_steps
from npufuse_tui.verify.steps import StepStream, with_phases

_PLAIN = {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120"}
_FREE_BEFORE, _FREE_DURING = 256 * 2**20, 64 * 2**20  # bytes
_MOST_METRICS = 200_000
_PAUSE = 0.05  # seconds between looks at a log that did not grow


class DiskFull(MachineLacks):
    """There is no room for logs; what was saved before stands."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What is run, and within which limits.

    Attributes:
        label, commit: what the run is, for the record.
        mark: unique to the run; what it starts is found by it.
        steps: the run is ended once so many were read; None lets it end by itself.
        time_limit, idle_limit: seconds for all of it, and without any output; None for no limit.
        log_limit: bytes of log that are kept.
        parser: of the steps; None finds it.
        warmup: steps of warm-up; None finds them.
        free: bytes that are free where a path lies.
    """

    command: str
    cwd: Path
    environ: Mapping[str, str]
    log: Path
    metrics: Path
    label: str
    commit: str
    mark: str
    steps: int | None = None
    time_limit: float | None = None
    idle_limit: float | None = 1800.0
    log_limit: int = 256 * 2**20
    parser: Parser | None = None
    warmup: int | None = None
    free: Callable[[Path], int] = field(default=lambda path: shutil.disk_usage(path).free)


@dataclass(frozen=True, slots=True)
class Run:
    """The record of a run, and its steps."""

    record: RunRecord
    metrics: tuple[Metric, ...]
    parser: Parser | None
    sample: str | None


def run(
    request: RunRequest,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    on_step: Callable[[Metric], Text | None] = lambda metric: None,
    on_format: Callable[[Parser, str], None] = lambda parser, sample: None,
) -> Run:
    """Run the command until it ends, or has shown enough, or must be ended.

    `on_step` is told each step and may answer why the run need not go on; `on_format` is told once which format the log
    has, with a line of it. Raises DiskFull.
    """
    _demand_room(request, _FREE_BEFORE)
    try:
        return _Running(request, cancelled, on_step, on_format).go()
    except OSError as error:
        raise DiskFull(
            Text(
                "the log of a run cannot be written in {folder} ({why}): free some space, then verify again",
                "无法在 {folder} 中写入运行日志（{why}）：请释放空间后重新验证",
            ).format(folder=request.log.parent, why=error.strerror or error)
        ) from error


def _demand_room(request: RunRequest, least: int) -> None:
    request.log.parent.mkdir(parents=True, exist_ok=True)
    free = request.free(request.log.parent)
    if free < least:
        raise DiskFull(
            Text(
                "{free} MB are free where {folder} lies and {least} MB are needed: free some space, then verify again",
                "{folder} 所在磁盘仅剩 {free} MB，需要 {least} MB：请释放空间后重新验证",
            ).format(free=free // 2**20, folder=request.log.parent, least=least // 2**20)
        )


class _Running:
    """The run while it goes on."""

    def __init__(
        self,
        request: RunRequest,
        cancelled: Callable[[], bool],
        on_step: Callable[[Metric], Text | None],
        on_format: Callable[[Parser, str], None],
    ) -> None:
        self.request, self.cancelled, self.on_step, self.on_format = request, cancelled, on_step, on_format
        self.stream = StepStream(request.parser)
        self.metrics: list[Metric] = []
        self.told_format = False
        self.event_file: str | None = None
        self.ended: str | None = None
        self.reason: Text | None = None

    def go(self) -> Run:
        request = self.request
        started, began = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
        clock = time.time()
        log = BoundedLog(request.log, request.log_limit)
        left: set[int] = set()
        try:
            with MetricsWriter(request.metrics) as writer:
                self.writer = writer
                child = self._start(log)
                try:
                    self._follow(child, log, began)
                finally:
                    left = processes.end(request.mark, child.pid)
                    code = child.wait()
                self._drain(log)
                self._took(self.stream.close(time.monotonic()))
                if not self.metrics and self.ended is None:
                    self._from_event_files(clock)
                warmup = request.warmup
                if warmup is None:
                    warmup = warmup_steps([one.step_time for one in self.metrics])
                self.metrics = with_phases(self.metrics, warmup)
                writer.replace(self.metrics)
        finally:
            log.close()
        return self._result(code, started, time.monotonic() - began, log, left)

    def _start(self, log: BoundedLog) -> subprocess.Popen[bytes]:
        environ = {**self.request.environ, **_PLAIN, processes.MARK: self.request.mark}
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        # The person's own launch command, given for this purpose, is the one thing that goes through a shell.
        return subprocess.Popen(
            [shell, "-c", self.request.command],
            cwd=self.request.cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log.descriptor,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _follow(self, child: subprocess.Popen[bytes], log: BoundedLog, began: float) -> None:
        """Until the command has ended or a reason to end it is known (`self.ended` is None for the former)."""
        request = self.request
        spoke = looked = time.monotonic()
        while self.ended is None:
            data = log.read()
            now = time.monotonic()
            if data:
                spoke = now
                self._took(self.stream.feed(data, now))
            if now - looked > 0.5:
                looked = now
                log.trim()
                _demand_room(request, _FREE_DURING)
            if self.ended is not None:
                return
            if self.cancelled():
                self._end("cancelled", Text("cancelled", "已取消"))
            elif log.full:
                self._end(
                    "stopped early",
                    Text("more than {size} MB of log", "日志超过 {size} MB").format(size=request.log_limit // 2**20),
                )
            elif request.time_limit is not None and now - began > request.time_limit:
                self._end(
                    "timed out",
                    Text(
                        "it did not end within {limit:g} s (--time-limit)", "未能在 {limit:g} 秒内结束（--time-limit）"
                    ).format(limit=request.time_limit),
                )
            elif request.idle_limit is not None and now - spoke > request.idle_limit:
                self._end(
                    "timed out",
                    Text("it printed nothing for {limit:g} s", "超过 {limit:g} 秒没有任何输出").format(
                        limit=request.idle_limit
                    ),
                )
            elif not data:
                try:
                    child.wait(_PAUSE)
                    return
                except subprocess.TimeoutExpired:
                    pass

    def _drain(self, log: BoundedLog) -> None:
        """What the command wrote last; a run that was ended for a reason is not read further."""
        while self.ended is None and (data := log.read()):
            self._took(self.stream.feed(data, time.monotonic()))
            log.trim()

    def _took(self, metrics: Sequence[Metric]) -> None:
        if self.stream.parser is not None and not self.told_format and self.stream.sample is not None:
            self.told_format = True
            self.on_format(self.stream.parser, self.stream.sample)
        for metric in metrics:
            if self.ended is not None:
                return
            self.metrics.append(metric)
            self.writer.add([metric])
            why = self.on_step(metric)
            if self.cancelled():
                self._end("cancelled", Text("cancelled", "已取消"))
            elif why is not None:
                self._end("stopped early", why)
            elif self.request.steps is not None and self._enough(self.request.steps):
                self._end(
                    "finished",
                    Text("ended after {count} steps, as asked", "按要求在 {count} 步后结束").format(
                        count=len(self.metrics)
                    ),
                )
            elif len(self.metrics) >= _MOST_METRICS:
                self._end(
                    "stopped early",
                    Text("more than {count} steps", "超过 {count} 步").format(count=_MOST_METRICS),
                )

    def _enough(self, steps: int) -> bool:
        if len(self.metrics) < min(steps, 5):
            return False
        span = self.metrics[-1].step - self.metrics[0].step + 1
        return len(self.metrics) >= steps or (span >= steps and enough(self.metrics, steps))

    def _from_event_files(self, since: float) -> None:
        """The steps of a run that prints none, but has written them for TensorBoard."""
        paths = event_files.newer_than(self.request.cwd, since - 1)
        found = event_files.metrics_of(paths)
        if found:
            self.event_file = str(paths[0].name)
            self._took(found)

    def _end(self, ended: str, reason: Text) -> None:
        self.ended, self.reason = ended, reason

    def _result(self, code: int, started: str, took: float, log: BoundedLog, left: set[int]) -> Run:
        request = self.request
        said = last_lines(request.log)
        ended, reason, exit_code = self.ended, self.reason, None
        if ended is None:
            exit_code = code
            ended, reason = _how(code, said, len(self.metrics), request.steps)
        if left:
            note = Text("processes {pids} could not be ended", "进程 {pids} 无法结束").format(
                pids=", ".join(map(str, sorted(left)))
            )
            reason = note if reason is None else Text("{0}; {1}", "{0}；{1}").format(reason, note)
        if log.skipped:
            note = Text("{count} bytes of log came too fast to be read", "有 {count} 字节日志因输出过快未读取").format(
                count=log.skipped
            )
            reason = note if reason is None else Text("{0}; {1}", "{0}；{1}").format(reason, note)
        parser = self.stream.parser
        record = RunRecord(
            label=request.label,
            command=request.command,
            commit=request.commit,
            started=started,
            seconds=took,
            exit_code=exit_code,
            ended=ended,
            log=str(request.log),
            metrics=str(request.metrics),
            steps=len(self.metrics),
            parser="tensorboard" if self.event_file else parser.name if parser is not None and self.metrics else None,
            step_time_source="log" if self.event_file else self.stream.step_time_source,
            last_lines=said,
            reason=reason,
        )
        return Run(record, tuple(self.metrics), parser, self.stream.sample)


def _how(code: int, said: str, steps: int, wanted: int | None) -> tuple[str, Text | None]:
    """How a command that ended by itself ended."""
    if code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        name = next((one.name for one in signal.Signals if one.value == number), str(number))
        if code < 0 or number in {one.value for one in signal.Signals}:
            return "failed", Text("killed by {name}", "被信号 {name} 终止").format(name=name)
    if code == 127:
        return "failed", Text("a command in it was not found (exit code 127)", "其中的命令不存在（退出码 127）")
    if code == 126:
        return "failed", Text("a command in it cannot be executed (exit code 126)", "其中的命令无法执行（退出码 126）")
    if code:
        return "failed", Text("exit code {code}", "退出码 {code}").format(code=code)
    if "Traceback (most recent call last)" in said and (wanted is None or steps < wanted):
        return "failed", Text("exit code 0, but the log ends in a traceback", "退出码为 0，但日志以异常回溯结束")
    return "finished", None
