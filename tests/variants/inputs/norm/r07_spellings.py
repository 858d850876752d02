import math

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.dim = dim
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))


class TimesItself(Base):
    def forward(self, x):
        return self.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps))  #= rms_norm recommended


class Power(Base):
    def forward(self, x):
        return self.weight * x * (x**2).mean(dim=-1, keepdim=True).add(self.eps).rsqrt()  #= rms_norm recommended


class Sum(Base):
    def forward(self, x):
        ms = x.pow(2).sum(-1, keepdim=True) / x.shape[-1]  #> rms_norm recommended
        return x * torch.rsqrt(ms + self.eps) * self.weight  #<


class DividedByRoot(Base):
    def forward(self, x):
        rms = torch.sqrt(torch.mean(x.square(), -1, True) + self.eps)  #> rms_norm recommended
        return x / rms * self.weight  #<


class OneOverRoot(Base):
    def forward(self, x):
        inverse = 1 / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)  #> rms_norm recommended
        return self.weight * (x * inverse)  #<


class MinusHalf(Base):
    def forward(self, x):
        inverse = (torch.pow(x, 2).mean(-1, keepdim=True) + self.eps) ** -0.5  #> rms_norm recommended
        return inverse * x * self.weight  #<


class Augmented(Base):
    def forward(self, x):
        y = x.float()  #> rms_norm recommended
        v = y.pow(2)
        v = v.mean(-1, keepdim=True)
        v += self.eps
        y *= torch.rsqrt(v)
        y = y.to(x.dtype)
        y = y * self.weight  #<
        return y
