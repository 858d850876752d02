import torch
import torch.nn as nn


class WeightFirst(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype  #> rms_norm recommended
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.weight * x).to(dtype)  #<


class WeightUpcast(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, hidden):
        original = hidden.dtype  #> rms_norm recommended
        hidden = hidden.float()
        power = hidden.square().mean(dim=-1, keepdim=True)
        hidden = hidden * (power + self.eps).rsqrt()
        return (self.weight.to(torch.float32) * hidden).to(original)  #<
