"""Profiles of the Ascend PyTorch profiler: hot sequences of kernels, and the candidates that they lead to."""
