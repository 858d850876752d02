import torch
from torch import nn

try:
    from apex.normalization import FusedRMSNorm as RMSNorm
except ImportError:

    class RMSNorm(nn.Module):
        def __init__(self, dim, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))
            self.eps = eps

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))  #= rms_norm recommended


class Other:
    class RMSNorm(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(dim))

        def forward(self, x):
            return self.gain * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))  #= rms_norm recommended
