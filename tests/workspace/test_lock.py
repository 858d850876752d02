"""One process has a session; a dead one loses it, a live one never does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npufuse_tui.errors import ExitCode, KeptSafe
from npufuse_tui.workspace.lock import SessionLock, owner_of, this_process

HOLD = """
import sys
from pathlib import Path
from npufuse_tui.workspace.lock import SessionLock
lock = SessionLock.take(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
lock.give_back()
"""


def holder(folder: Path) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None and child.stdout.readline() == b"held\n"
    return child


def test_a_live_owner_is_respected_and_named(tmp_path: Path) -> None:
    child = holder(tmp_path)
    try:
        with pytest.raises(KeptSafe) as refused:
            SessionLock.take(tmp_path)
        assert str(child.pid) in refused.value.text.en and str(tmp_path / "lock") in refused.value.text.en
        assert refused.value.exit_code is ExitCode.KEPT_SAFE
    finally:
        child.communicate(b"")
    SessionLock.take(tmp_path).give_back()
    assert owner_of(tmp_path) is None


def test_a_killed_owner_is_taken_over(tmp_path: Path) -> None:
    child = holder(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    # not reaped yet: a zombie is dead as well
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    lock = SessionLock.take(tmp_path)
    assert owner_of(tmp_path) == this_process_without_time(tmp_path)
    lock.give_back()
    child.communicate()


def this_process_without_time(folder: Path) -> object:
    from dataclasses import replace

    held = owner_of(folder)
    assert held is not None
    return replace(this_process(), since=held.since)


def test_this_process_holds_it_only_once(tmp_path: Path) -> None:
    lock = SessionLock.take(tmp_path)
    with pytest.raises(KeptSafe):
        SessionLock.take(tmp_path)
    lock.give_back()
    lock.give_back()
    SessionLock.take(tmp_path).give_back()


@pytest.mark.parametrize(
    ("field", "value", "taken"),
    [
        ("started", "1", True),  # the number belongs to another process now
        ("boot", "another", True),
        ("host", "another-machine", False),
        ("namespace", "pid:[1]", False),
    ],
)
def test_who_is_taken_for_dead(tmp_path: Path, field: str, value: str, taken: bool) -> None:
    SessionLock.take(tmp_path)
    path = tmp_path / "lock"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    if taken:
        SessionLock.take(tmp_path)
    else:
        with pytest.raises(KeptSafe, match="remove"):
            SessionLock.take(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_lock_that_says_nothing_is_no_lock(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    SessionLock.take(tmp_path).give_back()


def test_of_many_that_find_a_dead_owner_one_gets_it(tmp_path: Path) -> None:
    child = holder(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    race = (
        "import sys\nfrom pathlib import Path\nfrom npufuse_tui.errors import KeptSafe\n"
        "from npufuse_tui.workspace.lock import SessionLock\nsys.stdin.readline()\n"
        "try:\n    SessionLock.take(Path(sys.argv[1])); print('mine', flush=True)\n"
        "except KeptSafe:\n    print('no', flush=True)\nsys.stdin.read()\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", race, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for one in racers:
        assert one.stdin is not None
        one.stdin.write(b"go\n")
        one.stdin.flush()
    said = [one.stdout.readline().strip() for one in racers if one.stdout is not None]
    for one in racers:
        one.communicate(b"")
    assert sorted(said) == [b"mine", b"no", b"no", b"no"]
