import torch
import torch.nn.functional as F


def make(gated):
    if gated:

        def activation(x):
            a, b = torch.chunk(x, 2, dim=-1)  #> swiglu recommended
            return F.silu(a) * b  #<

        return activation
    return lambda x: F.silu(x)
