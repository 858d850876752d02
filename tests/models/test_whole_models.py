"""Whole models of transformers with every candidate applied give what the untouched ones give."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import models as benchmark

pytest.importorskip("transformers", reason="the models are those of the transformers package")


def result(**changes: Any) -> dict[str, Any]:
    good = {"logits": 1.0, "loss": 0.0, "gradient": 1.0, "worst": "", "inference": {"inference": 1.0}, "calls": {}}
    return good | changes


def test_what_is_wrong_is_called_wrong() -> None:
    assert benchmark.faults(result()) == []
    for name, value in (("logits", 0.999), ("logits", float("nan")), ("loss", 0.01), ("loss", float("nan"))):
        assert benchmark.faults(result(**{name: value})), (name, value)
    assert benchmark.faults(result(gradient=-1.0, worst="lm_head.weight"))
    assert benchmark.faults(result(inference={"with a cache": "RuntimeError: shapes"}))
    assert benchmark.faults({"error": "RuntimeError: shapes", "calls": {}})


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_three_model_types_end_to_end(tmp_path: Path) -> None:
    """A decoder, a mixture of experts and an encoder with a decoder: the fused operators are called, all is equal."""
    rows = {row["type"]: row for row in benchmark.measure(["qwen3", "mixtral", "t5"], tmp_path, 120)}
    assert set(rows) == {"qwen3", "mixtral", "t5"}
    for row in rows.values():
        assert "not_run" not in row, row
        for one in row["passes"].values():
            assert one["faults"] == [], (row["type"], one)
            assert one["gradients"] > 10
    first = {name: row["passes"]["longer blocks"]["calls"] for name, row in rows.items()}
    for operator in ("npu_fusion_attention", "npu_rms_norm", "npu_rotary_mul", "npu_swiglu"):
        assert first["qwen3"].get(operator), (operator, first["qwen3"])
    assert first["mixtral"].get("npu_grouped_matmul"), first["mixtral"]
    assert "npu_grouped_matmul" not in rows["mixtral"]["passes"]["shorter blocks"]["calls"]
    assert first["t5"].get("npu_rms_norm") and first["t5"].get("npu_geglu"), first["t5"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_wrong_replacement_is_seen(tmp_path: Path) -> None:
    """The comparison can fail: with a wrong epsilon in the edited copy the type is wrong, in logits or gradients."""
    source = benchmark.package()
    plain = {**benchmark.os.environ, "HF_HUB_OFFLINE": "1"}
    kept = benchmark.untouched(["llama"], tmp_path, 120, plain)
    copy = benchmark.edited_copy(source, tmp_path / "copy", ["llama"], benchmark.PASSES[0])
    file = copy.root / "models/llama/modeling_llama.py"
    text = file.read_text(encoding="utf-8")
    assert "epsilon=self.variance_epsilon" in text
    file.write_text(text.replace("epsilon=self.variance_epsilon", "epsilon=0.5"), encoding="utf-8")
    found = benchmark.edited(["llama"], copy, kept, tmp_path, 120, plain)["llama"]
    assert benchmark.faults(found), found
