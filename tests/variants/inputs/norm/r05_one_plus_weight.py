import torch
from torch import nn


class ZeroCentred(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float())  #> rms_norm recommended
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)  #<


class OffsetWritten(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = x.float()  #> rms_norm recommended
        y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + self.eps)
        return (y * (self.scale.float() + 1)).to(x.dtype)  #<
