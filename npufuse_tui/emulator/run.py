"""Run any command with torch_npu emulated: `npufuse emulate -- COMMAND …`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from npufuse_tui.emulator.environment import emulated
from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text


def run(
    command: Sequence[str],
    version: str | None = None,
    strict: bool = True,
    *,
    log: Path | None = None,
    quiet: bool = False,
) -> int:
    """Run `command` under the emulator, on this terminal, and answer its exit code (128 + n for signal n).

    `version` is the torch_npu to emulate, `strict` makes documented limits errors. Signals that are sent to this
    process go on to the command. Says in one line on standard error that what runs is emulated, unless `quiet`.
    Raises WrongInput for an empty command, one that is not found, or a version that is none.
    """
    if not command:
        raise WrongInput(
            Text(
                "no command was given; write one after --, such as: npufuse emulate -- python train.py",
                "没有给出命令；请写在 -- 之后，例如：npufuse emulate -- python train.py",
            )
        )
    program = shutil.which(command[0])
    if program is None:
        raise WrongInput(
            Text(
                "the command “{name}” was not found; give its path, or one that is on PATH",
                "找不到命令“{name}”；请给出其路径，或 PATH 中的命令名",
            ).format(name=command[0])
        )
    environment = emulated(os.environ, version=version, strict=strict, log=log)
    if not quiet:
        print(
            Text(
                "npufuse: torch_npu is emulated on the CPU ({limits}); times say nothing of an NPU",
                "npufuse：torch_npu 由 CPU 模拟（{limits}）；耗时与 NPU 无关",
            ).format(limits=Text("strict", "严格") if strict else Text("lenient", "宽松")),
            file=sys.stderr,
            flush=True,
        )
    process = subprocess.Popen([program, *command[1:]], env=environment)
    before: dict[signal.Signals, object] = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        before[number] = signal.signal(number, _pass_on(process))
    # The terminal sends an interrupt to the command as well; who ends, and how, is for the command to say.
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
    return 128 - code if code < 0 else code


def _pass_on(process: subprocess.Popen[bytes]) -> Callable[[int, FrameType | None], None]:
    def handler(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    return handler
