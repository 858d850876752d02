"""Whether a replacement's calls are valid for a version's schemas."""

from __future__ import annotations

import pytest

from npufuse_tui.judgement.api import check_replacement
from npufuse_tui.rules import load_rules

VALID = [
    "torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]",
    "torch_npu.npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)",
    "    y = torch_npu.npu_rotary_mul(q, cos, sin)\n    return y, torch_npu.npu_rotary_mul(k, cos, sin, 'half')\n",
    "torch_npu.npu_grouped_matmul([x], [w], group_list=g, split_item=2, group_type=0, group_list_type=1)[0]",
    "torch.ops.npu.npu_swiglu.default(x, -1)",
    "torch_npu.npu_rotary_mul(*values, **more)",
    "torch_npu.npu.current_device()",
    "torch_npu.optim.NpuFusedAdamW(p)",
    "import torch_npu as t\nt.npu_swiglu(input=x)",
    "other.npu_whatever(1, 2, 3)",
]
FAULTY = [
    ("torch_npu.npu_rms_norm(x, w, eps=1e-6)[0]", "no argument eps (did you mean epsilon?)"),
    ("torch_npu.npu_rms_norm(x)", "needs gamma"),
    ("torch_npu.npu_swiglu(x, -1, True)", "takes 2 positional arguments, 3 are given"),
    ("torch_npu.npu_grouped_matmul(x, w, None)", "the rest by keyword only"),
    ("torch_npu.npu_rms_norm(x, w, input=x)", "both by position and by keyword"),
    ("torch_npu.npu_rms_nrm(x, w)", "did you mean npu_rms_norm?"),
    ("torch_npu.npu_rotary_mul(q, c, s, rotary_matrix=None)", "no argument rotary_matrix"),
    ("torch_npu.npu_rms_norm(self=x, gamma=w)", "no argument self"),
    ("torch_npu.npu_confusion_transpose(x, p, s, True)", "deprecated"),
    ("torch.ops.npu.npu_swiglu.wrong(x)", "no overload wrong"),
    ("from torch_npu import npu_swiglu as f\nf(x, y=1)", "no argument y"),
    ("y = torch_npu.npu_swiglu(x", "no valid Python"),
    ("x\x00", "no valid Python"),
    ("(" * 5000, "no valid Python"),
]


@pytest.mark.parametrize("source", VALID)
def test_valid_calls_have_no_fault(source):
    assert check_replacement(source, "2.13.0") == ()


@pytest.mark.parametrize(("source", "fault"), FAULTY)
def test_a_fault_is_named(source, fault):
    told = check_replacement(source, "2.13.0")
    assert any(fault in one.en for one in told)
    assert all(one.zh != one.en for one in told)


def test_the_version_decides():
    source = "torch_npu.npu_rotary_mul(q, cos, sin, rotate=r)"
    assert check_replacement(source, "2.13.0") == ()
    (told,) = check_replacement(source, "2.7.1")
    assert "2.7.1" in told.en and "rotate" in told.en
    (told,) = check_replacement("torch_npu.npu_moe_token_permute(x, i)", "2.4.0.post4")
    assert "2.1.0.post17" in told.en


def test_the_nearest_overload_is_the_one_that_is_told():
    (told,) = check_replacement("torch_npu.npu_grouped_matmul(x, w, group_lists=g)", "2.13.0")
    assert "did you mean group_list?" in told.en


def test_a_fault_is_told_once():
    source = "a = torch_npu.npu_swiglu(x, axis=1)\nb = torch_npu.npu_swiglu(y, axis=1)\n"
    assert len(check_replacement(source, "2.13.0")) == 1


def test_every_replacement_of_the_rules_is_valid_for_the_newest_version():
    faults = {
        (rule.id, one.function.__name__): told
        for rule in load_rules()
        for one in rule.replacements
        if (told := check_replacement(one.source, "2.14.0"))
    }
    assert faults == {}
