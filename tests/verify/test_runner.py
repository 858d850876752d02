"""Runs of real commands, and every way in which one can go wrong."""

import os
import sys
import threading
from pathlib import Path

import pytest

from npufuse_tui.language import Text
from npufuse_tui.verify import log_file, processes
from npufuse_tui.verify.log_file import BoundedLog
from npufuse_tui.verify.metrics import read_metrics
from npufuse_tui.verify.runner import DiskFull, RunRequest, run

STEPS = "import sys,time\nfor i in range(10**9): print('step', i, 'loss', 2.5, flush=True){more}\n"


@pytest.fixture
def command(tmp_path):
    """Runs Python source (or a shell command) and answers the run; checks that nothing of it is left."""
    count = [0]

    def go(source=None, *, shell=None, cancelled=lambda: False, on_step=lambda metric: None, **fields):
        count[0] += 1
        script = tmp_path / f"script{count[0]}.py"
        script.write_text(source or "")
        mark = f"{tmp_path}/run{count[0]}"
        request = RunRequest(
            command=shell or f"{sys.executable} {script}",
            cwd=tmp_path,
            environ=dict(os.environ),
            log=tmp_path / "logs" / f"{count[0]}.log",
            metrics=tmp_path / "metrics" / f"{count[0]}.jsonl",
            label="candidate",
            commit="0" * 40,
            mark=mark,
            **{"time_limit": 120.0, **fields},
        )
        done = run(request, cancelled=cancelled, on_step=on_step)
        assert processes.members(mark) == set()
        return done

    return go


def test_steps_are_read_and_written(command):
    done = command("for i in range(5): print(f'step {i} loss {3 - i / 10}')")
    assert (done.record.ended, done.record.exit_code, done.record.steps) == ("finished", 0, 5)
    assert [one.loss for one in read_metrics(Path(done.record.metrics))] == [3.0, 2.9, 2.8, 2.7, 2.6]
    assert done.record.parser == "plain" and "step 4 loss 2.6" in done.record.last_lines


def test_environment_of_a_run(command):
    done = command("import os, sys; print([os.environ[n] for n in ('TERM', 'COLUMNS', 'NO_COLOR')], sys.stdin.read())")
    assert "['dumb', '120', '1']" in done.record.last_lines


def test_command_missing(command):
    done = command(shell="no-such-command-of-npufuse --steps 3")
    assert done.record.ended == "failed" and done.record.exit_code == 127 and "not found" in done.record.reason.en


def test_fails_at_once(command):
    done = command("raise SystemExit('no data here')")
    assert done.record.ended == "failed" and done.record.exit_code == 1 and "no data here" in done.record.last_lines


def test_prints_no_steps(command):
    done = command("print('hello')")
    assert done.record.ended == "finished" and done.record.steps == 0 and done.metrics == ()


def test_exit_0_with_a_traceback(command):
    done = command(shell=f"{sys.executable} -c 'print(1); raise ValueError(2)' 2>&1 | cat", steps=50)
    assert done.record.ended == "failed" and "traceback" in done.record.reason.en


def test_killed_by_a_signal(command):
    done = command(shell="kill -SEGV $$")
    assert done.record.ended == "failed" and "SIGSEGV" in done.record.reason.en


def test_never_ends_is_ended_after_its_steps(command):
    done = command(STEPS.format(more="; time.sleep(0.001)"), steps=50)
    assert (done.record.ended, done.record.steps, done.record.exit_code) == ("finished", 50, None)


def test_time_limit(command):
    done = command("import time; time.sleep(1000)", time_limit=0.5)
    assert done.record.ended == "timed out" and "0.5 s" in done.record.reason.en


def test_idle_limit(command):
    done = command("import time; print('hello', flush=True); time.sleep(1000)", idle_limit=0.5)
    assert done.record.ended == "timed out" and "nothing" in done.record.reason.en


def test_100000_lines_a_second(command):
    source = "import sys\nfor i in range(300): sys.stdout.write(f'noise {i} of the loader\\n' * 1000)\n"
    source += "print('step 1 loss 2')"
    done = command(source)
    assert done.record.ended == "finished" and done.record.steps == 1


