"""A profile mapped to the candidates of a scan, and shown."""

from __future__ import annotations

import json
import re

import pytest
from samples import ATTENTION, RMS_NORM, SWIGLU, Kernel, kernels, write, write_operators

from npufuse_tui import language
from npufuse_tui.judgement.cells import width
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Priority, Verdict
from npufuse_tui.profiling.profile import profile
from npufuse_tui.profiling.report import to_json, to_markdown, to_table
from npufuse_tui.profiling.stacks import parse_stack, read_calls


@pytest.fixture(autouse=True)
def english():
    language.set_language("en")
    yield
    language.set_language("en")


def candidate(name: str, rule: str, file: str, start: int, end: int) -> Candidate:
    fits = Text("fits", "适用")
    return Candidate(
        name,
        rule,
        "v",
        "torch_npu.x",
        file,
        "C.forward",
        start,
        end,
        "g",
        Verdict.RECOMMENDED,
        Priority.HIGH,
        fits,
        "",
        None,
        None,
        None,
    )


NORM = candidate("aaaa0001", "rms_norm", "models/qwen/modeling.py", 59, 63)
OTHER = candidate("aaaa0002", "rms_norm", "models/llama/modeling.py", 59, 63)
ATTEND = candidate("aaaa0003", "fused_infer_attention", "models/qwen/modeling.py", 100, 130)

STACK = (
    "/srv/job/models/qwen/modeling.py(61): forward;\r\n/opt/torch/nn/modules/module.py(1751): _call_impl;\r\n"
    "/srv/job/models/qwen/modeling.py(210): forward"
)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "host_1_ascend_pt/ASCEND_PROFILER_OUTPUT"
    write(place / "kernel_details.csv", kernels(RMS_NORM, ("MatMulV3",), ATTENTION, SWIGLU))
    write_operators(
        place / "operator_details.csv",
        [
            ("aten::pow", STACK, 8.0, 20.5),
            ("aten::pow", STACK, 8.0, 21.5),
            ("aten::mul", STACK, 4.0, 19.0),
            ("aten::mm", "/srv/job/models/qwen/modeling.py(300): forward", 9.0, 250.0),
            ("aten::add", "/elsewhere/modeling.py(61): forward", 1.0, 3.0),
            ("aten::copy_", "", 1.0, 1.0),
        ],
    )
    return tmp_path


def test_a_frame_leads_to_the_candidate_that_it_lies_in(folder):
    told = profile(folder, [NORM, OTHER, ATTEND])
    assert told.stacks
    (one,) = told.evidence
    assert (one.candidate, one.calls, one.device, one.host) == ("aaaa0001", 3, 61.0, 20.0)
    assert one.operators == ("aten::mul", "aten::pow")


def test_sequences_map_to_the_candidates_of_their_rule(folder):
    told = profile(folder, [NORM, OTHER, ATTEND])
    by_rule = {one.sequence.rule: one for one in told.mappings}
    assert by_rule["rms_norm"].candidates == ("aaaa0001", "aaaa0002")
    assert by_rule["rms_norm"].confirmed == ("aaaa0001",)
    assert by_rule["fusion_attention"].candidates == ("aaaa0003",)
    assert by_rule["swiglu"].candidates == ()


def test_of_candidates_inside_one_another_the_smallest_is_meant(folder):
    whole = candidate("aaaa0009", "rms_norm", "models/qwen/modeling.py", 1, 400)
    told = profile(folder, [whole, NORM])
    assert {one.candidate: one.calls for one in told.evidence} == {"aaaa0009": 1, "aaaa0001": 3}


def test_without_stacks_or_a_scan_it_still_answers(tmp_path):
    told = profile(write(tmp_path / "kernel_details.csv", kernels(RMS_NORM)))
    assert not told.stacks and told.evidence == ()
    text = to_table(told)
    assert "with_stack=True" in text and "rms_norm" in text


def test_an_operator_file_of_another_form_is_no_harm(folder):
    next(folder.rglob("operator_details.csv")).write_text("something,else\n1,2\n")
    assert not profile(folder, [NORM]).stacks


