import torch
import torch.nn.functional as F
from torch import nn


class Plain(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)
        self.scale = 1.2

    def forward(self, x):
        return self.fc2(F.silu(self.fc1(x)) * self.scale)


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.reduce = nn.Conv2d(channels, reduced, 1)
        self.expand = nn.Conv2d(reduced, channels, 1)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        s = self.expand(self.act(self.reduce(s)))
        return x * torch.sigmoid(s)


class Modulated(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, 2 * dim)
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)

    def forward(self, x, condition):
        shift, scale = self.linear(F.silu(condition)).chunk(2, dim=-1)
        return self.norm(x) * (1 + scale[:, None]) + shift[:, None]
