"""The kernels: one file a family, each a formula in float32 with one cast at the end."""
