"""torch.npu's random numbers: there is one generator, the CPU's."""

from __future__ import annotations

import torch


def get_rng_state(device: object = "npu") -> torch.Tensor:
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: object = "npu") -> None:
    torch.default_generator.set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    from .. import current

    return [get_rng_state() for _ in range(current.count())]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    for state in new_states[:1]:
        set_rng_state(state)


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    torch.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    return int(torch.default_generator.initial_seed())
