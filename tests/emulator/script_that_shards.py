"""FSDP both ways, and the collectives that training uses, as a script for NPUs has them. Run by torchrun, two ranks."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch_npu
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel


class Gated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch_npu.npu_swiglu(x)


def trained(wrap: Callable[[nn.Module], nn.Module]) -> float:
    torch.manual_seed(0)
    model = wrap(nn.Sequential(nn.Linear(8, 16), Gated(), nn.Linear(8, 8)).npu())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.ones(4, 8, device="npu")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return round(loss.item(), 6)


def fully_sharded(model: nn.Module) -> nn.Module:
    fully_shard(model, mesh=init_device_mesh("npu", (2,)))
    return model


def main() -> None:
    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", device_id=torch.device("npu", rank))
    found = {
        "ddp": trained(lambda model: DistributedDataParallel(model, device_ids=[rank])),
        "fsdp": trained(lambda model: FullyShardedDataParallel(model, device_id=torch.npu.current_device())),
        "fsdp2": trained(fully_sharded),
    }
    mine = torch.full((2,), float(rank), device="npu")
    parts = [torch.empty(2, device="npu") for _ in range(2)]
    dist.all_gather(parts, mine)
    joined = torch.empty(4, device="npu")
    dist.all_gather_into_tensor(joined, mine)
    assert joined.tolist() == torch.cat(parts).tolist() == [0.0, 0.0, 1.0, 1.0]
    share = torch.empty(2, device="npu")
    dist.reduce_scatter_tensor(share, torch.arange(4.0, device="npu"))
    assert share.tolist() == [4.0 * rank, 4.0 * rank + 2.0]
    swapped = torch.empty(2, device="npu")
    dist.all_to_all_single(swapped, mine)
    assert swapped.tolist() == [0.0, 1.0]
    dist.broadcast(mine, 1)
    assert mine.tolist() == [1.0, 1.0]
    if rank == 0:
        for name, loss in found.items():
            print(f"step {name} loss {loss}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
