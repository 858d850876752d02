import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))  #= swiglu recommended


class OtherOrder(FeedForward):
    def forward(self, x):
        return self.w2(self.w3(x) * torch.nn.functional.silu(self.w1(x)))  #= swiglu recommended
