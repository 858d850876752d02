import torch


def reshape_for_broadcast(freqs_cis, x):
    shape = [d if i == 1 or i == x.ndim - 1 else 1 for i, d in enumerate(x.shape)]
    return freqs_cis.view(*shape)


def apply_rotary_emb(x, freqs_cis):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))  #> rotary caution
    x_out = torch.view_as_real(x_ * freqs_cis.unsqueeze(2)).flatten(3)
    return x_out.type_as(x)  #<
