"""Proof plans written by hand: right ones, and one for each way of being wrong."""

from __future__ import annotations

from npufuse_tui.language import same
from npufuse_tui.model import Candidate, Priority, ProofPlan, Verdict

RMS_NORM = """
def region(self, hidden_states):
    input_dtype = hidden_states.dtype
    hidden_states = hidden_states.to(torch.float32)
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
    return self.weight * hidden_states.to(input_dtype)
"""
_WIDEST = ".to(torch.promote_types(hidden_states.dtype, self.weight.dtype))"
_NORM = "torch_npu.npu_rms_norm(hidden_states, self.weight, epsilon=self.variance_epsilon)[0]"

SWIGLU = """
def region(self, x):
    return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
"""

HALVES = """
def region(hidden):
    a, b = hidden.chunk(2, dim=-1)
    return F.silu(a) * b
"""


def function(body: str, parameters: str = "self, hidden_states") -> str:
    return f"def region({parameters}):\n    return {body}\n"


def rms_norm(fused: str, original: str = RMS_NORM, setup: str = "") -> ProofPlan:
    values = ("Stub(weight=weight, variance_epsilon=eps)", "x")
    return ProofPlan("rms_norm", "weight", original, fused, setup, ("self", "hidden_states"), values, 1)


def swiglu(fused: str) -> ProofPlan:
    values = ("Stub(gate_proj=Returns(gate), up_proj=Returns(up), act_fn=F.silu)", "gate")
    return ProofPlan("swiglu", "two_inputs", SWIGLU, fused, "", ("self", "x"), values, 1)


def halves(fused: str) -> ProofPlan:
    return ProofPlan("swiglu", "halves", HALVES, fused, "", ("hidden",), ("hidden",), 1)


RIGHT = {
    "norm": rms_norm(function(_NORM + _WIDEST)),
    "swiglu": swiglu(
        function("self.down_proj(torch_npu.npu_swiglu(torch.cat([self.gate_proj(x), self.up_proj(x)], -1)))", "self, x")
    ),
    "halves": halves(function("torch_npu.npu_swiglu(hidden.contiguous(), dim=-1)", "hidden")),
}

# what is wrong → the plan, and words that the reason must hold
WRONG = {
    "halves swapped": (
        swiglu(
            function(
                "self.down_proj(torch_npu.npu_swiglu(torch.cat([self.up_proj(x), self.gate_proj(x)], -1)))", "self, x"
            )
        ),
        "cosine",
    ),
    "epsilon of its own": (rms_norm(function(_NORM.replace("self.variance_epsilon", "1e-5") + _WIDEST)), "error"),
    "epsilon left to the default": (
        rms_norm(
            function(_NORM.replace(", epsilon=self.variance_epsilon", "") + _WIDEST),
            RMS_NORM.replace("self.variance_epsilon", "1e-5"),
        ),
        "error",
    ),
    "output dtype of the input": (rms_norm(function(_NORM)), "dtype"),
    "always float32": (rms_norm(function(_NORM + ".float()")), "dtype"),
    "not contiguous": (halves(function("torch_npu.npu_swiglu(hidden, dim=-1)", "hidden")), "contiguous"),
    "gradient of the input lost": (
        rms_norm(function(_NORM.replace("(hidden_states,", "(hidden_states.detach(),") + _WIDEST)),
        "gradient of x is lost",
    ),
    "gradient of the weight lost": (
        rms_norm(function(_NORM.replace("self.weight,", "self.weight.detach(),") + _WIDEST)),
        "gradient of weight is lost",
    ),
    "tuple not unpacked": (rms_norm(function(_NORM.removesuffix("[0]"), "self, hidden_states")), ""),
    "keyword that is not there": (rms_norm(function(_NORM.replace("epsilon=", "eps="))), "eps"),
    "half of the output": (rms_norm(function(_NORM + _WIDEST + "[..., ::2]")), "shape"),
    "weight forgotten": (
        rms_norm(function(_NORM.replace("self.weight,", "self.weight * 0 + 1,") + _WIDEST)),
        "",
    ),
    "twice as large": (rms_norm(function("2 * " + _NORM + _WIDEST)), "error"),
    "operator that is not there": (rms_norm(function("torch_npu.npu_rms_normal(hidden_states)")), "npu_rms_normal"),
    "not a number": (rms_norm(function("torch.nan * " + _NORM + _WIDEST)), "finite"),
}


def candidate(plan: ProofPlan | None, name: str = "c", verdict: Verdict = Verdict.RECOMMENDED) -> Candidate:
    return Candidate(
        id=name,
        rule=plan.rule if plan else "rms_norm",
        variant=plan.variant if plan else "weight",
        api="torch_npu.npu_rms_norm",
        file="model.py",
        qualname="Norm.forward",
        start_line=1,
        end_line=5,
        group="g",
        verdict=verdict,
        priority=Priority.HIGH,
        reason=same("as written"),
        original="",
        replacement="",
        edit=None,
        diff=None,
        proof=plan,
    )
