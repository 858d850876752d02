"""A training script as it is written for NPUs; with the argument "cpu" it does the same on the CPU, without torch_npu.

Run by torchrun with two ranks. Rank 0 prints the losses.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

ON_NPU = sys.argv[1] == "npu"
if ON_NPU:
    import torch_npu


class Block(nn.Module):
    """A norm and a gated projection, with the fused calls where there is an NPU and the plain ones elsewhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, width))
        self.up = nn.Linear(width, 2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if ON_NPU and x.device.type == "npu":
            normed = torch_npu.npu_rms_norm(x, self.weight, epsilon=1e-6)[0]
            return torch_npu.npu_swiglu(self.up(normed))
        wide = x.float()
        normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight).to(x.dtype)
        gate, up = self.up(normed).float().chunk(2, -1)
        return (functional.silu(gate) * up).half()


def main() -> None:
    rank = int(os.environ["RANK"])
    if ON_NPU:
        torch.npu.set_device(rank)
    dist.init_process_group("hccl" if ON_NPU else "gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), Block(32), nn.Linear(32, 1))
    if ON_NPU:
        model = DistributedDataParallel(model.npu(), device_ids=[rank])
        scaler = torch.npu.amp.GradScaler()
        device = torch.device("npu", rank)
    else:
        model = DistributedDataParallel(model)
        scaler = torch.amp.GradScaler("cpu")
        device = torch.device("cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    numbers = torch.Generator().manual_seed(rank)
    for step in range(6):
        x = torch.randn(8, 16, generator=numbers)
        y = x.sum(-1, keepdim=True)
        if ON_NPU:
            x, y = x.npu(non_blocking=True), y.to(f"npu:{rank}")
        assert x.device == device
        with torch.autocast(device.type, dtype=torch.float16):
            out = model(x)
            loss = functional.mse_loss(out.float(), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        mean = loss.detach().clone()
        if ON_NPU:
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            torch.npu.synchronize()
        else:
            dist.all_reduce(mean)
            mean /= dist.get_world_size()
        if rank == 0:
            print(f"step {step} loss {mean.item()!r}", flush=True)
    gathered: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, rank)
    assert gathered == [0, 1]
    if ON_NPU:
        dist.barrier(device_ids=[rank])
        assert dist.get_backend() == "hccl" and torch.npu.device_count() == 2
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
