"""Steps out of logs: one sample for each format, after the projects' own format strings, and what makes logs hard."""

import json
import math
import random
import struct

import pytest

from npufuse_tui.errors import WrongInput
from npufuse_tui.verify.event_files import metrics_of
from npufuse_tui.verify.log_lines import MOST, LineReader
from npufuse_tui.verify.parsers import all_parsers
from npufuse_tui.verify.parsers.custom import from_expression, from_metric
from npufuse_tui.verify.steps import StepStream

MEGATRON = (
    "using world size: 8, data-parallel size: 8\n"
    + "".join(
        f" [2026-03-01 10:00:0{i}] iteration {i:8d}/     500 | consumed samples: {i * 16:12d} | elapsed "
        f"time per iteration (ms): {800 + i}.5 | "
        f"learning rate: 1.250000E-06 | global batch size:    16 | lm loss: {10 - i / 10:.6E} | "
        "loss scale: 1.0 | grad norm: 3.456 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for i in range(1, 5)
    )
    + " validation loss at iteration 4 | lm loss value: 9.1 | lm loss PPL: 8955.2 |\n"
)
HF = "".join(
    f"\r {i}%|▏         | {i}/100 [00:0{i}<01:10,  1.38it/s]{{'loss': {3 - i / 10:.4f}, 'grad_norm': 1.25, "
    f"'learning_rate': 4.9e-05, 'epoch': {i / 100}}}\n"
    for i in range(1, 5)
)
HF5 = (
    "".join(
        f"{{'loss': '{3 - i / 10:.4f}', 'grad_norm': '1.25', 'learning_rate': '4.9e-05', 'epoch': '{i / 100}'}}\n"
        for i in range(1, 5)
    )
    + "{'eval_loss': '2.0', 'epoch': '1'}\n{'train_runtime': '9.1', 'train_loss': '2.5', 'epoch': '1'}\n"
)
LLAMA_FACTORY = "".join(
    f"[INFO|2026-03-01 10:00:0{i}] llamafactory.train.callbacks:143 >> {{'loss': {3 - i / 10:.4f}, 'learning_rate': "
    f"5.0000e-05, 'epoch': 0.0{i}, 'throughput': 1234.5}}\n"
    for i in range(1, 5)
)
DEEPSPEED = "".join(
    f"steps: {i} loss: {3 - i / 10:.4f} iter time (s): 0.512 samples/sec: 31.250\n" for i in range(1, 5)
)
LIGHTNING = "".join(
    f"\rEpoch 0:  {i}0%|█         | {i}/10 [00:0{i}<00:10,  4.30it/s, v_num=0, train_loss_step={3 - i / 10:.3f}]"
    for i in range(1, 5)
)
TORCHTITAN = "".join(
    f"[rank0]:[titan] 2026-03-01 10:00:0{i},123 - root - INFO - \x1b[31mstep:  {i}  \x1b[32mloss:  {3 - i / 10:.4f}  "
    "\x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[33mmemory:  5.43GiB(5.71%)  \x1b[34mtps: 4,321  \x1b[36mtflops: 9.10  "
    "\x1b[35mmfu: 2.92%\x1b[39m\n"
    for i in range(1, 5)
)
ACCELERATE = "".join(
    f"\rSteps:   {i}%|▎         | {i}/100 [00:0{i}<01:10,  1.40it/s, lr=0.0001, step_loss={3 - i / 10:.3f}]"
    for i in range(1, 5)
)
JSONL = "".join(json.dumps({"step": i, "loss": 3 - i / 10, "step_time_ms": 250}) + "\n" for i in range(1, 5))


def shape(form: str) -> str:
    return "model has 12 layers\n" + "".join(form.format(i=i, loss=f"{3 - i / 10:.4f}") + "\n" for i in range(1, 5))


