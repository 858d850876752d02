import torch
import torch.nn.functional as F
from torch import nn


class Chunked(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.inner = nn.Linear(dim, 2 * hidden)
        self.outer = nn.Linear(hidden, dim)

    def forward(self, x):
        h = self.inner(x)
        a, b = h.chunk(2, dim=-1)  #> swiglu recommended
        h = F.silu(a) * b  #<
        return self.outer(h)


def glu(x):
    first, second = torch.split(x, x.shape[-1] // 2, dim=-1)  #> swiglu recommended
    return F.silu(first) * second  #<


def sliced(x):
    d = x.shape[-1] // 2
    return F.silu(x[..., :d]) * x[..., d:]  #= swiglu recommended


def one_name(x):
    x = torch.chunk(x, 2, dim=-1)  #> swiglu recommended
    return F.silu(x[0]) * x[1]  #<
