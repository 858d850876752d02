"""A loop over experts → token permute, grouped matmul, SwiGLU, grouped matmul, token unpermute.

Formula and limits: op-plugin documentation of npu_moe_token_permute, npu_grouped_matmul (weight (E, K, N); counts with
group_list_type=1; no backward, so it stands in an autograd.Function here) and npu_moe_token_unpermute. An expert without
tokens is a group of size zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npufuse_tui.language import Text
from npufuse_tui.model import Priority, Risk, Verdict
from npufuse_tui.rules import Flag, MatchView, Parameter, Rule, Scalar, Tensor, danger, warning

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    import torch_npu

rule = Rule(
    id="moe_grouped",
    family="moe",
    api="torch_npu.npu_grouped_matmul",
    title=Text("loop over experts", "专家循环（MoE）"),
    training=True,
    dtypes=("float16", "bfloat16", "float32"),
    since="2.4.0",
    products=("A2", "A3"),
    docs="op-plugin: npu_moe_token_permute, npu_grouped_matmul, npu_moe_token_unpermute",
    needs=((rb"index_add",), (rb"expert",), (rb"\bfor ",)),
    output_dtype="hidden",
    priority=Priority.HIGH,
    launches=7,
    memory_passes=12,
    outputs=1,
    free_dtypes=(("weights",),),
    helpers={
        "_GroupedMatmul": '''\
class _GroupedMatmul(torch.autograd.Function):
    """npu_grouped_matmul of rows sorted by expert and weights (E, K, N), with the backward that the operator has not."""

    @staticmethod
    def forward(ctx, rows, weight, counts):
        ctx.save_for_backward(rows, weight, counts)
        return torch_npu.npu_grouped_matmul(
            [rows], [weight], group_list=counts, group_list_type=1, split_item=2, group_type=0
        )[0]

    @staticmethod
    def backward(ctx, grad):
        rows, weight, counts = ctx.saved_tensors
        grad_rows = torch_npu.npu_grouped_matmul(
            [grad], [weight.transpose(1, 2)], group_list=counts, group_list_type=1, split_item=2, group_type=0
        )[0]
        grad_weight = torch_npu.npu_grouped_matmul(
            [rows.t()], [grad], group_list=counts, group_list_type=1, split_item=3, group_type=2
        )[0]
        return grad_rows, grad_weight, None
'''
    },
)


@rule.pattern("rows_by_columns")
def experts_multiplied(
    hidden: Tensor, index: Flag, weights: Tensor, up: Parameter, down: Parameter, classes: Scalar, hits: Flag
):
    out = torch.zeros_like(hidden)
    mask = F.one_hot(index, num_classes=classes).permute(2, 1, 0)
    for expert in hits:
        expert = expert[0]
        position, token = torch.where(mask[expert])
        gate, value = (hidden[token] @ up[expert]).chunk(2, dim=-1)
        states = (F.silu(gate) * value) @ down[expert]
        out.index_add_(0, token, states * weights[token, position, None])
    return out


_TRANSPOSED = Text(
    "the weights lie as (experts, out, in), so the grouped matmul gets a transposed view, which the device copies whole in"
    " each call; keep a transposed copy instead",
    "权重布局为（专家, 输出, 输入），分组矩阵乘得到的是转置视图，设备每次调用都会整体拷贝；请改为只转置一次",
)


@rule.pattern("rows_by_rows", verdict=Verdict.CAUTION, reason=_TRANSPOSED)
def experts_applied(
    hidden: Tensor, index: Flag, weights: Tensor, up: Parameter, down: Parameter, classes: Scalar, hits: Flag
):
    out = torch.zeros_like(hidden)
    mask = F.one_hot(index, num_classes=classes).permute(2, 1, 0)
    for expert in hits:
        expert = expert[0]
        position, token = torch.where(mask[expert])
        gate, value = F.linear(hidden[token], up[expert]).chunk(2, dim=-1)
        states = F.linear(F.silu(gate) * value, down[expert])
        out.index_add_(0, token, states * weights[token, position, None])
    return out


_SEPARATE = Text(
    "the experts' weights live in separate modules: stacking them in each call would copy all of them; pack them into one"
    " parameter (experts, in, out) first",
    "各专家的权重位于不同模块中：每次调用都堆叠会拷贝全部权重；请先合并为一个参数（专家, 输入, 输出）",
)


@rule.pattern("separate_modules", verdict=Verdict.REFUSED, reason=_SEPARATE)
def experts_called(
    hidden: Tensor, index: Flag, weights: Tensor, experts: Parameter, classes: Scalar, hits: Flag, start: Flag
):
    out = start
    mask = F.one_hot(index, num_classes=classes).permute(2, 1, 0)
    for expert in hits:
        position, token = torch.where(mask[expert])
        states = experts[expert](hidden[token])
        out.index_add_(0, token, states * weights[token, position, None])
    return out


@rule.replacement(variants=("rows_by_columns",))
def fused(hidden, index, weights, up, down):
    rows, order = torch_npu.npu_moe_token_permute(hidden, index.to(torch.int32))
    counts = torch.bincount(index.flatten(), minlength=up.shape[0])
    rows = torch_npu.npu_swiglu(_GroupedMatmul.apply(rows, up, counts), dim=-1)
    rows = _GroupedMatmul.apply(rows, down, counts)
    return torch_npu.npu_moe_token_unpermute(rows, order, probs=weights.to(rows.dtype))


@rule.replacement(variants=("rows_by_rows",))
def fused_transposed(hidden, index, weights, up, down):
    rows, order = torch_npu.npu_moe_token_permute(hidden, index.to(torch.int32))
    counts = torch.bincount(index.flatten(), minlength=up.shape[0])
    rows = torch_npu.npu_swiglu(_GroupedMatmul.apply(rows, up.transpose(1, 2), counts), dim=-1)
    rows = _GroupedMatmul.apply(rows, down.transpose(1, 2), counts)
    return torch_npu.npu_moe_token_unpermute(rows, order, probs=weights.to(rows.dtype))


@rule.risk("weight_layout")
def transposed_weights(match: MatchView) -> Risk | None:
    return danger("weight_layout", _TRANSPOSED, match.line("up")) if match.variant == "rows_by_rows" else None


@rule.risk("expert_parallel")
def experts_elsewhere(match: MatchView) -> Risk | None:
    return warning(
        "expert_parallel",
        Text(
            "under expert parallelism the indices of other ranks' experts must not reach this code: the counts would have"
            " more entries than the weights",
            "专家并行时，其他 rank 的专家索引不能进入此处：否则计数项会多于权重的专家数",
        ),
        match.line("index"),
    )


@rule.risk("empty_experts")
def gradients_for_all(match: MatchView) -> Risk | None:
    return warning(
        "empty_experts",
        Text(
            "experts without tokens get zero gradients where the loop left them without: weight decay and"
            " find_unused_parameters behave differently",
            "没有 token 的专家会得到零梯度（原循环没有梯度）：weight decay 与 find_unused_parameters 的行为会不同",
        ),
        match.line("up") if match.variant != "separate_modules" else match.line("experts"),
    )


def _routing(shape, dtype, parameter_dtype):
    tokens, hidden, experts, k = shape
    index = torch.stack([torch.randperm(max(experts - 1, k))[:k] for _ in range(tokens)])
    return {
        "hidden": torch.randn(tokens, hidden).to(dtype),
        "index": index,
        "weights": torch.rand(tokens, k).to(parameter_dtype),
        "classes": experts,
        "hits": None,
    }


@rule.example(shapes=[(12, 16, 4, 2), (5, 32, 3, 1), (1, 16, 2, 2)], variants=("rows_by_columns",))
def columns(shape, dtype, parameter_dtype):
    _, hidden, experts, _ = shape
    return {
        **_with_hits(_routing(shape, dtype, dtype)),
        "up": (torch.randn(experts, hidden, 48) * 0.2).to(dtype),
        "down": (torch.randn(experts, 24, hidden) * 0.2).to(dtype),
    }


@rule.example(shapes=[(12, 16, 4, 2), (5, 32, 3, 1), (1, 16, 2, 2)], variants=("rows_by_rows",))
def rows_of_weights(shape, dtype, parameter_dtype):
    _, hidden, experts, _ = shape
    return {
        **_with_hits(_routing(shape, dtype, dtype)),
        "up": (torch.randn(experts, 48, hidden) * 0.2).to(dtype),
        "down": (torch.randn(experts, hidden, 24) * 0.2).to(dtype),
    }


def _with_hits(inputs):
    mask = F.one_hot(inputs["index"], num_classes=inputs["classes"]).permute(2, 1, 0)
    return {**inputs, "hits": torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()}
