"""A script that is written for the NPU runs as it is: every way of naming the device ends on the CPU."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
import torch_npu
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

NPU = torch.device("npu:0")

MAKERS = {
    "zeros": lambda device: torch.zeros(2, device=device),
    "tensor": lambda device: torch.tensor([1.0, 2.0], device=device),
    "as_tensor": lambda device: torch.as_tensor([1.0, 2.0], device=device),
    "arange": lambda device: torch.arange(2, device=device),
    "randn": lambda device: torch.randn(2, device=device),
    "randint": lambda device: torch.randint(0, 3, (2,), device=device),
    "full": lambda device: torch.full((2,), 1.0, device=device),
    "linspace": lambda device: torch.linspace(0, 1, 2, device=device),
    "eye": lambda device: torch.eye(2, device=device),
    "empty_like": lambda device: torch.empty_like(torch.ones(2), device=device),
    "zeros_like": lambda device: torch.zeros_like(torch.ones(2), device=device),
    "new_zeros": lambda device: torch.ones(2).new_zeros(3, device=device),
    "new_tensor": lambda device: torch.ones(2).new_tensor([1.0], device=device),
    "to": lambda device: torch.ones(2).to(device),
    "to with a dtype": lambda device: torch.ones(2).to(device, torch.float16),
    "to by keyword": lambda device: torch.ones(2).to(device=device, non_blocking=True),
    "npu": lambda device: torch.ones(2).npu(device),
    "a module": lambda device: torch.nn.Linear(2, 2).to(device).weight,
    "a module made there": lambda device: torch.nn.Linear(2, 2, device=device).weight,
    "a module moved": lambda device: torch.nn.Linear(2, 2).npu(device).weight,
    "a module out of nothing": lambda device: torch.nn.Linear(2, 2, device="meta").to_empty(device=device).weight,
    "a buffer": lambda device: torch.nn.BatchNorm1d(2, device=device).running_mean,
    "a generator": lambda device: torch.rand(2, generator=torch.Generator(device).manual_seed(1), device=device),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("device", ["npu", "npu:0", NPU, torch.device("npu", 0)], ids=str)
def test_names_of_the_device(name, device):
    made = MAKERS[name](device)
    assert made.is_npu and made.device == NPU and made.device.type == "npu"
    assert (made + 1).device == NPU
    assert made.cpu().numpy() is not None if not made.requires_grad else True


def test_meta_stays_meta():
    made = torch.empty(2, device="meta")
    assert made.device.type == "meta" and not made.is_npu
    assert torch_npu.npu_swiglu(torch.empty(2, 8, device="meta")).shape == (2, 4)


def test_contexts():
    with torch.device("npu:1"):
        assert torch.ones(2).is_npu
    torch.set_default_device("npu")
    try:
        assert torch.ones(2).is_npu
    finally:
        torch.set_default_device(None)
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1 and torch.ones(2).device.index == 1
    assert torch.npu.current_device() == 0


def test_checkpoints_written_and_read():
    file = io.BytesIO()
    torch.save({"weight": torch.ones(2, device="npu")}, file)
    for place in ("npu:0", "cpu", NPU, None, lambda storage, location: storage):
        file.seek(0)
        assert torch.equal(torch.load(file, map_location=place)["weight"], torch.ones(2))


def test_checkpoints_written_on_an_npu(monkeypatch):
    file = io.BytesIO()
    with monkeypatch.context() as patched:
        patched.setattr(torch.serialization, "location_tag", lambda storage: "npu:3")
        torch.save({"weight": torch.ones(2)}, file)
    assert b"npu:3" in file.getvalue()
    file.seek(0)
    assert torch.equal(torch.load(file)["weight"], torch.ones(2))


def test_copies():
    model = torch.nn.Linear(2, 2).npu()
    assert copy.deepcopy(model).weight.is_npu
    assert pickle.loads(pickle.dumps(model.weight)).is_npu
    assert repr(torch.ones(1).npu()) == "tensor([1.], device='npu:0')"


def test_autocast():
    x, linear = torch.randn(2, 4, device="npu"), torch.nn.Linear(4, 8).npu()
    with torch.autocast("npu"):
        assert torch.is_autocast_enabled("npu")
        assert linear(x).dtype == torch.float16
    with torch.autocast(device_type="npu", dtype=torch.bfloat16):
        assert linear(x).dtype == torch.bfloat16 and torch.get_autocast_dtype("npu") == torch.bfloat16
    with torch.npu.amp.autocast(dtype=torch.bfloat16):
        assert linear(x).dtype == torch.bfloat16
    with torch.autocast("npu", enabled=False):
        assert linear(x).dtype == torch.float32
    assert not torch.is_autocast_enabled("npu")


def test_custom_functions_cast():
    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="npu", cast_inputs=torch.float16)
        def forward(ctx, x):
            assert x.dtype == torch.float16
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="npu")
        def backward(ctx, gradient):
            return gradient * 2

    with torch.autocast("npu"):
        assert Doubled.apply(torch.ones(2, device="npu", requires_grad=True)).dtype == torch.float16


@pytest.mark.parametrize("scaler", [torch.npu.amp.GradScaler, lambda: torch.amp.GradScaler("npu")])
def test_grad_scaler(scaler):
    parameter = torch.nn.Parameter(torch.ones(2, device="npu"))
    optimizer, scaled = torch.optim.SGD([parameter], lr=0.5), scaler()
    scaled.scale(parameter.sum()).backward()
    scaled.step(optimizer)
    scaled.update()
    assert parameter.tolist() == [0.5, 0.5]
    optimizer.zero_grad()
    scaled.scale(parameter.sum() * float("inf")).backward()
    before = scaled.get_scale()
    scaled.step(optimizer)
    scaled.update()
    assert parameter.tolist() == [0.5, 0.5] and scaled.get_scale() == before / 2


class Numbers(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, at):
        return torch.ones(3) * at


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pinned", [False, True])
def test_workers(workers, pinned):
    loader = DataLoader(Numbers(), batch_size=3, num_workers=workers, pin_memory=pinned)
    assert [batch.npu(non_blocking=True).sum().item() for batch in loader] == [9.0, 36.0]


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing(reentrant):
    x = torch.randn(4, 8, device="npu", requires_grad=True)

    def block(given):
        return torch.nn.functional.dropout(torch_npu.npu_swiglu(given), 0.5)

    torch.manual_seed(3)
    block(x).sum().backward()
    wanted, x.grad = x.grad, None
    torch.manual_seed(3)
    checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, wanted)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend):
    def normed(x, weight):
        return torch_npu.npu_rms_norm(x, weight)[0] * 2 + torch.zeros(8, device=x.device)

    x = torch.randn(2, 8, device="npu", requires_grad=True)
    y = torch.compile(normed, backend=backend)(x, torch.ones(8, device="npu"))
    y.sum().backward()
    torch.testing.assert_close(y, normed(x, torch.ones(8)))
    assert x.grad is not None


def test_export_keeps_the_operator():
    class Gated(torch.nn.Module):
        def forward(self, x):
            return torch_npu.npu_swiglu(x)

    code = torch.export.export(Gated(), (torch.randn(3, 4),)).graph_module.code
    assert "torch.ops.npu.npu_swiglu" in code


def test_torchscript_still_knows_the_factories():
    @torch.jit.script
    def added(x: torch.Tensor) -> torch.Tensor:
        return x + torch.zeros(3) + torch.ones(3, dtype=x.dtype)

    assert added(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_streams_and_events():
    stream, start, end = torch.npu.Stream(), torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        x = torch.ones(2).npu()
        x.record_stream(stream)
    torch.npu.current_stream().wait_stream(stream)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0 and torch.npu.current_stream() == torch.npu.default_stream()


def test_questions_about_the_device():
    assert torch.npu.is_available() and torch.npu.device_count() == 1 and torch.npu.current_device() == 0
    torch.npu.set_device("npu:0")
    torch.npu.synchronize()
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.memory_allocated() == torch.npu.max_memory_allocated() == 0
    assert torch.npu.mem_get_info()[1] > 0 and "emulated" in torch.npu.get_device_name(0)
    assert torch.npu.is_bf16_supported() and torch.get_device_module("npu") is torch.npu
    torch.npu.set_compile_mode(jit_compile=False)
    torch.npu.config.allow_internal_format = False
    torch.npu.matmul.allow_hf32 = True
    if hasattr(torch, "accelerator"):
        assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "npu"


def test_ways_of_importing():
    import torch.npu.amp
    import torch_npu.npu.amp
    from torch.npu import Stream
    from torch.npu.amp import GradScaler
    from torch_npu.npu import amp

    assert torch.npu.amp is torch_npu.npu.amp is amp and amp.GradScaler is GradScaler
    assert Stream is torch_npu.npu.Stream


def test_random_numbers_follow_the_seed():
    torch.npu.manual_seed(5)
    first, state = torch.randn(3, device="npu"), torch.npu.get_rng_state()
    torch.npu.manual_seed_all(5)
    assert torch.equal(torch.randn(3, device="npu"), first)
    second = torch.randn(3)
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.randn(3), second)


def test_cuda_scripts_through_transfer_to_npu():
    from torch_npu.contrib import transfer_to_npu  # noqa: F401

    assert torch.cuda.is_available() and torch.ones(2).cuda().is_cuda
    assert torch.zeros(2, device="cuda:0").device == NPU
    assert torch.nn.Linear(2, 2).cuda().weight.is_npu
    torch.cuda.synchronize()
    with torch.autocast("cuda"):
        assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype == torch.float16
