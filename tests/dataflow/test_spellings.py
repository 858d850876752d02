"""Spellings that compute the same are one graph; those that do not are two."""

from __future__ import annotations

import pytest
from dataflow_graphs import of, returned

SAME = [
    ("x ** 2", "x.pow(2)", "torch.square(x)", "x * x", "torch.pow(x, 2)", "x.square()", "torch.mul(x, x)"),
    ("torch.rsqrt(x)", "x.rsqrt()", "1 / torch.sqrt(x)", "x ** -0.5", "torch.reciprocal(x.sqrt())"),
    ("x.mean(-1, keepdim=True)", "torch.mean(x, dim=-1, keepdim=True)", "x.mean(dim=[-1], keepdim=True)"),
    ("x - y", "x + -y", "torch.sub(x, y)", "x + -1 * y"),
    ("x / y", "x * (1 / y)", "torch.div(x, y)"),
    ("x.float()", "x.to(torch.float32)", "x.to(dtype=torch.float)", "x.type(torch.float32)"),
    ("y.to(x.dtype)", "y.type_as(x)", "y.to(dtype=x.dtype)"),
    ("F.silu(x)", "torch.nn.functional.silu(x)", "x * torch.sigmoid(x)", "torch.sigmoid(x) * x"),
    ("torch.matmul(x, y)", "x @ y", "x.matmul(y)", "torch.bmm(x, y)"),
    ("x.transpose(-2, -1)", "x.transpose(-1, -2)", "torch.transpose(x, -1, -2)", "x.swapaxes(-2, -1)", "x.mT"),
    ("torch.cat((x, y), dim=-1)", "torch.cat([x, y], -1)", "torch.concat((x, y), dim=-1)"),
    ("x.chunk(2, dim=-1)[0]", "torch.chunk(x, 2, -1)[0]", "x[..., : x.shape[-1] // 2]"),
    ("x.chunk(2, dim=-1)[1]", "x[..., x.shape[-1] // 2 :]", "x.split(x.shape[-1] // 2, dim=-1)[1]"),
    ("x.sum(-1, keepdim=True) / x.shape[-1]", "x.mean(-1, keepdim=True)"),
    ("torch.einsum('bhqd,bhkd->bhqk', x, y)", "x @ y.transpose(-1, -2)"),
]

DIFFERENT = [
    ("x - y", "y - x"),
    ("x / y", "y / x"),
    ("x ** 2", "x ** 3"),
    ("x.mean(-1, keepdim=True)", "x.mean(-2, keepdim=True)"),
    ("x.mean(-1, keepdim=True)", "x.mean(-1)"),
    ("x.chunk(2, dim=-1)[0]", "x.chunk(2, dim=-1)[1]"),
    ("x.float()", "x.double()"),
    ("torch.matmul(x, y)", "torch.matmul(y, x)"),
    ("F.gelu(x)", "F.gelu(x, approximate='tanh')"),
    ("x.sum(-1, keepdim=True) / x.shape[-2]", "x.mean(-1, keepdim=True)"),
    ("torch.einsum('bhqd,bhkd->bhqk', x, y)", "x @ y"),
    ("torch.cat((x, y), dim=-1)", "torch.cat((y, x), dim=-1)"),
    ("torch.stack((x, y), dim=-1)", "torch.cat((x, y), dim=-1)"),
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda one: one[0])
def test_one_graph(spellings: tuple[str, ...]) -> None:
    assert {of(one): one for one in spellings}.keys() == {of(spellings[0])}


@pytest.mark.parametrize("pair", DIFFERENT, ids=lambda one: f"{one[0]} / {one[1]}")
def test_two_graphs(pair: tuple[str, str]) -> None:
    assert of(pair[0]) != of(pair[1])


def test_names_on_the_way_do_not_matter() -> None:
    long = """
    def f(x, w, eps):
        dtype = x.dtype
        h = x.float()
        variance = h.pow(2)
        variance = variance.mean(-1, keepdim=True)
        h = h * torch.rsqrt(variance + eps)
        out = h.to(dtype)
        return w * out
    """
    short = "w * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)"
    assert repr(returned(long)) == of(short)


def test_unpacking_and_augmented_assignment() -> None:
    long = """
    def f(x, y):
        a, b = x.chunk(2, dim=-1)
        (c, d), e = (a, b), y
        c += d
        return c * e
    """
    assert repr(returned(long)) == of("(x.chunk(2, -1)[0] + x.chunk(2, -1)[1]) * y", "x, y")


def test_a_mutated_name_is_not_its_old_value() -> None:
    graph = returned("def f(x, y):\n    z = x + y\n    x = x * 2\n    return z + x\n")
    assert "mul" in repr(graph)
    assert repr(graph) != of("(x + y) + x", "x, y")
