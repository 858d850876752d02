import torch
import torch.nn.functional as F


@torch.compile
def compiled(x):
    a, b = x.chunk(2, dim=-1)  #> swiglu recommended
    return F.silu(a) * b  #<


@torch.jit.script
def scripted(x):
    a, b = x.chunk(2, dim=-1)  #> swiglu refused
    return F.silu(a) * b  #<
