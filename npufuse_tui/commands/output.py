"""What a command says: results on standard output, progress and messages on standard error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from npufuse_tui.errors import MachineLacks, WrongInput
from npufuse_tui.events import (
    Applied,
    BaselineChanged,
    CandidateChecked,
    Committed,
    Event,
    Message,
    ReportWritten,
    RunFinished,
    RunStarted,
    ScanProgress,
    StepRead,
    TaskChanged,
)
from npufuse_tui.language import Text


class ReaderGone(Exception):
    """Whoever read standard output has gone away; nothing is left to say."""


def result(text: str, output: Path | None = None) -> None:
    """Print a result, or put it into a file that the person named.

    Raises WrongInput when its folder is not there, MachineLacks when it cannot be written.
    """
    text = text if text.endswith("\n") else text + "\n"
    if output is None or str(output) == "-":
        try:
            sys.stdout.write(_encodable(text))
            sys.stdout.flush()
        except BrokenPipeError as error:  # the parser would make another exit code of it
            raise ReaderGone from error
        return
    if not output.absolute().parent.is_dir():
        raise WrongInput(
            Text(
                "the folder {folder} of --output is not there: make it, or choose another place",
                "--output 所在的文件夹 {folder} 不存在：请先创建，或换一个位置",
            ).format(folder=output.absolute().parent)
        )
    try:
        _write(output, text)
    except OSError as error:
        raise MachineLacks(
            Text(
                "{file} cannot be written ({why}): choose another place", "无法写入 {file}（{why}）：请换一个位置"
            ).format(file=output, why=error.strerror or error)
        ) from error


def message(text: Text | str) -> None:
    """One line on standard error."""
    _clear()
    print(plain(str(text)), file=sys.stderr, flush=True)


def plain(text: str) -> str:
    """Text without characters that could steer a terminal."""
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)


def columns() -> int:
    """How wide lines may be: the terminal, or enough for anything where there is none."""
    if not sys.stdout.isatty():
        return 160
    try:
        return max(40, os.get_terminal_size(sys.stdout.fileno()).columns)
    except OSError:
        return 100


def listen(event: Event) -> None:
    """Say an event on standard error: what changes often in one line of a terminal, what is worth keeping as lines."""
    if isinstance(event, ScanProgress):
        _passing(
            Text("scanning {done}/{total}, {found} found", "正在扫描 {done}/{total}，已发现 {found}").format(
                done=event.done, total=event.total, found=event.found
            )
        )
    elif isinstance(event, CandidateChecked):
        _passing(Text("checking {done}/{total}", "正在校验 {done}/{total}").format(done=event.done, total=event.total))
    elif isinstance(event, StepRead):
        loss = "-" if event.metric.loss is None else f"{event.metric.loss:.5g}"
        took = "" if event.metric.step_time is None else f", {event.metric.step_time:.3g} s"
        _passing(
            Text("{label}: step {step}, loss {loss}{took}", "{label}：第 {step} 步，loss {loss}{took}").format(
                label=event.label, step=event.metric.step, loss=loss, took=took
            )
        )
    elif isinstance(event, Message):
        message(event.text)
    elif isinstance(event, Applied):
        message(
            Text("{id} edited in {tree}", "{id} 已在 {tree} 中修改").format(id=event.candidate, tree=event.worktree)
        )
    elif isinstance(event, TaskChanged):
        why = f": {event.task.reason}" if event.task.reason else ""
        message(f"{event.task.id} {event.task.rule} {event.task.state.value}{why}")
    elif isinstance(event, BaselineChanged):
        message(Text("baseline: {status}", "基线：{status}").format(status=event.baseline.status))
    elif isinstance(event, RunStarted):
        message(
            Text("{label} runs; log: {log}", "{label} 运行中；日志：{log}").format(label=event.label, log=event.log)
        )
    elif isinstance(event, RunFinished):
        message(Text("{label}: {ended}", "{label}：{ended}").format(label=event.label, ended=event.ended))
    elif isinstance(event, Committed):
        message(
            Text("{id} is commit {commit} on {branch}", "{id} 已提交为 {commit}，位于 {branch}").format(
                id=event.candidate, commit=event.commit[:12], branch=event.branch
            )
        )
    elif isinstance(event, ReportWritten):
        message(Text("written: {path}", "已写入：{path}").format(path=event.path))


_shown = False


def _passing(text: Text) -> None:
    """A line that the next one takes the place of; only where somebody looks."""
    global _shown
    if sys.stderr.isatty():
        print("\r\x1b[K" + plain(str(text)), end="", file=sys.stderr, flush=True)
        _shown = True


def _clear() -> None:
    global _shown
    if _shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        _shown = False


def clear() -> None:
    """Take the passing line away before a result is printed."""
    _clear()


def _write(path: Path, text: str) -> None:
    from npufuse_tui.durable import write_durably

    data = text.encode("utf-8", "surrogateescape")
    if path.exists() and not path.is_file():  # a pipe or a device that the person named
        path.write_bytes(data)
        return
    write_durably(path.resolve(), data)
    if not path.is_symlink():
        mask = os.umask(0)
        os.umask(mask)
        path.chmod(0o666 & ~mask)


def _encodable(text: str) -> str:
    """The text in what standard output can say; file names that are no UTF-8 go out as the bytes that they are."""
    encoding = sys.stdout.encoding or "utf-8"
    if encoding.lower().replace("-", "") == "utf8":
        stream = sys.stdout
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape")
        return text
    return text.encode(encoding, "replace").decode(encoding)
