"""Real training through the runner: the Trainer on a tiny Qwen3, torchrun with two gloo ranks, and a kill -9."""

import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

from npufuse_tui.verify import processes
from npufuse_tui.verify.loss_check import judge
from npufuse_tui.verify.runner import RunRequest, run

pytestmark = pytest.mark.slow

TRAINER = """
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM, Trainer, TrainingArguments, set_seed

set_seed(0)
config = Qwen3Config(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, head_dim=8, max_position_embeddings=64)
text = (open(__file__).read() * 16)[:4096]
rows = [torch.tensor([ord(c) % 128 for c in text[i * 32:(i + 1) * 32]]) for i in range(120)]
data = [{"input_ids": row, "labels": row} for row in rows]
arguments = TrainingArguments("out", max_steps=60, per_device_train_batch_size=2, logging_steps=1, report_to=[],
                              use_cpu=True, save_strategy="no", learning_rate=1e-3)
Trainer(Qwen3ForCausalLM(config), arguments, train_dataset=data).train()
"""
RANKS = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(rank)
for step in range(10**6):
    loss = (model(torch.randn(8, 16, generator=generator)) - 1).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(f"rank {rank}: iter {step}: loss {loss.item():.6f}", flush=True)
"""


def go(tmp_path, name, command, **fields):
    mark = f"{tmp_path}/{name}"
    request = RunRequest(
        command=command,
        cwd=tmp_path,
        environ={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        log=tmp_path / f"{name}.log",
        metrics=tmp_path / f"{name}.jsonl",
        label=name,
        commit="",
        mark=mark,
        time_limit=500.0,
        **fields,
    )
    done = run(request)
    assert processes.members(mark) == set()
    return done


def test_hugging_face_trainer(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(TRAINER)
    first = go(tmp_path, "first", f"{sys.executable} train.py")
    second = go(tmp_path, "second", f"{sys.executable} train.py", steps=50)
    assert (first.record.ended, first.record.exit_code) == ("finished", 0), first.record.last_lines
    assert first.record.parser == second.record.parser == "hf_trainer" and first.record.steps == 60
    assert first.record.step_time_source == "clock"
    assert judge(first.metrics, None, second.metrics, steps=50).passed is True
    assert first.metrics[0].loss > first.metrics[-1].loss > 0


def test_two_ranks(tmp_path):
    pytest.importorskip("torch")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "train.py").write_text(RANKS)
    command = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2 --master-port {port} train.py"
    done = go(tmp_path, "ranks", command, steps=50)  # the script itself would never end
    assert (done.record.ended, done.record.steps) == ("finished", 50), done.record.last_lines
    assert [one.step for one in done.metrics] == list(range(50))
    # every step is of one rank: each prints its own loss, and they differ
    log = (tmp_path / "ranks.log").read_text()
    ranks = {rank for rank in (0, 1) if f"rank {rank}: iter 1: loss {done.metrics[1].loss:.6f}" in log}
    assert len(ranks) == 1
    rank = ranks.pop()
    assert all(f"rank {rank}: iter {one.step}: loss {one.loss:.6f}" in log for one in done.metrics)


def test_what_a_killed_npufuse_left_running_is_found_again(tmp_path):
    """kill -9 of the process that runs it: the command goes on alone, until the next verification ends it."""
    source = textwrap.dedent(
        f"""
        import os
        from pathlib import Path
        from npufuse_tui.verify.runner import RunRequest, run
        here = Path({str(tmp_path)!r})
        run(RunRequest("echo up; sleep 996", here, dict(os.environ), here / "log", here / "metrics", "l", "c",
                       f"{{here}}/killed"))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", source])
    while not (tmp_path / "log").exists() or b"up" not in (tmp_path / "log").read_bytes():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert processes.members(f"{tmp_path}/")
    assert processes.end(f"{tmp_path}/") == set()
    assert processes.members(f"{tmp_path}/killed") == set()
