import torch
from torch import nn


class PerGroup(nn.Module):
    def __init__(self, dim, group_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(group_size))
        self.group_size = group_size
        self.eps = eps

    def forward(self, x):
        grouped = x.view(*x.shape[:-1], -1, self.group_size)
        variance = grouped.pow(2).mean(-1, keepdim=True)  #> rms_norm recommended
        grouped = grouped * torch.rsqrt(variance + self.eps) * self.weight  #<
        return grouped.view(x.shape)
