"""A labelled set: small functions as real repos write them, and the risks that a person who knows would name.

The labels were written from the meaning of the code, before the checks were run on it.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A file, the rule that is looked for in it, and the codes of the risks that are really there."""

    name: str
    rule: str
    source: str
    expected: frozenset[str]
    files: dict[str, str] = field(default_factory=dict)


HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"

ATTENTION = frozenset({"mask_polarity", "sdpa_alternative"})
"""What holds of every attention with an additive mask: the mask is turned, and the fused function of torch would do."""


def _case(name: str, rule: str, body: str, *expected: str, head: str = HEAD, **files: str) -> Case:
    named = {key.replace("__", "/").replace("_dot_", "."): textwrap.dedent(text) for key, text in files.items()}
    return Case(name, rule, head + textwrap.dedent(body).lstrip("\n"), frozenset(expected), named)


def norm(
    name: str,
    *expected: str,
    forward: str = "",
    init: str = "",
    before: str = "",
    decorated: str = "",
    parameters: str = "",
    method: str = "",
    **files: str,
) -> Case:
    """A Llama-style norm whose weight is multiplied last; `forward` goes before the chain."""
    given = textwrap.dedent(init).strip("\n") or "pass"
    lines = textwrap.dedent(forward).strip("\n") or "pass"
    body = f"""\
{decorated}class Norm(nn.Module):
    def __init__(self, size, eps=1e-6{parameters}):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps
{textwrap.indent(given, " " * 8)}

{textwrap.indent(method, "    ")}    def forward(self, x):
{textwrap.indent(lines, " " * 8)}
        dtype = x.dtype
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(dtype)
"""
    return _case(name, "rms_norm", before + body, *expected, **files)


def mlp(
    name: str, *expected: str, forward: str = "", init: str = "", decorated: str = "", before: str = "", **files: str
) -> Case:
    """A gated projection of two weights."""
    given = textwrap.dedent(init).strip("\n") or "pass"
    lines = textwrap.dedent(forward).strip("\n") or "pass"
    body = f"""\
{decorated}class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
{textwrap.indent(given, " " * 8)}

    def forward(self, x):
{textwrap.indent(lines, " " * 8)}
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""
    return _case(name, "swiglu", before + body, *expected, **files)


def attention(
    name: str,
    *expected: str,
    parameters: str = "",
    forward: str = "",
    dropout: str = "",
    ending: str = "return out.transpose(1, 2).contiguous()",
    mask: str = "scores = scores + mask",
    decorated: str = "",
    before: str = "",
    states: str = "q, k, v = (one(x).view(b, s, self.heads, -1).transpose(1, 2) for one in (self.q, self.k, self.v))",
    **files: str,
) -> Case:
    """An attention written out in a class of its own."""
    lines = textwrap.dedent(forward).strip("\n") or "pass"
    split = (
        textwrap.dedent(
            """
            q = self.q(x).view(b, s, self.heads, -1).transpose(1, 2)
            k = self.k(x).view(b, s, self.heads, -1).transpose(1, 2)
            v = self.v(x).view(b, s, self.heads, -1).transpose(1, 2)
            """
        ).strip("\n")
        if "one(x)" in states
        else textwrap.dedent(states).strip("\n")
    )
    body = f"""\
class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.heads = heads

{decorated}    def forward(self, x, mask{parameters}):
        b, s, _ = x.shape
{textwrap.indent(split, " " * 8)}
{textwrap.indent(lines, " " * 8)}
        scores = torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5)
        {mask}
        probs = F.softmax(scores, dim=-1)
        {dropout or "pass"}
        out = torch.matmul(probs, v)
        {ending}
"""
    return _case(name, "fusion_attention", before + body, *expected, **files)


def rotary(name: str, *expected: str, parameters: str = "", forward: str = "", decorated: str = "") -> Case:
    lines = textwrap.dedent(forward).strip("\n") or "pass"
    body = f"""\
def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


{decorated}def rotate(q, k, cos, sin{parameters}):
{textwrap.indent(lines, " " * 4)}
    q_out = q * cos + rotate_half(q) * sin
    k_out = k * cos + rotate_half(k) * sin
    return q_out, k_out
