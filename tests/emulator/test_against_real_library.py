"""The emulator held against the real torch_npu 2.13.0, loaded without an NPU. See `real_library.py`."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import real_library
from calls import VALID, Call, Server, emulated_server, tensor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npufuse_tui import schemas
from npufuse_tui.emulator.environment import lay_out

pytestmark = pytest.mark.real_torch_npu
VERSION = real_library.VERSION

# Where the real meta kernel is itself wrong, or says less than is documented: (operator, output) → why.
META_IS_WRONG = {
    ("npu_add_layer_norm", 3): "the meta kernel gives x's shape where additional_output is False",
}


@pytest.fixture(scope="module")
def real_environment() -> tuple[Path, dict[str, str]]:
    try:
        return real_library.environment()
    except real_library.Unavailable as reason:
        if os.environ.get("NPUFUSE_REQUIRE_REAL_TORCH_NPU"):
            pytest.fail(f"the real torch_npu was demanded: {reason}")
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def real(real_environment: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python, variables = real_environment
    server = Server(python, ["real"], variables, tmp_path_factory.mktemp("real") / "log")
    yield server
    server.close()


@pytest.fixture(scope="module")
def real_front_end(
    real_environment: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The real library, its operators having our kernels for CPU tensors."""
    python, variables = real_environment
    tmp_path = tmp_path_factory.mktemp("front")
    folder = lay_out(VERSION, tmp_path / "emulator")
    variables = {**variables, "NPUFUSE_EMULATED_TORCH_NPU": VERSION}
    server = Server(python, ["kernels", str(folder)], variables, tmp_path / "log")
    yield server
    server.close()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = emulated_server(VERSION, tmp_path_factory.mktemp("emulated"))
    yield server
    server.close()


def test_it_is_the_real_one(real: Server, emulator: Server) -> None:
    assert real.version == VERSION
    assert emulator.version == VERSION + "+npufuse.emulated"


def test_schemas_are_equal(real: Server, emulator: Server) -> None:
    theirs, ours = real.ask({"what": "schemas"})["schemas"], emulator.ask({"what": "schemas"})["schemas"]
    assert ours == theirs
    assert len(ours) == sum(len(overloads) for overloads in schemas.operators(VERSION).values())


CALLS = st.sampled_from(sorted(VALID)).flatmap(lambda name: VALID[name])


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(call=CALLS)
def test_shapes_and_dtypes_of_valid_calls(real: Server, emulator: Server, call: Call) -> None:
    operator, args, kwargs = call
    theirs = real(operator, args, kwargs, device="meta")
    ours = emulator(operator, args, kwargs)
    assert "error" not in theirs, theirs
    assert "error" not in ours, ours
    assert len(ours["outputs"]) == len(theirs["outputs"])
    for at, (our, their) in enumerate(zip(ours["outputs"], theirs["outputs"], strict=True)):
        if (operator, at) not in META_IS_WRONG:
            assert our == their, f"output {at}"


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(call=CALLS, seed=st.integers(0, 1000))
def test_numbers_through_the_real_front_end(real_front_end: Server, emulator: Server, call: Call, seed: int) -> None:
    operator, args, kwargs = call
    backward = schemas.signature(operator, VERSION).trainable  # type: ignore[union-attr]
    theirs = real_front_end(operator, args, kwargs, values=True, seed=seed, backward=backward)
    ours = emulator(operator, args, kwargs, values=True, seed=seed, backward=backward)
    assert "error" not in ours, ours
    assert ours["outputs"] == theirs["outputs"]
    assert ours["gradients"] == theirs["gradients"]
    if backward and ours["gradients"] != ["no output has a gradient"]:
        numbers = [_numbers(gradient) for gradient in ours["gradients"] if gradient is not None]
        assert numbers


