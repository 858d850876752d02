#: crlf bom
import torch
import torch.nn.functional as F


def glu(x):
    a, b = x.chunk(2, dim=-1)  #> swiglu recommended
    return F.silu(a) * b  #<
