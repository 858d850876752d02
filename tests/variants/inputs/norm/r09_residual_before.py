import torch
from torch import nn


class AddAndNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x, residual):
        x = x + residual  #> add_rms_norm caution
        residual = x
        variance = x.float().pow(2).mean(-1, keepdim=True)  #> rms_norm recommended
        x = x.float() * torch.rsqrt(variance + self.eps)
        x = x.to(residual.dtype) * self.weight  #<<
        return x, residual
