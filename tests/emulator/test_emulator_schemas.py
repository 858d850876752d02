"""The registered operators of torch_npu's versions, as data."""

from __future__ import annotations

import json

import pytest

from npufuse_tui import schemas
from npufuse_tui.errors import WrongInput


def test_versions_and_how_many_operators_they_have() -> None:
    counts = {version: len(schemas.operators(version)) for version in schemas.versions()}
    assert counts == {
        "2.1.0.post17": 300,
        "2.4.0.post4": 228,
        "2.6.0.post5": 314,
        "2.7.1": 292,
        "2.7.1.post11": 398,
        "2.9.0.post9": 398,
        "2.13.0": 403,
        "2.14.0": 398,
    }


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (None, schemas.NEWEST),
        ("newest", schemas.NEWEST),
        ("2.13.0", "2.13.0"),
        ("2.13.0+npufuse.emulated", "2.13.0"),
        ("2.7.1.post2", "2.7.1"),
        ("2.7.1.post20", "2.7.1.post11"),
        ("2.6.0", "2.6.0.post5"),
        ("2.8.0", "2.7.1.post11"),
        ("2.99.0", "2.14.0"),
        ("1.11.0", "2.1.0.post17"),
        ("2.7", "2.6.0.post5"),
    ],
)
def test_the_nearest_version_that_is_known(asked: str | None, known: str) -> None:
    assert schemas.resolve(asked) == known


@pytest.mark.parametrize("asked", ["", "2", "latest", "x.y"])
def test_what_is_no_version(asked: str) -> None:
    with pytest.raises(WrongInput):
        schemas.resolve(asked)


def test_a_signature() -> None:
    found = schemas.signature("torch_npu.npu_rms_norm", "2.13.0")
    assert found is not None and found.trainable
    assert [(one.name, one.type, one.default) for one in found.arguments] == [
        ("input", "Tensor", None),
        ("gamma", "Tensor", None),
        ("epsilon", "float", "1e-06"),
    ]
    assert found.returns == ("Tensor", "Tensor")
    assert schemas.signature("npu_nothing") is None


def test_keyword_only_arguments_and_awkward_defaults() -> None:
    found = schemas.parse(
        'npu::f.List(Tensor(a!) input, int[2] range=[0, 1], *, str layout="BS,N)D", Tensor[]? x=None)'
        " -> (Tensor(a!) y, int)"
    )
    assert (found.name, found.overload) == ("f", "List")
    assert [(one.name, one.type, one.default, one.keyword_only) for one in found.arguments] == [
        ("input", "Tensor(a!)", None, False),
        ("range", "int[2]", "[0, 1]", False),
        ("layout", "str", '"BS,N)D"', True),
        ("x", "Tensor[]?", "None", True),
    ]
    assert found.returns == ("Tensor(a!) y", "int")
    with pytest.raises(ValueError, match="not an operator schema"):
        schemas.parse("hello")


def test_arguments_come_and_go_with_versions() -> None:
    def has(name: str, argument: str, version: str) -> bool:
        found = schemas.signature(name, version)
        return found is not None and found.argument(argument) is not None

    assert not has("npu_rotary_mul", "rotate", "2.6.0") and has("npu_rotary_mul", "rotate", "2.14.0")
    assert not has("npu_fusion_attention", "sink", "2.7.1") and has("npu_fusion_attention", "sink", "2.6.0.post5")
    assert schemas.signature("npu_fusion_attention_v3", "2.7.1") is None


def test_every_schema_is_read_whole() -> None:
    """What was parsed, written again, is what was registered."""
    for version in schemas.versions():
        for overloads in schemas.operators(version).values():
            for one in overloads:
                parts, starred = [], False
                for argument in one.arguments:
                    if argument.keyword_only and not starred:
                        parts.append("*")
                        starred = True
                    default = "" if argument.default is None else f"={argument.default}"
                    parts.append(f"{argument.type} {argument.name}{default}")
                name = one.name if one.overload == "default" else f"{one.name}.{one.overload}"
                bracketed = one.schema.rpartition("-> ")[2].startswith("(")
                returned = f"({', '.join(one.returns)})" if bracketed else one.returns[0]
                assert f"{name}({', '.join(parts)}) -> {returned}" == one.schema


def test_kinds_of_backward() -> None:
    kinds = {one.autograd_kind for overloads in schemas.operators().values() for one in overloads}
    assert kinds == {"formula", "error_fallback", "torch_default_fallback", "other"}
    silent = ["npu_grouped_matmul", "npu_moe_init_routing", "npu_group_norm_silu", "npu_fused_infer_attention_score"]
    raising = ["npu_add_rms_norm", "npu_interleave_rope", "npu_apply_rotary_pos_emb", "npu_moe_gating_top_k_softmax"]
    for version in ("2.13.0", "2.14.0"):
        for name in silent:
            assert schemas.operators(version)[name][0].autograd_kind == "torch_default_fallback"
        for name in raising:
            assert schemas.operators(version)[name][0].autograd_kind == "error_fallback"


def test_what_is_the_same_is_stored_once() -> None:
    files = {path.stem: path.read_text() for path in schemas.folder().glob("*.json")}
    texts = [text for text in files.values() if "same_as" not in json.loads(text)]
    assert len(set(texts)) == len(texts)
    for text in files.values():
        other = json.loads(text).get("same_as")
        assert other is None or "same_as" not in json.loads(files[other])