PLAIN = [
    shape("step {i} loss {loss} time 0.2500"),
    shape("Step: {i}, Loss: {loss}, Time: 0.25s"),
    shape("step={i} loss={loss} step_time=0.25"),
    shape("iter {i}: loss {loss}, time 250.00ms, mfu 1.20%"),
    shape("Epoch [1/5], Step [{i}/100], Loss: {loss}, time: 250 ms"),
    shape("step     {i}/100 | loss: {loss} | norm: 1.2 | dt: 250.00ms | tok/sec: 1500.00"),
    shape("[{i}/100] train loss = {loss} (0.25 s/it)"),
    shape("INFO:train:iteration {i} train_loss: {loss} dt=250ms"),
    shape("{i}: loss {loss} took 0.25 s"),
]
SAMPLES = [
    ("megatron", MEGATRON, [(1, 9.9, 0.8015), (4, 9.6, 0.8045)]),
    ("hf_trainer", HF, [(1, 2.9, None), (4, 2.6, None)]),
    ("hf_trainer", HF5, [(1, 2.9, None), (4, 2.6, None)]),
    ("hf_trainer", LLAMA_FACTORY, [(1, 2.9, None), (4, 2.6, None)]),
    ("deepspeed", DEEPSPEED, [(1, 2.9, 0.512), (4, 2.6, 0.512)]),
    ("lightning", LIGHTNING, [(1, 2.9, None), (4, 2.6, None)]),
    ("torchtitan", TORCHTITAN, [(1, 2.9, None), (4, 2.6, None)]),
    ("progress_bar", ACCELERATE, [(1, 2.9, None), (4, 2.6, None)]),
    ("json_lines", JSONL, [(1, 2.9, 0.25), (4, 2.6, 0.25)]),
    *(("plain", one, [(1, 2.9, 0.25), (4, 2.6, 0.25)]) for one in PLAIN),
]


def read(text, parser=None, pieces=None):
    data = text.encode() if isinstance(text, str) else text
    stream, found, place, now = StepStream(parser), [], 0, 0.0
    for size in pieces or [len(data)]:
        found += stream.feed(data[place : place + size], now)
        place += size
        now += 1.0
    return stream, found + stream.close(now)


@pytest.mark.parametrize(("name", "log", "wanted"), SAMPLES, ids=[f"{one[0]}-{i}" for i, one in enumerate(SAMPLES)])
def test_format_is_found_and_read(name, log, wanted):
    stream, found = read(log)
    assert stream.parser is not None and stream.parser.name == name
    assert [one.step for one in found] == [1, 2, 3, 4]
    for one, (step, loss, time) in zip((found[0], found[-1]), wanted, strict=True):
        assert (one.step, one.loss) == (step, pytest.approx(loss))
        if time is not None:
            assert one.step_time == pytest.approx(time)
            assert stream.step_time_source == "log"
    assert stream.sample


@pytest.mark.parametrize(("name", "log", "wanted"), SAMPLES, ids=[f"{one[0]}-{i}" for i, one in enumerate(SAMPLES)])
def test_reads_of_any_size_give_the_same(name, log, wanted):
    data = log.encode()
    whole = [(one.step, one.loss) for one in read(data)[1]]
    chance = random.Random(7)
    for _ in range(5):
        pieces = []
        while sum(pieces) < len(data):
            pieces.append(chance.choice([1, 2, 3, 7, 50]))
        assert [(one.step, one.loss) for one in read(data, pieces=pieces)[1]] == whole


def test_every_parser_has_a_sample():
    assert {one.name for one in all_parsers()} == {name for name, _, _ in SAMPLES}


def test_tokens_per_second():
    assert read(TORCHTITAN)[1][0].tokens_per_second == 4321
    assert read(PLAIN[5])[1][0].tokens_per_second == 1500


def test_interleaved_ranks_count_once():
    log = "".join(f"[rank{rank}]:step {i} loss {3 - i / 10 + rank}\n" for i in range(1, 6) for rank in (1, 0, 2))
    _, found = read(log)
    assert [one.step for one in found] == [1, 2, 3, 4, 5]
    assert [one.loss for one in found] == [pytest.approx(4 - i / 10) for i in range(1, 6)]


