"""Explanations: what they say, that they line up, and that nothing of the repo can break out of them."""

from __future__ import annotations

import json
import re

import pytest
from candidates import RMS_NORM, candidate
from hypothesis import given, settings
from hypothesis import strategies as st

from npufuse_tui import language
from npufuse_tui.errors import WrongInput
from npufuse_tui.judgement.cells import pad, shorten, table, width, wrap
from npufuse_tui.judgement.devices import Constant, Device
from npufuse_tui.judgement.explain import captured, explain
from npufuse_tui.judgement.explain_markdown import code, mermaid, to_json, to_markdown
from npufuse_tui.judgement.explain_text import size, time, timeline_rows, to_text
from npufuse_tui.judgement.timeline import IDLE, draw
from npufuse_tui.language import same
from npufuse_tui.model import Backend, CaseResult, Check, Step

T = same("a test's own constant")
SLOW = Device("t", "A2", T, Constant(1e9, T), Constant(1.0, T), Constant(1e-5, T), Constant(1e-9, T))


def test_counts_come_from_the_chain():
    told = explain(candidate(), shape=(2, 2048, 1536), dtype="bfloat16", on="A2")
    assert told.model.before.launches == 8
    assert told.compute_steps == 6
    assert told.model.before.memory_passes == 11
    assert told.assumed == ()
    assert [one.op for one in told.steps] == ["cast", "square", "mean", "add", "rsqrt", "mul", "cast", "mul"]
    assert told.whole is None


def test_what_nobody_gave_is_named_as_assumed():
    told = explain(candidate())
    assert told.assumed == ("shape", "dtype", "device")
    assert "Assumed, neither given nor captured: shape, dtype, device." in to_text(told)
    assert "Assumed" not in to_text(explain(candidate(), shape=(1, 8), dtype="float32", on="A3"))


def test_the_whole_model():
    six = tuple(one for one in RMS_NORM if one.kind == "compute")
    told = explain(candidate(six), instances=57)
    assert "57 runs a step x 6 launches = 342 -> 57" in to_text(told)
    assert to_json(told)["whole_model"] == {
        "instances": 57,
        "calls_per_step": 1,
        "launches_before": 342,
        "launches_after": 57,
    }


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_every_number_of_the_model_is_labelled_and_lines_fit(lang, columns):
    language.set_language(lang)
    text = to_text(explain(candidate(), instances=3), columns)
    label = {"en": "a model, not a measurement", "zh": "并非实测"}[lang]
    assert text.count(label) == 2
    head = next(one for one in text.splitlines() if one.strip().startswith("#"))
    assert max(width(one) for one in text.splitlines()[1:]) <= max(columns, width(head) + 12)
    assert "torch_npu.npu_rms_norm" in text
    for words in {"en": ("driver and device", "Constants"), "zh": ("驱动与设备", "所用常数")}[lang]:
        assert words in text


def test_columns_line_up_in_cells():
    language.set_language("zh")
    lines = table([("算子", "x"), ("ab", "y"), ("类型转换", "z")])
    assert {width(one[: one.index(mark)]) for one, mark in zip(lines, "xyz", strict=True)} == {10}


def test_the_timeline_is_to_scale():
    told = explain(candidate(), shape=(1, 1000), dtype="float32", on=SLOW)
    before, after, _ = timeline_rows(told, 100)
    drawn = before.split()[1]
    ratio = len(drawn) / len(after.split()[1])
    assert ratio == pytest.approx(told.model.high, rel=0.1)
    idle = drawn.count(IDLE) / len(drawn)
    assert idle == pytest.approx(told.model.before.gaps / told.model.before.total, abs=0.04)


@given(st.lists(st.floats(0, 1e-3), max_size=30), st.floats(0, 1e-4), st.floats(1, 1e6))
def test_a_row_is_as_long_as_its_time(kernels, gap, scale):
    total = sum(kernels) + gap * len(kernels)
    assert abs(len(draw(kernels, gap, scale)) - total * scale) <= 1


def test_markdown_has_a_drawing_and_a_row_for_every_operator():
    told = explain(candidate(), shape=(1, 8), dtype="float32", on="A2")
    text = to_markdown(told)
    assert text.count("```mermaid") == 1
    assert len(re.findall(r"^\| \d \| ", text, re.MULTILINE)) == 8
    assert "s0 --> s1" in mermaid(told)
    assert "a model, not a measurement" in text


HOSTILE = 'x["`|</script><img src=x onerror=alert(1)>\n```\n## h"] --> y'


