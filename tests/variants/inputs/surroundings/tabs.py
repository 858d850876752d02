import torch
from torch import nn


class Norm(nn.Module):
	def __init__(self, dim, eps=1e-6):
		super().__init__()
		self.weight = nn.Parameter(torch.ones(dim))
		self.eps = eps

	def forward(self, x):
		y = x.float()  #> rms_norm recommended
		y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
		return self.weight * y.to(x.dtype)  #<
