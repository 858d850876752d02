import torch.nn.functional as F
from torch import nn


class Geglu(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.proj = nn.Linear(dim, hidden * 2)

    def forward(self, x):
        x, gates = self.proj(x).chunk(2, dim=-1)  #> geglu recommended
        return x * F.gelu(gates)  #<


class Tanh(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.wi_0 = nn.Linear(dim, hidden, bias=False)
        self.wi_1 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return F.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x)  #= geglu recommended


class Reglu(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.wi_0 = nn.Linear(dim, hidden, bias=False)
        self.wi_1 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return F.relu(self.wi_0(x)) * self.wi_1(x)  #= swiglu refused