def test_code_of_the_repo_cannot_break_out():
    chain = (Step("cu`s|tom<b>", HOSTILE, 1, "compute"),)
    told = explain(candidate(chain, qualname='f["`]|', api='torch_npu.x"]'), shape=(1,), dtype="float32", on="A2")
    text = to_markdown(told)
    row = next(one for one in text.splitlines() if one.startswith("| 1 |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 10
    assert text.count("```mermaid") == 1
    drawing = mermaid(told)
    assert "<b>" not in drawing and '"]"' not in drawing and drawing.count("```") == 0
    for line in drawing.splitlines():
        assert line.count('"') % 2 == 0


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_a_code_span_ends_where_it_should(text):
    span = code(text)
    fence = re.match(r"`+", span)[0]
    inside = span[len(fence) : -len(fence)]
    assert span.endswith(fence) and "\n" not in span
    assert not re.search(rf"(?<!`){fence}(?!`)", inside)
    assert "|" not in inside.replace("\\|", "")


@given(st.text(max_size=80), st.integers(5, 40))
def test_cells_are_kept(text, cells):
    plain = " ".join(text.split())
    assert width(shorten(plain, cells)) <= cells
    assert width(pad(plain, 90)) >= 80 or width(plain) <= 90


@given(st.text("abc 中文字，。de", min_size=1, max_size=120), st.integers(8, 40))
def test_wrapping_keeps_every_character_and_the_width(text, columns):
    lines = wrap(text, columns)
    longest = max(
        (width(one) for one in re.findall(r"[^\s\u4e00-\u9fff，。]+[，。]*|[\u4e00-\u9fff][，。]*|[，。]+", text)),
        default=0,
    )
    assert all(width(one) <= max(columns, longest) for one in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_json_says_that_it_is_no_measurement():
    found = json.loads(json.dumps(to_json(explain(candidate())), allow_nan=False))
    assert found["model"]["is_measurement"] is False
    assert found["model"]["constants"]["launch_gap_seconds"]["source"]
    assert len(found["chain"]) == 8
    assert [one["layer"] for one in found["stack"]] == ["framework", "operators", "graph", "runtime", "driver"]
    json.dumps(to_json(explain(candidate((), estimate=None))), allow_nan=False)


def test_the_largest_shape_of_a_check():
    def case(shape: str, dtype: str) -> CaseResult:
        return CaseResult(shape, dtype, "contiguous", 1.0, 0.0, None, dtype, True)

    def check(*cases: CaseResult) -> Check:
        return Check("passed", Backend.EMULATED, len(cases), 1.0, 0.0, None, True, per_case=cases)

    told = captured(check(case("x 2×4096×1536, weight 1536", "torch.bfloat16"), case("x 2×8, h2x 3", "float32")))
    assert told == ((2, 4096, 1536), "bfloat16")
    assert captured(check(case("no tensors", "float32"), case("x 4×4", "int64"))) is None
    assert captured(check()) is None


ATTENTION = (
    Step("matmul", "q @ k.transpose(2, 3)", 1, "compute", 1, 2, 1),
    Step("softmax", "softmax(s)", 2, "compute", 1, 1, 1),
    Step("matmul", "p @ v", 3, "compute", 1, 2, 1),
)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_time_is_made_up_for_matrix_products(lang):
    language.set_language(lang)
    told = explain(candidate(ATTENTION, api="torch_npu.npu_fusion_attention"), instances=2)
    assert not told.timed
    for text in (to_text(told), to_markdown(told)):
        assert not re.search(r"\d (us|ms|MiB|KiB)", text)
        assert {"en": "No time is modelled", "zh": "不给出时间"}[lang] in text
        assert "6 -> 2" in text
    found = json.loads(json.dumps(to_json(told), allow_nan=False))["model"]
    assert found["timed"] is False and found["ratio_host_too_slow"] is None
    assert found["before"]["launches"] == 3 and found["before"]["total_seconds"] is None


def test_an_empty_chain_is_explained_without_a_fault():
    told = explain(candidate((), estimate=None))
    assert to_text(told) and to_markdown(told)


def test_wrong_device_is_refused():
    with pytest.raises(WrongInput):
        explain(candidate(), on="GPU")


FUSED = (
    "npu_rms_norm npu_add_rms_norm npu_swiglu npu_geglu npu_rotary_mul npu_fusion_attention "
    "npu_fused_infer_attention_score npu_grouped_matmul npu_moe_token_permute npu_moe_token_unpermute"
)


@pytest.mark.parametrize("name", FUSED.split())
def test_the_stages_inside_the_fused_operators_are_told(name):
    told = explain(candidate(api=f"torch_npu.{name}"))
    assert len(told.stages) >= 2
    assert all(str(one) in to_markdown(told) for one in told.stages)


def test_an_operator_without_stages_is_explained_all_the_same():
    told = explain(candidate(api="mine.fused_thing"))
    assert told.stages == () and "mine.fused_thing" in to_text(told)


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.00 GiB")]
)
def test_sizes(count, shown):
    assert size(count) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0.0 us"), (1.34e-3, "1.34 ms"), (2.5, "2.50 s")])
def test_times(seconds, shown):
    assert time(seconds) == shown
