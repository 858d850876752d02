import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps).to(x.dtype)  #= rms_norm recommended


def unit_rms(x, eps=1e-6):
    mean_square = torch.mean(torch.square(x), dim=-1, keepdim=True)  #> rms_norm recommended
    return x * torch.rsqrt(mean_square + eps)  #<
