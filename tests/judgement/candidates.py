"""Candidates made by hand: chains as the scan counts them."""

from __future__ import annotations

from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Estimate, Priority, Step, Verdict

# RMSNorm as Llama writes it: eight small operators, two of them casts; what a reduction leaves is not a pass.
RMS_NORM = (
    Step("cast", "hidden_states.to(torch.float32)", 10, "cast", 1, 1, 1),
    Step("square", "hidden_states.pow(2)", 11, "compute", 1, 1, 1),
    Step("mean", "hidden_states.pow(2).mean(-1, keepdim=True)", 11, "compute", 1, 1, 0),
    Step("add", "variance + self.variance_epsilon", 12, "compute", 1, 0, 0),
    Step("rsqrt", "torch.rsqrt(variance + self.variance_epsilon)", 12, "compute", 1, 0, 0),
    Step("mul", "hidden_states * torch.rsqrt(variance + self.variance_epsilon)", 12, "compute", 1, 1, 1),
    Step("cast", "hidden_states.to(input_dtype)", 13, "cast", 1, 1, 1),
    Step("mul", "self.weight * hidden_states.to(input_dtype)", 13, "compute", 1, 1, 1),
)


def candidate(chain: tuple[Step, ...] = RMS_NORM, **changes: object) -> Candidate:
    values: dict[str, object] = {
        "id": "9f3a1c27",
        "rule": "rms_norm",
        "variant": "weight",
        "api": "torch_npu.npu_rms_norm",
        "file": "models/norm.py",
        "qualname": "LlamaRMSNorm.forward",
        "start_line": 10,
        "end_line": 13,
        "group": "g1",
        "verdict": Verdict.RECOMMENDED,
        "priority": Priority.HIGH,
        "reason": Text("fits", "适用"),
        "original": "",
        "replacement": None,
        "edit": None,
        "diff": None,
        "chain": chain,
        "estimate": Estimate(sum(one.launches for one in chain), 1, sum(one.reads + one.writes for one in chain), 2),
    }
    return Candidate(**(values | changes))  # type: ignore[arg-type]
