import torch
from torch import nn


class EncoderNorm(nn.Module):
    """No bias and no subtraction of the mean."""

    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)  #> rms_norm recommended
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)

        # half precision where asked for
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)

        return self.weight * hidden_states  #<
