"""Schemas read into data."""

from __future__ import annotations

import pytest

from npufuse_tui import schemas
from npufuse_tui.judgement.api_schema import parse_schema, same_default, signature


def test_every_recorded_schema_is_read_and_agrees_with_the_registered_arguments():
    for version in schemas.versions():
        for overloads in schemas.operators(version).values():
            for registered in overloads:
                read = parse_schema(registered.schema)
                assert [one.name for one in read.arguments] == [
                    "input" if place == 0 and one.name == "self" else one.name
                    for place, one in enumerate(registered.arguments)
                ]
                assert [one.keyword_only for one in read.arguments] == [
                    one.keyword_only for one in registered.arguments
                ]
                assert len(read.returns) == len(registered.returns)


@pytest.mark.parametrize(
    ("text", "names", "defaults"),
    [
        ("f(Tensor self, int dim=-1) -> Tensor", ["input", "dim"], [None, "-1"]),
        (
            'f(Tensor x, *, str? mode="a, b", int[] size=[1, 2]) -> Tensor',
            ["x", "mode", "size"],
            [None, '"a, b"', "[1, 2]"],
        ),
        (
            "npu::f.List(Tensor[] x, Tensor(a!) out, float e=9.9999999999999995e-07) -> ()",
            ["x", "out", "e"],
            [None, None, "1e-06"],
        ),
        ("f(x, gamma, eps=1.) -> (Tensor, Tensor)", ["x", "gamma", "eps"], [None, None, "1.0"]),
        ("f() -> Tensor", [], []),
    ],
)
def test_arguments(text, names, defaults):
    read = parse_schema(text)
    assert [one.name for one in read.arguments] == names
    assert [one.default for one in read.arguments] == defaults


def test_keyword_only_and_overload():
    read = parse_schema("npu::g.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    assert (read.name, read.overload) == ("g", "out")
    assert [one.keyword_only for one in read.arguments] == [False, True]
    assert [one.name for one in read.positional] == ["input"]


def test_signature_is_read_back_the_same():
    text = 'npu_f(Tensor input, int[]? size=None, *, str mode="half") -> (Tensor, Tensor)'
    assert signature(parse_schema(text)) == text


@pytest.mark.parametrize("text", ["", "no schema", "f(Tensor x -> Tensor", "f(Tensor[[ x) -> Tensor"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r"schema|closed"):
        parse_schema(text)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1.", "1", True),
        ("'half'", '"half"', True),
        ("1e-06", "0.000001", True),
        ("1e-5", "1e-6", False),
        (None, "1", False),
        (None, None, True),
        ("True", "False", False),
    ],
)
def test_defaults_are_compared_by_value(left, right, same):
    assert same_default(left, right) is same
