import torch
from torch import nn


class DecoderNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype  #> rms_norm recommended
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)  #<

    def extra_repr(self):
        return f"{tuple(self.weight.shape)}, eps={self.variance_epsilon}"


class QueryNorm(nn.Module):
    def __init__(self, head_dim: int, epsilon: float = 1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.empty(head_dim))
        self.epsilon = epsilon
        nn.init.ones_(self.gain)

    def forward(self, q: torch.Tensor) -> torch.Tensor:
        kept = q.dtype  #> rms_norm recommended
        wide = q.float()
        scale = torch.rsqrt(torch.mean(wide * wide, dim=-1, keepdim=True) + self.epsilon)
        return (wide * scale).to(kept) * self.gain  #<