"""
    return _case(name, "rotary", body, *expected)


HUB = "def use_kernel_forward_from_hub(name):\n    return lambda cls: cls\n\n\n"
GENERATED = (
    "#                This file was automatically generated from src/models/x/modular_x.py.\n"
    "#           Do NOT edit this file manually as any edits will be overwritten\n"
)

NORMS = [
    norm("a plain norm", "dtype"),
    norm("a norm of selected rows", "dtype", "dynamic_shape", forward="x = x[x.abs().sum(-1) > 0]"),
    norm("a norm of nonzero rows", "dtype", "dynamic_shape", forward="x = x[torch.nonzero(x[..., 0]).squeeze(-1)]"),
    norm("a norm of masked rows", "dtype", "dynamic_shape", init="self.mask = None", forward="x = x[self.mask]"),
    norm(
        "a norm of as many rows as the data says",
        "dtype",
        "dynamic_shape",
        init="self.count = torch.tensor(3)",
        forward="x = x[: self.count.item()]",
    ),
    norm("a norm of distinct rows", "dtype", "dynamic_shape", forward="x = torch.unique(x, dim=0)"),
    norm("a norm scaled by a number from the data", "dtype", forward="x = x * x.max().item()"),
    norm("a norm of a fixed slice", "dtype", "non_contiguous", forward="x = x[:, :4]"),
    norm("a norm of one row", "dtype", forward="x = x[0]"),
    norm("a norm of a transposed tensor", "dtype", "non_contiguous", forward="x = x.transpose(1, 2)"),
    norm("a norm of a transposed tensor made whole", "dtype", forward="x = x.transpose(1, 2).contiguous()"),
    norm("a norm of a permuted tensor", "dtype", "non_contiguous", forward="x = x.permute(0, 2, 1)"),
    norm("a norm of one chunk", "dtype", "non_contiguous", forward="x, _ = x.chunk(2, dim=-1)"),
    norm("a norm of an expanded tensor", "dtype", "non_contiguous", forward="x = x.expand(4, -1, -1)"),
    norm("a norm after a reshape", "dtype", forward="x = x.transpose(0, 1).reshape(-1, x.shape[-1])"),
    norm(
        "a norm swapped for a hub kernel",
        "dtype",
        "hub_kernel",
        before=HUB,
        decorated='@use_kernel_forward_from_hub("RMSNorm")\n',
    ),
    norm("a norm in a generated file", "dtype", "generated_file", before=""),
    norm("a compiled norm", "dtype", "torch_compile", method="@torch.compile\n"),
    norm("a compiled norm with options", "dtype", "torch_compile", method="@torch.compile(dynamic=True)\n"),
    norm("a norm under autocast", "dtype", method='@torch.autocast("npu")\n'),
    norm(
        "a norm whose repo compiles the model",
        "dtype",
        "torch_compile",
        train_dot_py="import torch\nfrom model import Norm\n\nmodel = torch.compile(Norm(8))\n",
    ),
    norm(
        "a norm whose repo speaks of compiling in a comment",
        "dtype",
        train_dot_py="import torch\n\n# model = torch.compile(model) is slower here\n",
    ),
    norm(
        "a norm whose repo speaks of compiling in a docstring",
        "dtype",
        train_dot_py='"""Do not call torch.compile(model) here."""\n',
    ),
    norm(
        "a norm whose repo has a helper that compiles",
        "dtype",
        import_utils_dot_py="import torch\n\n\ndef compiled(function):\n    return torch.compile(function)\n",
    ),
    norm("a norm with a pinned torch_npu", "dtype", requirements_dot_txt="torch\ntorch_npu==2.7.1\n"),
    norm("a norm of a repo for one inference card", "dtype", run_dot_sh="# Ascend310P3\npython infer.py\n"),
    norm("a norm of a repo for the 950", "dtype", "product_support", run_dot_sh="# for Ascend950PR\npython train.py\n"),
    norm("a norm that clamps afterwards", "dtype", init="self.training_steps = 3"),
    norm("a norm with hooks in the repo", "dtype", train_dot_py="model.register_forward_hook(print)\n"),
    _case(
        "a norm in float64",
        "rms_norm",
        """
        def norm(x, weight):
            x = x.double()
            return (weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))).float()
        """,
        "dtype",
    ),
    _case(
        "a scripted norm",
        "rms_norm",
        """
        @torch.jit.script
        def norm(x, weight):
            return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        """,
        "jit_script",
    ),
    _case(
        "a norm whose weight is cast down first",
        "rms_norm",
        """
        def norm(x, weight):
            h = x.float()
            h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
            return (weight * h).to(x.dtype)
        """,
    ),
    _case(
        "a norm in an autocast region",
        "rms_norm",
        """
        def norm(x, weight):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                h = x.float()
                h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
                y = (weight * h).to(x.dtype)
            return y
        """,
        "dtype",
    ),
    _case(
        "a norm where autocast is off",
        "rms_norm",
        """
        def norm(x, weight):
            with torch.autocast("cuda", enabled=False):
                h = x.float()
                h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
                y = (weight * h).to(x.dtype)
            return y
        """,
    ),
    _case(
        "a norm of a function with custom_fwd",
        "rms_norm",
        """
        class Normed(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
            def forward(ctx, x, weight):
                return (weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))).to(x.dtype)
        """,
        "dtype",
    ),
]

MLPS = [
    mlp("a plain gated projection", "concat_cost"),
    mlp(
        "a gated projection of known size",
        "concat_cost",
        config_dot_py="class Config:\n    intermediate_size: int = 512\n",
    ),
    mlp("a gated projection of routed tokens", "concat_cost", "dynamic_shape", forward="x = x[torch.where(x[..., 0])]"),
    mlp("a gated projection after masked_select", "concat_cost", "dynamic_shape", forward="x = x.masked_select(x > 0)"),
    mlp("a gated projection of a slice", "concat_cost", forward="x = x[:, :3]"),
    mlp("a compiled gated projection", "concat_cost", "torch_compile", decorated="@torch.compile\n"),
    mlp(
        "a gated projection that is checkpointed",
        "concat_cost",
        "checkpointing",
        before=(
            "from torch.utils.checkpoint import checkpoint\n\n\n"
            "def run(layer, x):\n    return checkpoint(layer, x, use_reentrant=False)\n\n\n"
        ),
    ),
    mlp(
        "a gated projection that saves a checkpoint",
        "concat_cost",
        before="def save(model):\n    torch.save(model, 'x')\n\n\n",
    ),
    _case(
        "a gated projection split over ranks",
        "swiglu",
        """
        from parallel import ColumnParallelLinear, RowParallelLinear


        class Mlp(nn.Module):
            def __init__(self, size, inner):
                super().__init__()
                self.gate_up = ColumnParallelLinear(size, 2 * inner)
                self.down = RowParallelLinear(inner, size)

            def forward(self, x):
                gate, up = self.gate_up(x).chunk(2, dim=-1)
                return self.down(F.silu(gate) * up)
        """,
        "tensor_parallel",
    ),
    _case(
        "a packed gated projection",
        "swiglu",
        """
        class Mlp(nn.Module):
            def __init__(self, size, inner):
                super().__init__()
                self.gate_up = nn.Linear(size, 2 * inner)

            def forward(self, x):
                gate, up = self.gate_up(x).chunk(2, dim=-1)
                return F.silu(gate) * up
        """,
    ),
    _case(
        "a packed gated projection of a transposed tensor",
        "swiglu",
        """
        def gated(hidden):
            hidden = hidden.transpose(1, 2)
            gate, up = hidden.chunk(2, dim=-1)
            return F.silu(gate) * up
        """,
        "non_contiguous",
    ),
    _case(
        "an activation that a hook may watch",
        "swiglu",
        """
        class Mlp(nn.Module):
            def __init__(self, size, inner):
                super().__init__()
                self.gate, self.up = nn.Linear(size, inner), nn.Linear(size, inner)
                self.act = nn.SiLU()

            def forward(self, x):
                return self.act(self.gate(x)) * self.up(x)
        """,
        "concat_cost",
        "hooks",
        train_dot_py="def watch(model):\n    for one in model.modules():\n        one.register_forward_hook(print)\n",
    ),
    _case(
        "an activation that a debugging helper could watch",
        "swiglu",
        """
        class Mlp(nn.Module):
            def __init__(self, size, inner):
                super().__init__()
                self.gate, self.up = nn.Linear(size, inner), nn.Linear(size, inner)
                self.act = nn.SiLU()

            def forward(self, x):
                return self.act(self.gate(x)) * self.up(x)
        """,
        "concat_cost",
        debug_utils_dot_py="def watch(module):\n    module.register_forward_hook(print)\n",
    ),
    _case(
        "an activation that no hook watches",
        "swiglu",
        """
        class Mlp(nn.Module):
            def __init__(self, size, inner):
                super().__init__()
                self.gate, self.up = nn.Linear(size, inner), nn.Linear(size, inner)
                self.act = nn.SiLU()

            def forward(self, x):
                return self.act(self.gate(x)) * self.up(x)
        """,
        "concat_cost",
    ),
]

ATTENTIONS = [
    attention("a plain attention", *ATTENTION, "non_contiguous"),
    attention(
        "an attention that drops out",
        *ATTENTION,
        "non_contiguous",
        "dropout",
        dropout="probs = F.dropout(probs, 0.1, self.training)",
    ),
    attention(
        "an attention whose dropout is off",
        *ATTENTION,
        "non_contiguous",
        dropout="probs = F.dropout(probs, 0.0, self.training)",
    ),
    attention(
        "an attention that never trains its dropout",
        *ATTENTION,
        "non_contiguous",
        dropout="probs = F.dropout(probs, 0.1, training=False)",
    ),
    attention(
        "an attention that returns its weights",
        *ATTENTION,
        "non_contiguous",
        "returned_weights",
        ending="return out, probs",
    ),
    attention(
        "an attention that is asked for its weights",
        *ATTENTION,
        "non_contiguous",
        "returned_weights",
        parameters=", output_attentions=False",
        ending="return out, probs",
    ),
    attention(
        "an attention with a cache",
        *ATTENTION,
        "non_contiguous",
        "dynamic_shape",
        "training_only",
        parameters=", past_key_value=None",
        states="""
        q = self.q(x).view(b, s, self.heads, -1).transpose(1, 2)
        k = self.k(x).view(b, s, self.heads, -1).transpose(1, 2)
        v = self.v(x).view(b, s, self.heads, -1).transpose(1, 2)
        k, v = past_key_value.update(k, v, 0)
        """,
    ),
    attention(
        "an attention of packed sequences",
        *ATTENTION,
        "non_contiguous",
        "dynamic_shape",
        parameters=", cu_seqlens=None",
    ),
    attention(
        "an attention without gradients",
        *ATTENTION,
        "non_contiguous",
        "training_only",
        decorated="    @torch.no_grad()\n",
    ),
    attention(
        "an attention called causal without a mask",
        "sdpa_alternative",
        "non_contiguous",
        "causal_implicit",
        parameters=", is_causal=True",
        forward="causal = is_causal",
        mask="pass",
    ),
    attention("an attention without a mask", "sdpa_alternative", "non_contiguous", mask="pass"),
    attention(
        "a causal attention with its mask",
        *ATTENTION,
        "non_contiguous",
        parameters=", is_causal=True",
    ),
    attention(
        "an attention whose model is compiled",
        *ATTENTION,
        "non_contiguous",
        "torch_compile",
        before="def build():\n    return torch.compile(Attention(8, 2))\n\n\n",
    ),
    attention(
        "an attention with heads that are too wide",
        *ATTENTION,
        "non_contiguous",
        "size_limits",
        config_dot_py="class Config:\n    head_dim: int = 1024\n",
    ),
    attention(
        "an attention with heads that fit",
        *ATTENTION,
        "non_contiguous",
        config_dot_py="class Config:\n    head_dim: int = 128\n    num_attention_heads: int = 32\n",
    ),
    _case(
        "an attention function of a model library",
        "fusion_attention",
        """
        def eager_attention_forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
            attn_weights = torch.matmul(query, key.transpose(2, 3)) * scaling
            if attention_mask is not None:
                attn_weights = attn_weights + attention_mask
            attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query.dtype)
            attn_weights = nn.functional.dropout(attn_weights, p=dropout, training=module.training)
            attn_output = torch.matmul(attn_weights, value)
            attn_output = attn_output.transpose(1, 2).contiguous()
            return attn_output, attn_weights
        """,
        *ATTENTION,
        "layout",
        "dropout",
        "returned_weights",
    ),
    _case(
        "an attention function that returns its output alone",
        "fusion_attention",
        """
        def attend(query, key, value, mask):
            scores = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(query.size(-1)) + mask
            return torch.matmul(torch.softmax(scores, dim=-1), value)
        """,
        *ATTENTION,
        "layout",
    ),
]

ROTARIES = [
    rotary("a plain rotation", "dtype", "memory_rise"),
    rotary(
        "a rotation whose caller decides the layout",
        "dtype",
        "memory_rise",
        "layout",
        parameters=", unsqueeze_dim=1",
        forward="cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)",
    ),
    rotary("a compiled rotation", "dtype", "memory_rise", "torch_compile", decorated="@torch.compile\n"),
    rotary("a rotation of packed sequences", "dtype", "memory_rise", "dynamic_shape", parameters=", cu_seqlens=None"),
]

OTHERS = [
    _case(
        "a residual norm for inference",
        "add_rms_norm",
        """
        class Norm(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(size))

            def forward(self, x, residual):
                h = x + residual
                y = self.weight * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6))
                return y, h
        """,
        "no_backward",
    ),
    _case(
        "a residual norm of code that trains",
        "add_rms_norm",
        """
        class Norm(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(size))

            def forward(self, x, residual):
                if self.training:
                    x = x + 0.01
                h = x + residual
                y = self.weight * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6))
                return y, h
        """,
        "no_backward",
        "inference_only",
    ),
]


def cases() -> list[Case]:
    """The whole set."""
    found = [*NORMS, *MLPS, *ATTENTIONS, *ROTARIES, *OTHERS]
    return [
        Case(one.name, one.rule, GENERATED + one.source, one.expected, one.files)
        if "generated_file" in one.expected
        else one
        for one in found
    ]
