"""npufuse: fused Ascend NPU operators for PyTorch code, found, written and proven."""

__version__ = "0.1.0"
