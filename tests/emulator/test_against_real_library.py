"""The emulator held against the real torch_npu 2.13.0, loaded without an NPU. See `real_library.py`."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import calls
import pytest
import real_library
from calls import VALID, Call, Server, emulated_server, tensor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import npufuse_tui.emulator
from npufuse_tui import schemas
from npufuse_tui.emulator.environment import lay_out

pytestmark = pytest.mark.real_torch_npu
VERSION = real_library.VERSION
RUNTIME = Path(npufuse_tui.emulator.__file__).parent / "runtime" / "torch_npu"

# Where the real meta kernel differs from what is documented: (operator, output) → how, and what the emulator does.
META_DIFFERS = {
    ("npu_add_layer_norm", 3): "x1's shape although additional_output is False; empty here",
    ("npu_group_norm_silu", 1): "weight's dtype; documented, and here, is input's",
    ("npu_group_norm_silu", 2): "weight's dtype; documented, and here, is input's",
}
# Operators without a meta kernel: shapes and dtypes are held against documentation only.
NO_META = {
    "npu_confusion_transpose": "none is registered",
    "npu_format_cast": "memory formats exist on a device only",
    "npu_format_cast.Tensor": "memory formats exist on a device only",
    "npu_format_cast_": "memory formats exist on a device only",
    "npu_format_cast_.acl_format": "memory formats exist on a device only",
    "get_npu_format": "memory formats exist on a device only",
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


@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(call=CALLS)
def test_shapes_and_dtypes_of_valid_calls(real: Server, emulator: Server, call: Call) -> None:
    operator, args, kwargs = call
    theirs = real(operator, args, kwargs, device="meta")
    ours = emulator(operator, args, kwargs)
    assert "error" not in theirs, theirs
    assert "error" not in ours, ours
    assert len(ours["outputs"]) == len(theirs["outputs"])
    for at, (our, their) in enumerate(zip(ours["outputs"], theirs["outputs"], strict=True)):
        if (operator, at) not in META_DIFFERS:
            assert our == their, f"output {at}"


def test_what_the_tables_say_is_so(real: Server, emulator: Server) -> None:
    half, wide = tensor(2, 4, 3, dtype="float16"), tensor(4)
    wrong: dict[tuple[str, int], list[Any]] = {
        ("npu_add_layer_norm", 3): [tensor(2, 4), tensor(2, 4), wide, wide],
        ("npu_group_norm_silu", 1): [half, wide, wide, 2],
        ("npu_group_norm_silu", 2): [half, wide, wide, 2],
    }
    assert set(wrong) == set(META_DIFFERS)
    for (operator, at), args in wrong.items():
        theirs = real(operator, args, {}, device="meta")["outputs"][at]
        ours = emulator(operator, args, {})["outputs"][at]
        assert theirs != ours, f"{operator} no longer differs in output {at}: take it out of the table"
    with_meta = {name.removeprefix("npu::") for name in real.ask({"what": "meta"})["operators"]}
    assert not with_meta & set(NO_META)


def test_every_emulated_operator_is_called(emulator: Server) -> None:
    """A kernel that is added must be added to the random calls, or to the table of those that cannot be compared."""
    source = "\n".join(path.read_text() for path in (RUNTIME / "kernels").glob("*.py"))
    marked = {name for names in re.findall(r"@kernel\(([^)]*)\)", source) for name in re.findall(r'"([^"]+)"', names)}
    marked |= {"npu_scaled_masked_softmax", "npu_grouped_matmul", "npu_grouped_matmul.List"}
    covered = set(re.findall(r'"(_?npu_\w+|fast_gelu)"', Path(calls.__file__).read_text()))
    assert {name.partition(".")[0] for name in marked - set(NO_META)} == covered


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
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
