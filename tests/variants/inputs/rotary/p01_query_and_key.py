import torch
from torch import nn


def rotate_half(x):
    """Rotates half the hidden dims of the input."""
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    q_embed = (q * cos) + (rotate_half(q) * sin)  #> rotary recommended
    k_embed = (k * cos) + (rotate_half(k) * sin)  #<
    return q_embed, k_embed


def rotate_one(t, cos, sin):
    return t * cos + rotate_half(t) * sin  #= rotary recommended


class Rotary(nn.Module):
    def forward(self, x, cos, sin):
        first, second = x.chunk(2, dim=-1)  #> rotary recommended
        rotated = torch.cat([-second, first], -1)
        x = x * cos
        x = x + rotated * sin  #<
        return x