def test_lines_of_two_ranks_that_run_into_each_other():
    log = "".join(
        f"rank 0: iter {i}: loss {3 - i / 10:.2f}rank 1: iter {i}: loss 9.5\n\n"
        if i % 2
        else f"rank 1: iter {i}: loss 9.5rank 0: iter {i}: loss {3 - i / 10:.2f}\n\n"
        for i in range(1, 9)
    )
    _, found = read(log)
    assert [(one.step, one.loss) for one in found] == [(i, pytest.approx(3 - i / 10)) for i in range(1, 9)]


def test_ranks_without_prefix_count_once():
    log = "".join(f"step {i} loss {3 - i / 10}\n" * 2 for i in range(1, 6))
    assert [one.step for one in read(log)[1]] == [1, 2, 3, 4, 5]


def test_steps_that_begin_again_are_numbered_on():
    log = "".join(f"epoch {e} step {i} loss {3 - i / 10}\n" for e in range(3) for i in range(10))
    assert [one.step for one in read(log)[1]] == list(range(30))


def test_clock_between_steps_when_the_log_has_no_time():
    stream = StepStream()
    found = []
    for i in range(1, 6):
        found += stream.feed(f"step {i * 10} loss 2.5\n".encode(), float(i * 20))
    assert stream.step_time_source == "clock"
    assert [one.step_time for one in found][2:] == [2.0, 2.0, 2.0]


def test_a_time_that_sums_up_is_not_taken_for_one_step():
    stream = StepStream()
    found = []
    for i in range(1, 30):
        found += stream.feed(f"step {i} loss 2.5 time {i * 1.0}\n".encode(), float(i))
    assert stream.step_time_source == "clock"
    assert found[-1].step_time == 1.0


def test_nan_and_broken_bytes():
    data = b"\xff\xfe step 1 loss nan \xe4\xbd\n\x00\x1b]0;title\x07step 2 loss inf\nstep 3 loss 1.5\n"
    _, found = read(data, pieces=[1] * len(data))
    assert math.isnan(found[0].loss) and math.isinf(found[1].loss) and found[2].loss == 1.5


def test_evaluation_is_no_step():
    assert read("step 1 eval loss 2.5\nstep 2 val_loss: 2.5\nstep 3 test loss 2.5\n")[1] == []


def test_lines_are_bounded_and_a_long_one_hides_nothing():
    reader = LineReader()
    lines = []
    for _ in range(100):
        lines += reader.feed(b"x" * (1 << 16))
        assert len(reader._held) <= MOST + 1
    lines += reader.feed(b"\nstep 1 loss 2.0\n")
    assert [len(lines[0]), lines[1]] == [MOST, "step 1 loss 2.0"]


def test_crlf_across_reads_gives_no_empty_line():
    reader = LineReader()
    assert reader.feed(b"one\r") + reader.feed(b"\ntwo\r\nthree") + reader.close() == ["one", "two", "three"]


def test_own_expression_and_metric():
    _, found = read(
        "it=3; L -> 2.5; 120 millis\n", from_expression(r"it=(?P<step>\d+); L -> (?P<loss>\S+); (?P<step_time_ms>\d+)")
    )
    assert [(one.step, one.loss, one.step_time) for one in found] == [(3, 2.5, 0.12)]
    assert [one.loss for one in read("acc: 0.5\naccuracy: 0.93\n", from_metric("accuracy"))[1]] == [0.93]
    for wrong in ("(", r"loss (\d+)"):
        with pytest.raises(WrongInput):
            from_expression(wrong)


def test_event_files(tmp_path):
    def varint(value):
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    def block(field, data):
        return varint(field << 3 | 2) + varint(len(data)) + data

    data = b""
    for step in range(1, 4):
        value = block(1, b"train/loss") + varint(2 << 3 | 5) + struct.pack("<f", 3 - step / 2)
        event = varint(1 << 3 | 1) + struct.pack("<d", 100.0 + 2 * step) + varint(2 << 3) + varint(step)
        event += block(5, block(1, value))
        data += struct.pack("<QI", len(event), 0) + event + b"\0\0\0\0"
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(data + b"torn")
    assert [(one.step, one.loss, one.step_time) for one in metrics_of([path])] == [
        (1, 2.5, None),
        (2, 2.0, 2.0),
        (3, 1.5, 2.0),
    ]
