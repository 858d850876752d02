import torch
from torch import nn


def capped(query, key, value, attention_mask, scaling, softcap):
    attn_weights = torch.matmul(query, key.transpose(2, 3)) * scaling  #> fusion_attention refused
    attn_weights = attn_weights / softcap
    attn_weights = torch.tanh(attn_weights)
    attn_weights = attn_weights * softcap
    if attention_mask is not None:
        attn_weights = attn_weights + attention_mask
    attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(attn_weights, value)  #<
