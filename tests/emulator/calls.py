"""Calls of torch_npu as data, so that the same call can be made in several processes; and random valid ones.

A tensor is {"shape", "dtype"} filled from the call's seed, or {"data", "dtype"}; a dtype is {"dtype_of": name}.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

SERVER = Path(__file__).with_name("call_server.py")
HALF = st.sampled_from(["float16", "bfloat16"])
FLOAT = st.sampled_from(["float16", "bfloat16", "float32"])


class Server:
    """A child that makes calls. Its standard error goes to a file, so that a crash can be told."""

    def __init__(self, python: Path | str, mode: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [str(python), str(SERVER), *mode],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.version = self._read()["version"]

    def __call__(self, operator: str, args: list[Any], kwargs: dict[str, Any] | None = None, **how: Any) -> Any:
        return self.ask({"operator": operator, "args": args, "kwargs": kwargs or {}, **how})

    def ask(self, request: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(f"the child ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def emulated_server(version: str | None, tmp_path: Path, strict: bool = True) -> Server:
    import os

    from npufuse_tui.emulator.environment import emulated

    environment = emulated(os.environ, version=version, strict=strict, folder=tmp_path / "emulator")
    return Server(sys.executable, ["emulated"], environment, tmp_path / "emulated.log")


def tensor(*shape: int, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": dtype, **more}


Call = tuple[str, list[Any], dict[str, Any]]


@st.composite
def rms_norm(draw: st.DrawFn) -> Call:
    shape = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    over = draw(st.integers(1, min(2, len(shape) - 1)))
    dtype, gamma = draw(
        st.sampled_from(
            [
                ("float16", "float16"),
                ("bfloat16", "bfloat16"),
                ("float16", "float32"),
                ("bfloat16", "float32"),
                ("float32", "float32"),
            ]
        )
    )
    epsilon = draw(st.sampled_from([{}, {"epsilon": 1e-5}]))
    return "npu_rms_norm", [tensor(*shape, dtype=dtype), tensor(*shape[-over:], dtype=gamma)], epsilon


@st.composite
def add_rms_norm(draw: st.DrawFn) -> Call:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    dtype = draw(FLOAT)
    one = tensor(*shape, dtype=dtype)
    return "npu_add_rms_norm", [one, one, tensor(shape[-1], dtype=dtype)], {}


@st.composite
def halved(draw: st.DrawFn) -> Call:
    shape = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    shape[dim] *= 2
    one = tensor(*shape, dtype=draw(FLOAT))
    operator = draw(st.sampled_from(["npu_swiglu", "npu_geglu", "npu_clipped_swiglu"]))
    kwargs: dict[str, Any] = {"dim": dim}
    if operator == "npu_geglu":
        kwargs |= draw(st.sampled_from([{}, {"approximate": 0}, {"approximate": 1, "activate_left": True}]))
    if operator == "npu_clipped_swiglu":
        kwargs |= draw(st.sampled_from([{}, {"interleaved": False}, {"alpha": 1.0, "limit": 2.0, "bias": 0.5}]))
    return operator, [one], kwargs


@st.composite
def plain(draw: st.DrawFn) -> Call:
    shape = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    operator = draw(st.sampled_from(["npu_gelu", "fast_gelu", "npu_fast_gelu", "npu_silu"]))
    kwargs = draw(st.sampled_from([{}, {"approximate": "tanh"}])) if operator == "npu_gelu" else {}
    return operator, [tensor(*shape, dtype=draw(FLOAT))], kwargs


@st.composite
def rotary(draw: st.DrawFn) -> Call:
    dims = [draw(st.integers(1, 4)) for _ in range(3)]
    width = 2 * draw(st.integers(1, 16))
    along = draw(st.integers(0, 2))
    cos = [size if at == along else 1 for at, size in enumerate(dims)]
    dtype = draw(FLOAT)
    angles = tensor(*cos, width, dtype=draw(st.sampled_from([dtype, "float32"])), bounded=True)
    mode = draw(st.sampled_from([[], ["half"], ["interleave"]]))
    return "npu_rotary_mul", [tensor(*dims, width, dtype=dtype), angles, angles, *mode], {}


@st.composite
def fusion_attention(draw: st.DrawFn) -> Call:
    layout = draw(st.sampled_from(["BSH", "SBH", "BSND", "BNSD", "TND"]))
    batch, groups, ratio = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    width = draw(st.sampled_from([8, 16]))
    heads, dtype = groups * ratio, draw(FLOAT)
    kwargs: dict[str, Any] = {"scale": 0.25}
    mode = draw(st.sampled_from([None, 0, 2, 3]))
    if mode == 0 and layout != "TND":
        shapes = [(rows, columns), (1, 1, rows, columns), (batch, 1, rows, columns), (batch, heads, rows, columns)]
        kwargs["atten_mask"] = tensor(*draw(st.sampled_from(shapes)), dtype="bool")
    elif mode:
        kwargs |= {"atten_mask": tensor(2048, 2048, dtype="bool", triangle=True), "sparse_mode": mode}
    if layout == "TND":
        kwargs["actual_seq_qlen"] = [rows * (at + 1) for at in range(batch)]
        kwargs["actual_seq_kvlen"] = [columns * (at + 1) for at in range(batch)]
    query = tensor(*_in_layout(layout, batch, heads, rows, width), dtype=dtype)
    key = tensor(*_in_layout(layout, batch, groups, columns, width), dtype=dtype)
    return "npu_fusion_attention", [query, key, key, heads, layout], kwargs


@st.composite
def infer_attention(draw: st.DrawFn) -> Call:
    operator = draw(st.sampled_from(["npu_fused_infer_attention_score", "npu_prompt_flash_attention"]))
    layout = draw(st.sampled_from(["BSH", "BSND", "BNSD"]))
    batch, groups, ratio = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    rows, columns, width = draw(st.integers(2, 5)), draw(st.integers(2, 5)), draw(st.sampled_from([16, 32]))
    heads, dtype = groups * ratio, draw(HALF)
    kwargs: dict[str, Any] = {"num_heads": heads, "num_key_value_heads": groups, "input_layout": layout}
    if operator == "npu_fused_infer_attention_score":
        kwargs |= {"scale": 0.25} | draw(st.sampled_from([{}, {"softmax_lse_flag": True}]))
    else:
        kwargs |= {"scale_value": 0.25}
    if draw(st.booleans()):
        kwargs |= {"atten_mask": tensor(2048, 2048, dtype="bool", triangle=True), "sparse_mode": 3}
    query = tensor(*_in_layout(layout, batch, heads, rows, width), dtype=dtype)
    key = tensor(*_in_layout(layout, batch, groups, columns, width), dtype=dtype)
    return operator, [query, key, key], kwargs


@st.composite
def masked_softmax(draw: st.DrawFn) -> Call:
    batch, heads = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    rows, columns = 32 * draw(st.integers(1, 2)), 32 * draw(st.integers(1, 2))
    mask = draw(st.sampled_from([(batch, heads, rows, columns), (batch, 1, rows, columns), (1, 1, rows, columns)]))
    args = [tensor(batch, heads, rows, columns, dtype=draw(FLOAT)), tensor(*mask, dtype="bool")]
    return "npu_scaled_masked_softmax", args, draw(st.sampled_from([{}, {"scale": 0.5}]))


@st.composite
def grouped_matmul(draw: st.DrawFn) -> Call:
    groups, inner, outer = draw(st.integers(2, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(0, 4), min_size=groups, max_size=groups).filter(any))
    totals = [sum(counts[: at + 1]) for at in range(groups)]
    dtype, rows = draw(FLOAT), sum(counts)
    x = tensor(rows, inner, dtype=dtype)
    kind = draw(st.sampled_from(["totals", "counts", "list", "lists", "reduced"]))
    if kind == "lists":
        x = [tensor(draw(st.integers(1, 4)), inner, dtype=dtype) for _ in range(groups)]
        weight = [tensor(inner, draw(st.integers(1, 5)), dtype=dtype) for _ in range(groups)]
        return "npu_grouped_matmul", [x, weight], {"group_type": -1, "split_item": 0}
    if kind == "reduced":
        group_list = {"data": totals, "dtype": "int64"}
        args = [[tensor(inner, rows, dtype=dtype)], [tensor(rows, outer, dtype=dtype)]]
        return "npu_grouped_matmul", args, {"group_list": group_list, "group_type": 2, "split_item": 3}
    if kind == "list":
        weight = [tensor(inner, outer, dtype=dtype) for _ in range(groups)]
        return "npu_grouped_matmul", [[x], weight], {"group_list": totals, "split_item": 3}
    transposed = draw(st.booleans())
    weight = tensor(groups, inner, outer, dtype=dtype, transposed=transposed)
    given = {"data": totals if kind == "totals" else counts, "dtype": "int64"}
    kwargs = {"group_list": given, "group_type": 0, "split_item": draw(st.sampled_from([2, 3]))}
    if kind == "counts":
        kwargs["group_list_type"] = 1
    return "npu_grouped_matmul", [[x], [weight]], kwargs


@st.composite
def permute(draw: st.DrawFn) -> Call:
    tokens, hidden, k = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    dims = draw(st.sampled_from([(tokens,), (tokens, k)]))
    indices = tensor(*dims, dtype=draw(st.sampled_from(["int32", "int64"])), below=4)
    kwargs = draw(st.sampled_from([{}, {"num_out_tokens": 0}, {"num_out_tokens": 2}, {"num_out_tokens": 100}]))
    return "npu_moe_token_permute", [tensor(tokens, hidden, dtype=draw(FLOAT)), indices], kwargs


@st.composite
def unpermute(draw: st.DrawFn) -> Call:
    tokens, hidden, k = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    order = draw(st.permutations(range(tokens * k)))
    operator = draw(st.sampled_from(["npu_moe_token_unpermute", "_npu_moe_token_unpermute"]))
    args = [tensor(tokens * k, hidden, dtype=draw(FLOAT)), {"data": list(order), "dtype": "int32"}]
    probs = {"probs": tensor(tokens, k, dtype=draw(FLOAT))} if k > 1 or draw(st.booleans()) else {}
    return operator, args, probs


@st.composite
def routing(draw: st.DrawFn) -> Call:
    rows, experts, hidden = draw(st.integers(1, 6)), draw(st.integers(2, 6)), draw(st.integers(1, 4))
    k = draw(st.integers(1, experts))
    dtype = draw(FLOAT)
    which = draw(st.sampled_from(["gate", "init", "finalize"]))
    if which == "gate":
        shape = draw(st.sampled_from([(rows, experts), (2, rows, experts)]))
        return "npu_moe_gating_top_k_softmax", [tensor(*shape, dtype=dtype)], {"k": k}
    if which == "init":
        numbers = [[row + rows * at for at in range(k)] for row in range(rows)]
        chosen = tensor(rows, k, dtype="int32", below=experts)
        args = [tensor(rows, hidden, dtype=dtype), {"data": numbers, "dtype": "int32"}, chosen]
        return "npu_moe_init_routing", args, {"active_num": draw(st.integers(1, 8))}
    order = list(draw(st.permutations(range(rows * k))))
    expanded, skip = tensor(rows * k, hidden, dtype=dtype), tensor(rows, hidden, dtype=dtype)
    bias, chosen = tensor(experts, hidden, dtype=dtype), tensor(rows, k, dtype="int32", below=experts)
    source = {"data": order, "dtype": "int32"}
    args = [expanded, skip, None, bias, tensor(rows, k, dtype=dtype), source, chosen]
    return "npu_moe_finalize_routing", args, {}


@st.composite
def group_norm(draw: st.DrawFn) -> Call:
    groups, channels = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    shape = [draw(st.integers(1, 3)), groups * channels, draw(st.integers(2, 4)), draw(st.integers(2, 4))]
    dtype = draw(FLOAT)
    x, weight = tensor(*shape, dtype=dtype), tensor(shape[1], dtype=dtype)
    if draw(st.booleans()):
        return "npu_group_norm_silu", [x, weight, weight, groups], {"eps": 1e-5}
    return "npu_group_norm_swish", [x, groups, weight, weight], draw(st.sampled_from([{}, {"swish_scale": 2.0}]))


@st.composite
def rope_for_inference(draw: st.DrawFn) -> Call:
    batch, rows, heads, dtype = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(HALF)
    if draw(st.booleans()):
        angles = tensor(batch, 1, rows, 64, dtype=dtype, bounded=True)
        return "npu_interleave_rope", [tensor(batch, heads, rows, 64, dtype=dtype), angles, angles], {}
    width = draw(st.sampled_from([64, 128]))
    angles = tensor(batch, rows, 1, width, dtype=dtype, bounded=True)
    query, key = tensor(batch, rows, heads, width, dtype=dtype), tensor(batch, rows, 1, width, dtype=dtype)
    return "npu_apply_rotary_pos_emb", [query, key, angles, angles], {}


@st.composite
def other_norms(draw: st.DrawFn) -> Call:
    shape = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    dtype = draw(FLOAT)
    x, gamma = tensor(*shape, dtype=dtype), tensor(shape[-1], dtype=dtype)
    which = draw(st.sampled_from(["gemma", "layer", "silu"]))
    if which == "gemma":
        return "npu_gemma_rms_norm", [x, gamma], draw(st.sampled_from([{}, {"epsilon": 1e-5}]))
    if which == "layer":
        return "npu_add_layer_norm", [x, x, gamma, gamma], draw(st.sampled_from([{}, {"additional_output": True}]))
    channels = tensor(shape[1], dtype="float32")
    return "npu_group_norm_silu", [x, channels, channels, 1], {"eps": 1e-5}


@st.composite
def later_attention(draw: st.DrawFn) -> Call:
    layout = draw(st.sampled_from(["BSH", "SBH", "BSND", "BNSD", "TND"]))
    batch, heads, rows, width = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5)), 16
    operator = draw(st.sampled_from(["npu_fusion_attention_v2", "npu_fusion_attention_v3"]))
    one = tensor(*_in_layout(layout, batch, heads, rows, width), dtype=draw(FLOAT))
    kwargs: dict[str, Any] = {"scale": 0.25}
    if layout == "TND":
        totals: Any = [rows * (at + 1) for at in range(batch)]
        if operator.endswith("v3"):
            totals = {"data": totals, "dtype": "int64"}
        kwargs |= {"actual_seq_qlen": totals, "actual_seq_kvlen": totals}
    if draw(st.booleans()):
        kwargs |= {"atten_mask": tensor(2048, 2048, dtype="bool", triangle=True), "sparse_mode": 2}
    return operator, [one, one, one, heads, layout], kwargs


@st.composite
def later_inference(draw: st.DrawFn) -> Call:
    batch, heads, rows, columns = (draw(st.integers(1, 3)) for _ in range(4))
    dtype = draw(HALF)
    which = draw(st.sampled_from(["decode", "v2", "packed"]))
    if which == "decode":
        query = tensor(batch, heads, 1, 16, dtype=dtype)
        key = tensor(batch, heads, columns, 16, dtype=dtype)
        options = {"num_heads": heads, "input_layout": "BNSD", "scale_value": 0.25}
        return "npu_incre_flash_attention", [query, key, key], options
    if which == "packed":
        query, key = tensor(batch * rows, heads, 16, dtype=dtype), tensor(batch * columns, heads, 16, dtype=dtype)
        options = {
            "num_heads": heads,
            "input_layout": "TND",
            "actual_seq_lengths": [rows * (at + 1) for at in range(batch)],
            "actual_seq_lengths_kv": [columns * (at + 1) for at in range(batch)],
            "softmax_lse_flag": draw(st.booleans()),
        }
        return "npu_fused_infer_attention_score", [query, key, key], options
    layout = draw(st.sampled_from(["BSH", "BSND", "BNSD", "BNSD_BSND"]))
    dense = layout.partition("_")[0]
    query = tensor(*_in_layout(dense, batch, heads, rows, 16), dtype=dtype)
    key = tensor(*_in_layout(dense, batch, heads, columns, 16), dtype=dtype)
    options = {"num_query_heads": heads, "input_layout": layout, "return_softmax_lse": draw(st.booleans())}
    return "npu_fused_infer_attention_score_v2", [query, key, key], options


@st.composite
def gelu_mul(draw: st.DrawFn) -> Call:
    shape = [*draw(st.lists(st.integers(1, 5), max_size=2)), 2 * draw(st.integers(1, 5))]
    options = draw(st.sampled_from([{}, {"approximate": "tanh"}]))
    return "npu_gelu_mul", [tensor(*shape, dtype=draw(FLOAT))], options


def _in_layout(layout: str, batch: int, heads: int, rows: int, width: int) -> list[int]:
    return {
        "BSH": [batch, rows, heads * width],
        "SBH": [rows, batch, heads * width],
        "BSND": [batch, rows, heads, width],
        "BNSD": [batch, heads, rows, width],
        "TND": [batch * rows, heads, width],
    }[layout]


VALID = {
    "rms_norm": rms_norm(),
    "add_rms_norm": add_rms_norm(),
    "halved": halved(),
    "plain": plain(),
    "rotary": rotary(),
    "fusion_attention": fusion_attention(),
    "infer_attention": infer_attention(),
    "masked_softmax": masked_softmax(),
    "grouped_matmul": grouped_matmul(),
    "permute": permute(),
    "unpermute": unpermute(),
    "routing": routing(),
    "group_norm": group_norm(),
    "rope_for_inference": rope_for_inference(),
    "other_norms": other_norms(),
    "later_attention": later_attention(),
    "later_inference": later_inference(),
    "gelu_mul": gelu_mul(),
}
