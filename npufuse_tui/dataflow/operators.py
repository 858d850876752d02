"""Torch's operators as the graph names them: one name for the function, the method and the functional form.

`SIGNATURES` gives the parameters in order, so that a keyword and a position are the same argument. Parameters named
in `LITERALS` become attributes of the node when they are literals.
"""

from __future__ import annotations

SIGNATURES: dict[str, tuple[str, ...]] = {
    "abs": ("input",),
    "add": ("input", "other"),
    "baddbmm": ("input", "batch1", "batch2"),
    "bincount": ("input", "weights", "minlength"),
    "bmm": ("input", "other"),
    "cat": ("tensors", "dim"),
    "chunk": ("input", "chunks", "dim"),
    "clamp": ("input", "min", "max"),
    "clone": ("input",),
    "contiguous": ("input",),
    "cos": ("input",),
    "div": ("input", "other"),
    "dropout": ("input", "p", "training", "inplace"),
    "einsum": ("equation", "operands"),
    "exp": ("input",),
    "expand": ("input", "sizes"),
    "flatten": ("input", "start_dim", "end_dim"),
    "gelu": ("input", "approximate"),
    "index_add": ("input", "dim", "index", "source"),
    "linear": ("input", "weight", "bias"),
    "masked_fill": ("input", "mask", "value"),
    "matmul": ("input", "other"),
    "mean": ("input", "dim", "keepdim", "dtype"),
    "movedim": ("input", "source", "destination"),
    "mul": ("input", "other"),
    "neg": ("input",),
    "norm": ("input", "p", "dim", "keepdim", "dtype"),
    "nonzero": ("input",),
    "normalize": ("input", "p", "dim", "eps"),
    "one_hot": ("input", "num_classes"),
    "permute": ("input", "dims"),
    "polar": ("abs", "angle"),
    "pow": ("input", "exponent"),
    "reciprocal": ("input",),
    "relu": ("input", "inplace"),
    "repeat": ("input", "sizes"),
    "repeat_interleave": ("input", "repeats", "dim"),
    "reshape": ("input", "shape"),
    "rms_norm": ("input", "normalized_shape", "weight", "eps"),
    "rsqrt": ("input",),
    "scaled_dot_product_attention": (
        "query",
        "key",
        "value",
        "attn_mask",
        "dropout_p",
        "is_causal",
        "scale",
        "enable_gqa",
    ),
    "sigmoid": ("input",),
    "silu": ("input", "inplace"),
    "sin": ("input",),
    "softmax": ("input", "dim", "dtype"),
    "split": ("input", "split_size", "dim"),
    "sqrt": ("input",),
    "square": ("input",),
    "squeeze": ("input", "dim"),
    "stack": ("tensors", "dim"),
    "sub": ("input", "other"),
    "sum": ("input", "dim", "keepdim", "dtype"),
    "tanh": ("input",),
    "transpose": ("input", "dim0", "dim1"),
    "tril": ("input", "diagonal"),
    "triu": ("input", "diagonal"),
    "unbind": ("input", "dim"),
    "unflatten": ("input", "dim", "sizes"),
    "unsqueeze": ("input", "dim"),
    "view_as_complex": ("input",),
    "view_as_real": ("input",),
    "where": ("condition", "input", "other"),
    "zeros_like": ("input",),
}

ALIASES = {
    "absolute": "abs",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "linalg_norm": "norm",
    "vector_norm": "norm",
    "mm": "matmul",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
    "view": "reshape",
}

IN_PLACE = frozenset(
    {
        "add",
        "mul",
        "sub",
        "div",
        "pow",
        "sqrt",
        "rsqrt",
        "neg",
        "clamp",
        "masked_fill",
        "relu",
        "silu",
        "sigmoid",
        "exp",
        "index_add",
    }
)
"""Operators whose name with a trailing underscore changes their first operand."""

DEFAULTS: dict[tuple[str, str], object] = {
    ("cat", "dim"): 0,
    ("chunk", "dim"): 0,
    ("clamp", "min"): None,
    ("clamp", "max"): None,
    ("flatten", "start_dim"): 0,
    ("flatten", "end_dim"): -1,
    ("gelu", "approximate"): "none",
    ("mean", "keepdim"): False,
    ("norm", "p"): 2,
    ("norm", "keepdim"): False,
    ("normalize", "p"): 2,
    ("normalize", "dim"): 1,
    ("normalize", "eps"): 1e-12,
    ("softmax", "dim"): None,
    ("split", "dim"): 0,
    ("stack", "dim"): 0,
    ("sum", "keepdim"): False,
    ("tril", "diagonal"): 0,
    ("triu", "diagonal"): 0,
    ("unbind", "dim"): 0,
}

LITERALS: dict[str, tuple[str, ...]] = {
    "cat": ("dim",),
    "chunk": ("chunks", "dim"),
    "flatten": ("start_dim", "end_dim"),
    "gelu": ("approximate",),
    "mean": ("dim", "keepdim"),
    "movedim": ("source", "destination"),
    "norm": ("p", "dim", "keepdim"),
    "normalize": ("p", "dim"),
    "permute": ("dims",),
    "softmax": ("dim",),
    "squeeze": ("dim",),
    "stack": ("dim",),
    "sum": ("dim", "keepdim"),
    "transpose": ("dim0", "dim1"),
    "unbind": ("dim",),
    "unsqueeze": ("dim",),
}

IGNORED = frozenset(
    {"inplace", "out", "memory_format", "non_blocking", "copy", "_stacklevel", "device", "requires_grad"}
)
"""Arguments that change how, not what, is computed."""

VARIADIC = frozenset({"permute", "reshape", "expand", "repeat"})
"""Operators whose sizes may be given one by one or as one tuple."""

FUNCTION_HOMES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.special",
    "math",
)

MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "torch.nn.SiLU": ("silu", ()),
    "torch.nn.Sigmoid": ("sigmoid", ()),
    "torch.nn.ReLU": ("relu", ()),
    "torch.nn.Tanh": ("tanh", ()),
    "torch.nn.GELU": ("gelu", ("approximate",)),
    "torch.nn.Softmax": ("softmax", ("dim",)),
    "torch.nn.Identity": ("identity", ()),
}
"""Modules that hold nothing: a call of one is the operator itself."""

ACTIVATIONS: dict[str, tuple[str, tuple[object, ...]]] = {
    "silu": ("silu", ()),
    "swish": ("silu", ()),
    "gelu": ("gelu", ("none",)),
    "gelu_new": ("gelu", ("tanh",)),
    "gelu_fast": ("gelu", ("tanh",)),
    "gelu_pytorch_tanh": ("gelu", ("tanh",)),
    "relu": ("relu", ()),
    "sigmoid": ("sigmoid", ()),
    "tanh": ("tanh", ()),
}
"""Names in the activation tables of model libraries."""


def canonical_name(name: str) -> str | None:
    """The graph's name of torch's function or method `name`, or None when the graph does not know it."""
    name = ALIASES.get(name, name)
    return name if name in SIGNATURES else None
