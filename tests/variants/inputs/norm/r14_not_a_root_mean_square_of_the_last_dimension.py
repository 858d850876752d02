import torch
import torch.nn.functional as F
from torch import nn


class ChannelsFirst(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(dim=1, keepdim=True) + self.eps)
        return x * self.weight.view(1, -1, 1, 1)


class WithTheMean(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        x = (x - mean) * torch.rsqrt(variance + self.eps)
        return self.weight * x + self.bias


class GlobalResponse(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1, 1, 1, dim))
        self.beta = nn.Parameter(torch.zeros(1, 1, 1, dim))

    def forward(self, x):
        gx = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        nx = gx / (gx.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * nx) + self.beta + x


def l2norm(x, dim=-1, eps=1e-6):
    inv_norm = torch.rsqrt((x * x).sum(dim=dim, keepdim=True) + eps)
    return x * inv_norm


def cosine(a, b):
    return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).transpose(-2, -1)


class Rescaled(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                update = p.grad**2 + group["eps"]
                row = self.state[p]["row"].mul_(0.9).add_(update.mean(dim=-1), alpha=0.1)
                factor = (row / row.mean(dim=-1, keepdim=True)).rsqrt_().unsqueeze(-1)
                p.add_(p.grad * factor, alpha=-group["lr"])
