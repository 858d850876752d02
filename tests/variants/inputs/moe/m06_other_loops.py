import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers, heads):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.heads = nn.ModuleList(heads)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def each_head(self, x):
        return torch.stack([head(x) for head in self.heads], dim=1)


def per_modality(encoders, inputs, out):
    for index in range(len(encoders)):
        out.index_add_(0, torch.tensor([index]), encoders[index](inputs[index]))
    return out
