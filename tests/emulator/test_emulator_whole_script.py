"""A training script that says NPU throughout runs under the emulator, and learns as the same script on the CPU does."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from npufuse_tui.emulator.environment import emulated

SCRIPT = Path(__file__).with_name("script_for_the_npu.py")
SHARDED = Path(__file__).with_name("script_that_shards.py")


def losses(where: str, environment: dict[str, str], script: Path = SCRIPT) -> list[float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    result = subprocess.run(
        [*command, str(script), where],
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return [float(loss) for loss in re.findall(r"^step \w+ loss (\S+)$", result.stdout, re.MULTILINE)]


@pytest.mark.slow
def test_losses_are_those_of_the_cpu(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    npu = losses("npu", emulated(os.environ, log=log, folder=tmp_path / "emulator"))
    cpu = losses("cpu", dict(os.environ))
    assert len(npu) == len(cpu) == 6
    assert npu == pytest.approx(cpu, rel=1e-3)
    assert len(set(npu)) == 6
    text = log.read_text()
    assert '"operator": "npu_rms_norm"' in text and '"operator": "npu_swiglu"' in text


@pytest.mark.slow
def test_sharded_training_and_collectives(tmp_path: Path) -> None:
    npu = losses("npu", emulated(os.environ, folder=tmp_path / "emulator"), SHARDED)
    assert len(npu) == 3 and len(set(npu)) == 1