def test_a_line_of_100_mb(command):
    source = "import sys\nfor i in range(100): sys.stdout.write('x' * 2**20)\n"
    source += "print()\nprint('step 1 loss 2\\nstep 2 loss 1')"
    done = command(source, log_limit=16 * 2**20)
    assert [one.loss for one in done.metrics][-1] == 1 and done.record.ended == "finished"
    assert Path(done.record.log).stat().st_size < 16 * 2**20


def test_log_is_bounded_and_keeps_both_ends(command):
    source = "import sys\nprint('first line', flush=True)\n"
    source += "for i in range(64): sys.stdout.write(('y' * 1023 + '\\n') * 1024)\n"
    source += "print('last line')"
    done = command(source, log_limit=4 * 2**20)
    data = Path(done.record.log).read_bytes()
    assert data.startswith(b"first line\n") and data.endswith(b"last line\n") and b"bytes left out" in data
    assert len(data) < 4 * 2**20


def test_disk_blocks_are_given_back_while_the_child_writes(tmp_path):
    log = BoundedLog(tmp_path / "log", limit=1 << 20)
    try:
        for _ in range(64):
            os.write(log.descriptor, b"z" * (1 << 18))
            while log.read():
                pass
            log.trim()
        if not log.full:  # the file system can give back
            assert log.size == 1 << 24 and log.path.stat().st_blocks * 512 < 3 << 20
    finally:
        log.close()
    assert log.path.stat().st_size < 2 << 20


def test_a_file_system_that_cannot_give_back_ends_the_run(command, monkeypatch):
    monkeypatch.setattr(log_file, "_punch", lambda *given: False)
    done = command("while True: print('x' * 1000)", log_limit=1 << 20)
    assert done.record.ended == "stopped early" and "MB of log" in done.record.reason.en


def test_cancel_ends_everything_that_ignores_it(command):
    source = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "deaf = 'import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(999)'\n"
        "subprocess.Popen([sys.executable, '-c', deaf])\n"
        "subprocess.Popen(['sleep', '998'], start_new_session=True)\n"
        "print('step 1 loss 2\\nstep 2 loss 2', flush=True)\n"
        "time.sleep(1000)\n"
    )
    asked = threading.Event()
    done = command(source, cancelled=asked.is_set, on_step=lambda metric: asked.set())
    assert done.record.ended == "cancelled"


def test_grandchild_that_holds_the_output_keeps_nobody_waiting(command):
    source = "import subprocess; subprocess.Popen(['sleep', '997']); print('step 1 loss 2')"
    done = command(source)
    assert done.record.ended == "finished" and done.record.exit_code == 0 and done.record.seconds < 60


def test_daemon_that_left_session_and_parent(command, tmp_path):
    source = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "        time.sleep(1000)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)\n"
        "print('step 1 loss 2')\n"
    )
    assert command(source).record.ended == "finished"


def test_stopped_early_with_the_reason(command):
    done = command(
        STEPS.format(more="; time.sleep(0.001)"),
        on_step=lambda metric: Text("NaN", "NaN") if metric.step == 3 else None,
    )
    assert done.record.ended == "stopped early" and done.record.reason.en == "NaN" and done.record.steps == 4


def test_broken_utf8(command):
    source = "import os\nos.write(1, b'\\xff\\xfe\\x80 bad\\nstep 1 loss 2.5\\nstep 2 loss 2.4 \\xe4\\xbd')"
    assert [one.loss for one in command(source).metrics] == [2.5, 2.4]


def test_full_disk_before_and_during(command):
    with pytest.raises(DiskFull, match="MB are free"):
        command("print(1)", free=lambda path: 1 << 20)
    room = iter([1 << 40])
    with pytest.raises(DiskFull):
        command("import time; time.sleep(1000)", free=lambda path: next(room, 1 << 20))


def test_a_log_that_cannot_be_written(command, tmp_path):
    (tmp_path / "logs").write_text("a file, no folder")
    with pytest.raises((DiskFull, OSError)):
        command("print(1)")
