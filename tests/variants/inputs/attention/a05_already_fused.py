import torch.nn.functional as F


def attend(q, k, v, mask=None, dropout=0.0, training=True):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout if training else 0.0)