def test_fused_kernels_are_named(tmp_path):
    rows = [Kernel("RmsNorm", 24.7), Kernel("RmsNorm", 24.7), Kernel("FlashAttentionScore", 276.4), Kernel("MatMulV3")]
    told = profile(write(tmp_path / "kernel_details.csv", rows))
    assert [(one.rule, one.count) for one in told.fused] == [("fusion_attention", 1), ("rms_norm", 2)]
    assert told.mappings == ()
    assert "Fused already: FlashAttentionScore x1, 0.276 ms, RmsNorm x2" in to_table(told, 200)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("columns", [60, 100])
def test_the_table_fits_and_names_files_and_lines(folder, lang, columns):
    language.set_language(lang)
    text = to_table(profile(folder, [NORM, OTHER]), columns)
    assert "models/qwen/modeling.py:59" in re.sub(r"\n\s*", "", text) or "models/qwen/modeling.py:59" in text
    head = next(one for one in text.splitlines() if {"en": "bound by", "zh": "瓶颈"}[lang] in one)
    assert max(width(one) for one in text.splitlines()) <= max(columns, width(head) + 12)
    assert {"en": "memory-bound", "zh": "访存受限"}[lang] in text


def test_json(folder):
    found = json.loads(json.dumps(to_json(profile(folder, [NORM])), allow_nan=False))
    assert found["schema"] == 1
    first = next(one for one in found["sequences"] if one["rule"] == "rms_norm")
    assert first["confirmed"] == ["aaaa0001"] and first["count"] == 1
    assert found["candidates"][0]["device_us"] == 61.0


def test_hostile_names_stay_in_their_cells(tmp_path):
    rows = kernels(("Exp|<b>", "Si\x1b]0;x\x07gn", "`Tanh"), ("MatMulV3",)) * 2
    told = profile(write(tmp_path / "kernel_details.csv", rows))
    text = to_table(told)
    assert "\x1b" not in text and "\x07" not in text
    markdown = to_markdown(told)
    assert "\x1b" not in markdown and "<b>" not in markdown.replace("\\<b\\>", "")
    row = next(one for one in markdown.splitlines() if "Exp" in one)
    assert len(re.findall(r"(?<!\\)\|", row)) == 8


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        ("/a/b.py(3): f;\r\n/c.py(4): g", [("/a/b.py", 3, "f"), ("/c.py", 4, "g")]),
        ("C:\\x\\y.py(9): h", [("C:/x/y.py", 9, "h")]),
        ("/odd (1).py(12): <lambda>", [("/odd (1).py", 12, "<lambda>")]),
        ("torch::autograd", []),
        ("", []),
    ],
)
def test_stacks(text, frames):
    assert [(one.file, one.line, one.function) for one in parse_stack(text)] == frames


def test_calls_of_one_place_are_put_together(folder):
    calls = {(one.name, one.frames[0].line): one.count for one in read_calls(folder)}
    assert calls["aten::pow", 61] == 2


@pytest.mark.parametrize("format", ["table", "json", "md"])
def test_the_command_scans_the_repo_and_leads_to_the_line(folder, tmp_path, format):
    from npufuse_tui.profiling.command import profile as command

    repo = tmp_path / "repo"
    (repo / "models/qwen").mkdir(parents=True)
    source = (
        "import torch\nfrom torch import nn\n" + "\n" * 54 + "class RMSNorm(nn.Module):\n"
        "    def forward(self, hidden_states):\n"
        "        input_dtype = hidden_states.dtype\n"
        "        hidden_states = hidden_states.to(torch.float32)\n"
        "        variance = hidden_states.pow(2).mean(-1, keepdim=True)\n"
        "        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)\n"
        "        return self.weight * hidden_states.to(input_dtype)\n"
    )
    (repo / "models/qwen/modeling.py").write_text(source)
    text = command(folder, repo, format)
    if format == "json":
        found = json.loads(text)
        norm = next(one for one in found["sequences"] if one["rule"] == "rms_norm")
        assert norm["confirmed"] == norm["candidates"] and len(norm["confirmed"]) == 1
    else:
        assert "models/qwen/modeling.py" in text.replace("\\", "")
