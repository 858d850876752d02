"""`npufuse emulate -- COMMAND`: the command's own exit code, output and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npufuse_tui.emulator.run import run
from npufuse_tui.errors import WrongInput

CALL = (
    "import sys; from npufuse_tui.emulator.run import run; sys.exit(run(sys.argv[2:], strict=sys.argv[1] == 'strict'))"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def called(strict: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CALL, strict, *command], capture_output=True, text=True)


@pytest.mark.parametrize("code", [0, 3, 70])
def test_the_exit_code_is_the_commands(code: int) -> None:
    assert called("strict", sys.executable, "-c", f"import sys; sys.exit({code})").returncode == code


def test_a_signal_is_told_as_a_shell_tells_it() -> None:
    command = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert called("strict", sys.executable, "-c", command).returncode == 128 + signal.SIGKILL


def test_strict_and_lenient() -> None:
    slice_ = "import torch, torch_npu; print(torch_npu.npu_swiglu(torch.ones(2, 8)[:, :4]).shape)"
    strict = called("strict", sys.executable, "-c", slice_)
    assert strict.returncode == 1 and "contiguous" in strict.stderr
    lenient = called("lenient", sys.executable, "-c", slice_)
    assert lenient.returncode == 0 and lenient.stdout == "torch.Size([2, 2])\n" and "contiguous" in lenient.stderr


def test_standard_output_is_the_commands_alone() -> None:
    found = called("strict", "echo", "hello")
    assert found.stdout == "hello\n" and "emulated on the CPU" in found.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_go_on_to_the_command(number: signal.Signals) -> None:
    script = (
        "import signal, sys, time\n"
        "def end(*_): print('ended well'); sys.exit(9)\n"
        f"signal.signal({int(number)}, end)\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, "strict", sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.read() == "ended well\n" and process.wait(30) == 9
    process.stdout.close()


def test_an_interrupt_of_the_terminal_is_the_commands_to_answer() -> None:
    script = (
        "import signal, sys\n"
        "def end(*_): print('ended well'); sys.exit(9)\n"
        "signal.signal(signal.SIGINT, end)\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, "strict", sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.read() == "ended well\n" and process.wait(30) == 9
    process.stdout.close()


def test_what_cannot_be_run() -> None:
    with pytest.raises(WrongInput, match="no command was given"):
        run([])
    with pytest.raises(WrongInput, match="“no-such-command” was not found"):
        run(["no-such-command"])
    with pytest.raises(WrongInput, match="not a version"):
        run([sys.executable, "-c", ""], version="newest-ish")
