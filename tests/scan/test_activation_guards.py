"""The guard of a gate whose activation is chosen at run time is true for the activations of model libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

from npufuse_tui.scan.candidates import ACTIVATION_TESTS, HELPERS

HOLDERS = {
    "_is_silu": ['ACT2FN["silu"]', 'ACT2FN["swish"]', "torch.nn.SiLU()", "torch.nn.functional.silu"],
    "_is_gelu": ['ACT2FN["gelu"]', "torch.nn.functional.gelu"],
    "_is_gelu_tanh": ['ACT2FN["gelu_pytorch_tanh"]', 'ACT2FN["gelu_new"]', 'ACT2FN["gelu_fast"]'],
}


@pytest.mark.slow
def test_each_guard_takes_its_own_activations_and_no_other() -> None:
    assert set(HOLDERS) == set(ACTIVATION_TESTS.values())
    lines = ["import torch", "from transformers.activations import ACT2FN", *(HELPERS[name] for name in HOLDERS)]
    for guard in HOLDERS:
        for kind, holders in HOLDERS.items():
            for holder in holders:
                lines.append(f"assert {guard}({holder}) is {guard == kind}, ({guard!r}, {holder!r})")
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
