import torch.nn.functional as F


def glu(gate, up): return F.silu(gate) * up  #= swiglu recommended
