"""The fused optimizers, as their torch twins: the same steps, and the refusals of the fused ones.

The real ones keep parameters and gradients in one flat buffer, take float16 and float32 parameters only, and cannot
have their gradients set to None.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .settings import not_emulated


class NpuFusedOptimizerBase(torch.optim.Optimizer):  # type: ignore[misc]
    """What the fused optimizers share."""

    def step(self, closure: Any = None) -> Any:
        """One step. Raises TypeError for a parameter that is neither float16 nor float32, RuntimeError for sparse."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.dtype not in (torch.float16, torch.float32):
                    name = str(parameter.dtype).removeprefix("torch.")
                    raise TypeError(
                        f"{type(self).__name__}: a parameter is {name}, and only float32 and float16 are taken; use "
                        f"torch.optim.{type(self).__name__.removeprefix('NpuFused')}"
                    )
                if parameter.grad.is_sparse:
                    raise RuntimeError(f"{type(self).__name__} does not take sparse gradients")
        return super().step(closure)

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Fill the gradients with zeros. Raises ValueError where they shall be None instead."""
        if set_to_none:
            raise ValueError(
                f"{type(self).__name__} keeps gradients in one buffer: set_to_none=True is not taken, leave it out"
            )
        super().zero_grad(set_to_none=False)

    def clip_grad_norm_fused_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Scale all gradients so that their norm together is at most `max_norm`; answers the norm before."""
        gradients = [
            parameter.grad
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.requires_grad and parameter.grad is not None
        ]
        if not gradients:
            return torch.tensor(0.0)
        if float(norm_type) == math.inf:
            total = torch.stack([gradient.float().abs().max() for gradient in gradients]).max()
        else:
            powers = [gradient.float().abs().pow(float(norm_type)).sum() for gradient in gradients]
            total = torch.stack(powers).sum().pow(1.0 / float(norm_type))
        factor = float(max_norm) / (total + 1e-6)
        if factor < 1:
            for gradient in gradients:
                gradient.mul_(factor)
        return total


class NpuFusedAdamW(NpuFusedOptimizerBase, torch.optim.AdamW):  # type: ignore[misc]
    """torch.optim.AdamW."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        torch.optim.AdamW.__init__(self, params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedAdam(NpuFusedOptimizerBase, torch.optim.Adam):  # type: ignore[misc]
    """torch.optim.Adam."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
    ) -> None:
        torch.optim.Adam.__init__(self, params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedSGD(NpuFusedOptimizerBase, torch.optim.SGD):  # type: ignore[misc]
    """torch.optim.SGD; the learning rate must be given."""

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        torch.optim.SGD.__init__(self, params, lr, momentum, dampening, weight_decay, nesterov)


class NpuFusedAdadelta(NpuFusedOptimizerBase, torch.optim.Adadelta):  # type: ignore[misc]
    """torch.optim.Adadelta."""

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0
    ) -> None:
        torch.optim.Adadelta.__init__(self, params, lr, rho, eps, weight_decay)


class NpuFusedRMSprop(NpuFusedOptimizerBase, torch.optim.RMSprop):  # type: ignore[misc]
    """torch.optim.RMSprop."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
    ) -> None:
        torch.optim.RMSprop.__init__(self, params, lr, alpha, eps, weight_decay, momentum, centered)


def __getattr__(name: str) -> Any:
    if name.startswith("NpuFused"):  # Lamb, AdamP, BertAdam, RMSpropTF: torch has no twin of them

        def refuse(*args: object, **kwargs: object) -> None:
            raise not_emulated(f"torch_npu.optim.{name}")

        return refuse
    raise AttributeError(f"module 'torch_npu.optim' has no attribute {name!r}")
