import torch.nn.functional as F
from torch import nn


class PackedExpert(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.hidden = config.hidden

    def forward(self, x):
        gate = F.linear(x, self.gate_up.weight[: self.hidden])  #> swiglu recommended
        up = F.linear(x, self.gate_up.weight[self.hidden :])
        return F.silu(gate) * up  #<
