import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, dim, experts, top_k):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.top_k = top_k

    def forward(self, x):
        weights = F.softmax(self.gate(x), dim=-1, dtype=torch.float)
        weights, chosen = torch.topk(weights, self.top_k, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        return weights.to(x.dtype), chosen


def distillation(student, teacher, temperature):
    target = F.softmax(teacher / temperature, dim=-1)
    return -(target * F.log_softmax(student / temperature, dim=-1)).sum(-1).mean()


def sample(logits, temperature):
    return torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1)


class Mixture(nn.Module):
    def forward(self, logits, bins):
        return logits.softmax(-1) @ bins
