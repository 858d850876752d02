import torch
import torch.nn.functional as F
from torch import nn


class Sigmoid(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)

    def forward(self, x):
        a = self.gate(x)
        b = self.up(x)
        return a * torch.sigmoid(a) * b  #= swiglu recommended


class Held(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.gate(x)) * self.up(x)  #= swiglu recommended


class InPlace(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)

    def forward(self, x):
        return F.silu(self.gate(x), inplace=True) * self.up(x)  #= swiglu recommended