X, GAMMA = tensor(2, 8), tensor(8)
QKV = [tensor(1, 2, 4, 8)] * 3
WRONG: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("npu_rms_norm", [X, GAMMA], {"eps": 1e-6}),
    ("npu_rms_norm", [X], {}),
    ("npu_rms_norm", [X, "gamma"], {}),
    ("npu_rms_norm", [X, None], {}),
    ("npu_rms_norm", [X, GAMMA, "1e-6"], {}),
    ("npu_rms_norm", [X, GAMMA, 1e-6, 1], {}),
    ("npu_rms_norm", [], {"self": X, "gamma": GAMMA}),
    ("npu_add_rms_norm", [X, X], {}),
    ("npu_swiglu", [X], {"axis": -1}),
    ("npu_swiglu", [X, "last"], {}),
    ("npu_swiglu", [X, 0.5], {}),
    ("npu_clipped_swiglu", [X, None], {}),
    ("npu_geglu", [X], {"approximate": "tanh"}),
    ("npu_gelu", [X, "tanh"], {}),
    ("npu_gelu", [X], {"approximate": 1}),
    ("npu_rotary_mul", [X, X], {}),
    ("npu_rotary_mul", [X, X, X], {"rotary_matrix": X}),
    ("npu_rotary_mul", [X, X, X, 1], {}),
    ("npu_fusion_attention", [*QKV, 2], {}),
    ("npu_fusion_attention", [*QKV, "BNSD", 2], {}),
    ("npu_fusion_attention", [*QKV, 2, "BNSD"], {"attn_mask": None}),
    ("npu_fusion_attention", [*QKV, 2, "BNSD"], {"pre_tokens": 1}),
    ("npu_fusion_attention", [*QKV, 2, "BNSD"], {"sparse_mode": "causal"}),
    ("npu_fused_infer_attention_score", [*QKV, 2], {}),
    ("npu_fused_infer_attention_score", QKV, {"head_num": 2}),
    ("npu_prompt_flash_attention", QKV, {"scale": 1.0}),
    ("npu_grouped_matmul", [X, [X]], {}),
    ("npu_grouped_matmul", [[X], [tensor(8, 4)]], {}),
    ("npu_grouped_matmul", [[X], [tensor(8, 4)]], {"group_type": 1}),
    ("npu_moe_token_permute", [X], {}),
    ("npu_moe_token_permute", [X, [0, 1]], {}),
    ("npu_moe_token_permute", [tensor(2, 2, 8), tensor(2, dtype="int64")], {}),
    ("npu_moe_token_unpermute", [X, tensor(2, 2, dtype="int32")], {}),
    ("npu_moe_gating_top_k_softmax", [GAMMA], {"k": 1}),
    ("npu_moe_gating_top_k_softmax", [X], {"top_k": 1}),
    ("npu_moe_init_routing", [X, X, X], {}),
    ("npu_group_norm_silu", [X, GAMMA, GAMMA], {}),
    ("npu_group_norm_swish", [X, GAMMA, GAMMA, 2], {}),
    ("npu_scaled_masked_softmax", [X], {}),
    ("npu_confusion_transpose", [X, [0, 1], [8, 2]], {}),
    ("npu_interleave_rope", [X, X], {}),
    ("npu_apply_rotary_pos_emb", [X, X, X], {}),
]


@pytest.mark.parametrize("call", WRONG, ids=lambda call: f"{call[0]}-{WRONG.index(call)}")
def test_wrong_arguments_fail_in_both(real: Server, emulator: Server, call: Call) -> None:
    operator, args, kwargs = call
    theirs, ours = real(operator, args, kwargs, device="meta"), emulator(operator, args, kwargs)
    assert "error" in theirs, theirs
    assert "error" in ours, ours
    if "npu::" in theirs["message"]:  # torch's own check of the arguments: the message, too
        assert ours["error"] == theirs["error"]
        assert _sentence(ours["message"]) == _sentence(theirs["message"])


def test_what_backward_does_is_as_registered(real: Server) -> None:
    """The real library has autograd kernels for exactly the operators of which our data says so."""
    registered = set(real.ask({"what": "autograd"})["operators"])
    ours = {
        f"npu::{name}" + (f".{one.overload}" if one.overload != "default" else "")
        for name, overloads in schemas.operators(VERSION).items()
        for one in overloads
        if one.autograd_kind in ("formula", "error_fallback")
    }
    assert ours == registered


def test_no_gradient_where_there_is_none(emulator: Server) -> None:
    raising = emulator("npu_add_rms_norm", [X, X, GAMMA], backward=True)
    assert "derivative for npu::npu_add_rms_norm is not implemented" in raising["message"]
    silent = emulator("npu_clipped_swiglu", [X], backward=True)
    assert silent["gradients"] == [None]
    assert any("an autograd kernel was not registered" in sentence for sentence in silent["warnings"])


def _sentence(message: str) -> str:
    return re.sub(r"(?s)Value: .*|tensor\(.*?\)|\s+", " ", message).strip()[:200]


def _numbers(values: str) -> tuple[float, ...]:
    raw = base64.b64decode(values)
    return struct.unpack(f"{len(raw) // 8}d", raw)
