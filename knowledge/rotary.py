"""Rotary position embedding → torch_npu.npu_rotary_mul.

Formula and limits: op-plugin documentation of npu_rotary_mul. half: y = x * cos + cat(-x2, x1) * sin over the halves of the
last dim; interleave: the same over neighbouring pairs. D is even and below 896, batch and heads below 1000; cos and sin
have the full last dim, and in the interleave mode one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Risk, Verdict
from npufuse_tui.rules import Flag, Mask, MatchView, Rule, Tensor, information

if TYPE_CHECKING:
    import torch
    import torch_npu

rule = Rule(
    id="rotary",
    family="rotary",
    api="torch_npu.npu_rotary_mul",
    title=Text("rotary position embedding", "旋转位置编码（RoPE）"),
    training=True,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.1.0",
    products=("A2", "A3", "inference", "training"),
    docs="op-plugin: npu_rotary_mul",
    needs=((rb"rotate", rb"\bsin\b", rb"freqs", rb"complex"), (rb"cat\(", rb"stack\(", rb"complex", rb"concat")),
    priority=Priority.HIGH,
    merge=True,
    free_dtypes=(("cos", "sin"), ("freqs",)),
    helpers={
        "_rotary_fits": '''\
def _rotary_fits(x, cos):
    """Whether npu_rotary_mul takes these on the device (limits of the operator's documentation)."""
    if x.dim() != 4 or cos.dim() != 4 or cos.shape[-1] != x.shape[-1]:
        return False
    heads_first = cos.shape[1] == 1
    heads = x.shape[1] if heads_first else x.shape[2]
    aligned = x.shape[-1] * x.element_size() % 32 == 0
    return x.shape[0] < 1000 and heads < 1000 and x.shape[-1] < 896 and (aligned or not heads_first)
''',
        "_complex_fits": '''\
def _complex_fits(x):
    """Whether npu_rotary_mul takes this in its interleave mode (limits of the operator's documentation)."""
    return x.dim() == 4 and x.shape[0] * min(x.shape[1:3]) < 1000 and x.shape[-1] % 2 == 0 and x.shape[-1] < 896
''',
        "_interleaved_fits": '''\
def _interleaved_fits(x, cos):
    """Whether npu_rotary_mul takes these in its interleave mode (limits of the operator's documentation)."""
    if x.dim() != 4 or cos.dim() != 4 or cos.shape[-1] != x.shape[-1] or cos.shape[0] != 1:
        return False
    heads = x.shape[1] if cos.shape[1] == 1 else x.shape[2]
    return x.shape[0] * heads < 1000 and x.shape[-1] < 896
''',
    },
)


def _rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


@rule.pattern("half")
def half(x: Tensor, cos: Tensor, sin: Tensor):
    return (x * cos) + (_rotate_half(x) * sin)


@rule.pattern("half_negative")
def half_the_other_way(x: Tensor, cos: Tensor, sin: Tensor):
    first, second = x.chunk(2, dim=-1)
    return (x * cos) + (torch.cat((second, -first), dim=-1) * sin)


@rule.pattern("half_tables")
def tables_of_half_the_dim(x: Tensor, cos: Tensor, sin: Tensor):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


@rule.pattern("half_tables_negative")
def tables_of_half_the_dim_the_other_way(x: Tensor, cos: Tensor, sin: Tensor):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos + second * sin, second * cos - first * sin), dim=-1)


@rule.pattern("interleave")
def pairs(x: Tensor, cos: Tensor, sin: Tensor):
    return (x * cos) + (torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2) * sin)


@rule.pattern("interleave")
def pairs_shaped_back(x: Tensor, cos: Tensor, sin: Tensor, back: Flag):
    return (x * cos) + (torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(back) * sin)


@rule.pattern("interleave_tables")
def pairs_with_tables_of_half_the_dim(x: Tensor, cos: Tensor, sin: Tensor):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


_BUILT_PER_CALL = Text(
    "cos and sin are built from the complex table in each call; build them once, outside of the hot path",
    "每次调用都会从复数表构造 cos 和 sin；请在热路径之外只构造一次",
)


@rule.pattern("complex", verdict=Verdict.CAUTION, reason=_BUILT_PER_CALL)
def complex_product(x: Tensor, freqs: Mask, shape: Flag):
    return torch.view_as_real(torch.view_as_complex(x.reshape(shape)) * freqs).flatten(3)


@rule.pattern("complex", verdict=Verdict.CAUTION, reason=_BUILT_PER_CALL)
def complex_product_of_the_last_dims(x: Tensor, freqs: Mask, shape: Flag):
    return torch.view_as_real(torch.view_as_complex(x.reshape(shape)) * freqs).flatten(-2)


@rule.pattern("complex", verdict=Verdict.CAUTION, reason=_BUILT_PER_CALL)
def complex_product_shaped_back(x: Tensor, freqs: Mask, shape: Flag, back: Flag):
    return torch.view_as_real(torch.view_as_complex(x.reshape(shape)) * freqs).reshape(back)


@rule.pattern("complex", verdict=Verdict.CAUTION, reason=_BUILT_PER_CALL)
def complex_product_unflattened(x: Tensor, freqs: Mask):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(3, (-1, 2))) * freqs).flatten(3, 4)


@rule.pattern("complex", verdict=Verdict.CAUTION, reason=_BUILT_PER_CALL)
def complex_product_of_the_last_dim_unflattened(x: Tensor, freqs: Mask):
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * freqs).flatten(-2)


@rule.replacement(variants=("half",))
def fused(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin)


@rule.replacement(variants=("half_negative",))
def fused_the_other_way(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, -sin)


@rule.replacement(variants=("half_tables",))
def fused_with_whole_tables(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1))


@rule.replacement(variants=("half_tables_negative",))
def fused_with_whole_tables_the_other_way(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, torch.cat([cos, cos], dim=-1), torch.cat([-sin, -sin], dim=-1))


@rule.replacement(variants=("interleave",))
def fused_pairs(x, cos, sin):
    return torch_npu.npu_rotary_mul(x, cos, sin, rotary_mode="interleave")


@rule.replacement(variants=("interleave_tables",))
def fused_pairs_with_whole_tables(x, cos, sin):
    return torch_npu.npu_rotary_mul(
        x, cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1), rotary_mode="interleave"
    )


@rule.replacement(variants=("complex",))
def fused_complex(x, freqs):
    return torch_npu.npu_rotary_mul(
        x,
        freqs.real.repeat_interleave(2, dim=-1).to(x.dtype),
        freqs.imag.repeat_interleave(2, dim=-1).to(x.dtype),
        rotary_mode="interleave",
    )


@rule.guard("complex")
def complex_fits(x):
    return _complex_fits(x)


@rule.guard("half", "half_negative")
def fits(x, cos):
    return _rotary_fits(x, cos)


@rule.guard("interleave")
def interleaved_fits(x, cos):
    return _interleaved_fits(x, cos)


@rule.risk("memory_rise")
def keeps_the_input(match: MatchView) -> Risk | None:
    return information(
        "memory_rise",
        Text(
            "in training the fused operator keeps its input for the backward; the small operators did not when cos and"
            " sin need no gradient",
            "训练时融合算子会为反向保留输入；当 cos、sin 不需要梯度时，原小算子不保留",
        ),
        match.line("x"),
    )


@rule.example(shapes=[(2, 4, 8, 64), (1, 2, 5, 32)], variants=("half", "half_negative"))
def whole_tables(shape, dtype, parameter_dtype):
    angle = torch.rand(1, 1, shape[2], shape[3]) * 6
    return {
        "x": torch.randn(shape).to(dtype),
        "cos": angle.cos().to(parameter_dtype),
        "sin": angle.sin().to(parameter_dtype),
    }


@rule.example(
    shapes=[(2, 4, 8, 64), (1, 2, 5, 32)], variants=("half_tables", "half_tables_negative", "interleave_tables")
)
def half_of_the_tables(shape, dtype, parameter_dtype):
    angle = torch.rand(1, 1, shape[2], shape[3] // 2) * 6
    return {
        "x": torch.randn(shape).to(dtype),
        "cos": angle.cos().to(parameter_dtype),
        "sin": angle.sin().to(parameter_dtype),
    }


@rule.example(shapes=[(2, 4, 8, 64), (1, 2, 5, 32)], variants=("complex",))
def complex_table(shape, dtype, parameter_dtype):
    angle = torch.rand(1, 1, shape[2], shape[3] // 2) * 6
    return {
        "x": torch.randn(shape).to(dtype),
        "freqs": torch.polar(torch.ones_like(angle), angle),
        "shape": (*shape[:-1], -1, 2),
        "back": shape,
    }


@rule.example(shapes=[(2, 4, 8, 64), (1, 2, 5, 32)], variants=("interleave",))
def repeated_tables(shape, dtype, parameter_dtype):
    angle = (torch.rand(1, 1, shape[2], shape[3] // 2) * 6).repeat_interleave(2, dim=-1)
    return {
        "back": shape,
        "x": torch.randn(shape).to(dtype),
        "cos": angle.cos().to(parameter_dtype),
        "sin": angle.sin().to(parameter_dtype),
    }
