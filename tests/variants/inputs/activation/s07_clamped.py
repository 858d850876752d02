import torch
from torch import nn


class ClampedExperts(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden)
        self.up_proj = nn.Linear(dim, hidden)
        self.act_fn = nn.SiLU()
        self.limit = 7.0

    def forward(self, x):
        gate = self.gate_proj(x).clamp(max=self.limit)  #> swiglu refused
        up = self.up_proj(x).clamp(min=-self.limit, max=self.limit)
        return self.act_fn(gate) * up  #<
