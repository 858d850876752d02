import torch
import torch.nn.functional as F
from torch import nn


class Expert(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.hidden, bias=False)
        self.w2 = nn.Linear(config.hidden, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.hidden, bias=False)

    def forward(self, tokens):
        current = F.silu(self.w1(tokens)) * self.w3(tokens)  #= swiglu recommended
        return self.w2(current)


class StackedExperts(nn.Module):
    def __init__(self, num_experts, dim, hidden):
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.empty(num_experts, dim, 2 * hidden))
        self.down_proj = nn.Parameter(torch.empty(num_experts, hidden, dim))

    def forward(self, tokens):
        gate_up = torch.bmm(tokens, self.gate_up_proj)
        gate, up = gate_up.chunk(2, dim=-1)  #> swiglu recommended
        hidden = up * F.silu(gate)  #<
        return torch.bmm(hidden, self.down_proj)
