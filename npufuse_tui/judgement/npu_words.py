"""Whether a name speaks of an NPU or of fused operators. The `npu` in `input` is none."""

from __future__ import annotations

import re

_NPU = re.compile(
    r"(?<![A-Za-z])(?:npu|NPU|Npu)(?![a-z])|(?<=[a-z])N(?:pu|PU)(?![a-z])"
    r"|(?:(?<![A-Za-z])[Aa]scend|(?<=[a-z])Ascend|ASCEND)(?!ing|ed|s\b)"
)

_FUSED = re.compile(r"(?<![A-Za-z])(?:[Ff]used|FUSED|[Ff]usion|FUSION)(?![a-z])|(?<=[a-z])Fus(?:ed|ion)(?![a-z])")


def names_an_npu(text: str) -> bool:
    """Whether a name (or a piece of code) names an NPU: use_npu, IS_NPU, isNpu, torch_npu, ascend."""
    return _NPU.search(text) is not None


def names_fusion(text: str) -> bool:
    """Whether a name (or a piece of code) names fused operators: use_fused_ops, FusedRMSNorm, apply_rope_fusion."""
    return _FUSED.search(text) is not None
