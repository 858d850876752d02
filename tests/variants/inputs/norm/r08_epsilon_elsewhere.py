import torch
import torch.nn.functional as F
from torch import nn


class Outside(nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        rms = x.pow(2).mean(-1, keepdim=True).sqrt()  #> rms_norm caution
        return x / (rms + self.eps) * self.g  #<


class Clamped(nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
        self.scale = dim**-0.5
        self.eps = eps

    def forward(self, x):
        norm = torch.norm(x, dim=-1, keepdim=True) * self.scale  #> rms_norm caution
        return x / norm.clamp(min=self.eps) * self.g  #<


class Normalized(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.g = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.g  #= rms_norm caution
