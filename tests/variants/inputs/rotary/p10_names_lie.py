import torch


def rotate_half(x):
    x = x.reshape(*x.shape[:-1], -1, 2)
    x1, x2 = x.unbind(dim=-1)
    return torch.stack((x2, x1), dim=-1).flatten(-2)


def not_a_rotation(q, cos, sin):
    # both neighbours keep their sign: a reflection, which no operator computes
    return q * cos + rotate_half(q) * sin
