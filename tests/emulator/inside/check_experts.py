"""Grouped matmul and routing against loops in float64."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from against import DTYPES, close, drawn, gradients

COUNTS = [[3, 2, 4], [0, 5, 1], [4, 0, 0], [1, 1, 0], [0, 0, 2]]


def grouped(x, weight, counts):
    out, at = [], 0
    for matrix, count in zip(weight, counts, strict=True):
        out.append(x[at : at + count] @ matrix)
        at += count
    return torch.cat(out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("kind", ["totals", "counts", "list"])
@pytest.mark.parametrize("transposed", [False, True])
def test_rows_in_groups(dtype, counts, kind, transposed):
    x = drawn(sum(counts), 6, dtype=dtype)
    weight = drawn(3, 6, 5, dtype=dtype, seed=1)
    if transposed:
        weight = weight.transpose(1, 2).contiguous().transpose(1, 2)
    wanted = grouped(x.double(), weight.double(), counts)
    totals = torch.tensor(counts).cumsum(0)
    if kind == "list":
        y = torch_npu.npu_grouped_matmul([x], list(weight), group_list=totals.tolist(), split_item=3)
    else:
        given = (
            {"group_list": totals} if kind == "totals" else {"group_list": torch.tensor(counts), "group_list_type": 1}
        )
        y = torch_npu.npu_grouped_matmul([x], [weight], split_item=2, group_type=0, **given)
    assert len(y) == 1
    close(y[0], wanted, loose=1.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lists_and_bias(dtype):
    x = [drawn(2, 6, dtype=dtype), drawn(3, 4, dtype=dtype, seed=2)]
    weight = [drawn(6, 5, dtype=dtype, seed=1), drawn(4, 7, dtype=dtype, seed=3)]
    bias = [drawn(width, dtype=torch.float16 if dtype == torch.float16 else torch.float32) for width in (5, 7)]
    y = torch_npu.npu_grouped_matmul(x, weight, bias=bias, group_type=-1)
    assert [tuple(one.shape) for one in y] == [(2, 5), (3, 7)]
    for one, left, right, add in zip(y, x, weight, bias, strict=True):
        close(one, left.double() @ right.double() + add.double(), loose=1.5)


def test_one_x_many_results():
    x, weight = drawn(5, 6), [drawn(6, 3, seed=1), drawn(6, 3, seed=2)]
    y = torch_npu.npu_grouped_matmul([x], weight, group_list=[2, 5], split_item=0)
    close(y[0], x.double()[:2] @ weight[0].double())
    close(y[1], x.double()[2:] @ weight[1].double())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("counts", COUNTS)
def test_reduced_dim_in_groups(dtype, counts):
    x, weight = drawn(6, sum(counts), dtype=dtype), drawn(sum(counts), 5, dtype=dtype, seed=1)
    y = torch_npu.npu_grouped_matmul(
        [x], [weight], group_list=torch.tensor(counts).cumsum(0), split_item=3, group_type=2
    )[0]
    at, wanted = 0, []
    for count in counts:
        wanted.append(x.double()[:, at : at + count] @ weight.double()[at : at + count])
        at += count
    close(y, torch.stack(wanted), loose=1.5)


def test_more_than_three_dims():
    x, weight = drawn(2, 3, 4), drawn(4, 5, seed=1)
    close(torch_npu.npu_grouped_matmul([x], [weight], group_type=-1)[0], x.double() @ weight.double())


def test_another_dtype_comes_out():
    x, weight = drawn(2, 4), drawn(4, 5, seed=1)
    y = torch_npu.npu_grouped_matmul([x], [weight], group_type=-1, output_dtype=torch.float16)[0]
    assert y.dtype == torch.float16


def test_grouped_matmul_has_no_gradient():
    x = drawn(4, 6).requires_grad_()
    weight = drawn(2, 6, 5, seed=1).requires_grad_()
    y = torch_npu.npu_grouped_matmul([x], [weight], group_list=torch.tensor([1, 4]), split_item=2, group_type=0)[0]
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        y.sum().backward()
    assert x.grad is None and weight.grad is None


def test_wrapped_in_a_function_it_trains():
    class Grouped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, totals):
            ctx.save_for_backward(x, weight, totals)
            return torch_npu.npu_grouped_matmul([x], [weight], group_list=totals, split_item=2, group_type=0)[0]

        @staticmethod
        def backward(ctx, gradient):
            x, weight, totals = ctx.saved_tensors
            options = {"group_list": totals, "split_item": 2}
            of_x = torch_npu.npu_grouped_matmul([gradient], [weight.transpose(1, 2)], group_type=0, **options)[0]
            of_weight = torch_npu.npu_grouped_matmul([x.t()], [gradient], group_type=2, **options)[0]
            return of_x, of_weight, None

    counts = [2, 0, 3]
    totals = torch.tensor(counts).cumsum(0)
    gradients(
        lambda x, weight: Grouped.apply(x, weight, totals),
        lambda x, weight: grouped(x, weight, counts),
        [drawn(5, 6), drawn(3, 6, 4, seed=1)],
    )


INDICES = [[[0, 1], [1, 0], [2, 1]], [[2], [0], [2]], [0, 2, 1], [[3, 3]], [[5]]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_permute(dtype, indices, kind):
    given = torch.tensor(indices, dtype=kind)
    tokens = drawn(given.shape[0], 4, dtype=dtype)
    permuted, positions = torch_npu.npu_moe_token_permute(tokens, given)
    k = 1 if given.dim() == 1 else given.shape[1]
    flat = given.reshape(-1).tolist()
    order = sorted(range(len(flat)), key=lambda at: (flat[at], at))
    assert positions.dtype == torch.int32 and positions.is_contiguous()
    assert torch.equal(permuted, torch.stack([tokens[at // k] for at in order]))
    for at in range(len(flat)):
        assert torch.equal(permuted[positions[at]], tokens[at // k])


def test_permute_keeps_so_many_rows():
    tokens, indices = drawn(3, 4), torch.tensor([[0, 1], [1, 0], [2, 1]])
    whole, positions = torch_npu.npu_moe_token_permute(tokens, indices)
    for wanted, kept in [(2, 2), (0, 6), (100, 6), (-1, 5)]:
        part, same = torch_npu.npu_moe_token_permute(tokens, indices, num_out_tokens=wanted)
        assert torch.equal(part, whole[:kept]) and torch.equal(same, positions)
    back = torch_npu.npu_moe_token_unpermute(whole[:4], positions, probs=torch.ones(3, 2))
    lost = (positions >= 4).view(3, 2)
    close(back, tokens.double() * (~lost).double().sum(1, keepdim=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_permute_backward(dtype):
    indices = torch.tensor([[0, 1], [1, 0], [2, 1]])
    order = torch.argsort(indices.flatten(), stable=True)
    gradients(
        lambda tokens: torch_npu.npu_moe_token_permute(tokens, indices)[0],
        lambda tokens: tokens[order // 2],
        [drawn(3, 4, dtype=dtype)],
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("probs_dtype", [None, torch.float32])
def test_unpermute(dtype, k, probs_dtype):
    order = torch.randperm(4 * k, generator=torch.Generator().manual_seed(1)).to(torch.int32)
    permuted = drawn(4 * k, 5, dtype=dtype)
    probs = drawn(4, k, dtype=probs_dtype or dtype, seed=2)

    def formula(permuted, probs):
        return (permuted[order.long()].view(4, k, 5) * probs.unsqueeze(-1)).sum(1)

    y = torch_npu.npu_moe_token_unpermute(permuted, order, probs=probs)
    assert y.dtype == dtype
    close(y, formula(permuted.double(), probs.double()), loose=1.5)
    gradients(
        lambda permuted, probs: torch_npu.npu_moe_token_unpermute(permuted, order, probs=probs),
        formula,
        [permuted, probs],
        loose=1.5,
    )


def test_unpermute_without_probs_only_moves():
    order = torch.tensor([2, 0, 1], dtype=torch.int32)
    permuted = drawn(3, 5)
    assert torch.equal(torch_npu.npu_moe_token_unpermute(permuted, order), permuted[order.long()])


def test_there_and_back():
    tokens, indices = drawn(7, 4), torch.randint(0, 3, (7, 2), generator=torch.Generator().manual_seed(1))
    permuted, positions = torch_npu.npu_moe_token_permute(tokens, indices)
    probs = torch.full((7, 2), 0.5)
    torch.testing.assert_close(torch_npu.npu_moe_token_unpermute(permuted, positions, probs=probs), tokens)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 6)])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_gating(dtype, shape, k):
    x = drawn(*shape, dtype=dtype)
    values, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(x, k=k)
    wanted = torch.softmax(x.double(), -1)
    assert (values.dtype, experts.dtype, rows.dtype) == (dtype, torch.int32, torch.int32)
    close(values, wanted.gather(-1, experts.long()))
    assert (values[..., :-1] >= values[..., 1:]).all()
    close(values[..., 0], wanted.amax(-1))
    count = x.shape[:-1].numel()
    assert rows.reshape(count, k).tolist() == [[row + count * at for at in range(k)] for row in range(count)]


def test_finished_rows_go_to_no_expert():
    finished = torch.tensor([True, False])
    _, experts, _ = torch_npu.npu_moe_gating_top_k_softmax(drawn(2, 6), finished, k=2)
    assert experts[0].tolist() == [6, 6] and experts[1].max() < 6


def test_the_example_of_the_documentation():
    x = torch.tensor([[0.1] * 4, [0.2] * 4, [0.3] * 4])
    row_idx = torch.tensor([[0, 3], [1, 4], [2, 5]], dtype=torch.int32)
    expert_idx = torch.tensor([[1, 2], [0, 1], [0, 2]], dtype=torch.int32)
    expanded, where, experts = torch_npu.npu_moe_init_routing(x, row_idx, expert_idx, 3)
    assert experts.tolist() == [0, 0, 1, 1, 2, 2]
    for source, target in enumerate(where.tolist()):
        assert torch.equal(expanded[target], x[source % 3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_whole_layer_of_experts(dtype):
    """gate → init → experts → finalize, against a loop over tokens and their experts."""
    x, weight = drawn(5, 4, dtype=dtype), drawn(3, 4, 4, dtype=dtype, seed=1)
    bias, skip = drawn(3, 4, dtype=dtype, seed=2), drawn(5, 4, dtype=dtype, seed=3)
    values, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(drawn(5, 3, dtype=dtype, seed=4), k=2)
    expanded, where, sorted_experts = torch_npu.npu_moe_init_routing(x, rows, experts, 5)
    counts = torch.bincount(sorted_experts.long(), minlength=3)
    hidden = torch_npu.npu_grouped_matmul(
        [expanded], [weight], group_list=counts, group_list_type=1, split_item=2, group_type=0
    )[0]
    out = torch_npu.npu_moe_finalize_routing(hidden, skip, None, bias, values, where, experts)
    for token in range(5):
        wanted = skip[token].double()
        for at in range(2):
            expert = int(experts[token, at])
            result = (x[token].double() @ weight[expert].double()).to(dtype).double()
            wanted = wanted + values[token, at].double() * (result + bias[expert].double())
        torch.testing.assert_close(out[token].double(), wanted, rtol=2**-6, atol=2**-6)
