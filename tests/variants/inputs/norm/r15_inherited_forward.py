import torch
from torch import nn


class ParentNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))  #= rms_norm recommended


class ChildNorm(ParentNorm):
    pass


class SmallerEpsilon(ParentNorm):
    def __init__(self, dim):
        super().__init__(dim, eps=1e-8)
