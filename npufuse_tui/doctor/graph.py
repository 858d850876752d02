"""Layer 3: the graph engine and its fusion."""

from __future__ import annotations

from npufuse_tui.doctor.diagnosis import Layer, Status
from npufuse_tui.doctor.findings import Findings
from npufuse_tui.doctor.fixes import cann_fix, kernel_fix, no_device, profiler_fix
from npufuse_tui.language import Text


def graph(found: Findings) -> Layer:
    """The graph engine: a profile shows the fused kernel."""
    evidence: list[Text] = []
    if found.cann is not None:
        there = "libge_runner.so" in found.cann.libraries
        evidence.append(
            Text("libge_runner.so is there", "有 libge_runner.so")
            if there
            else Text("libge_runner.so is missing", "缺少 libge_runner.so")
        )
    if found.device:
        answer = found.ask("graph")
        kernels = [str(one) for one in answer.get("kernels", [])]
        if answer.get("error"):
            evidence.append(Text("the profiler could not run: {0}", "性能采集无法运行：{0}").format(answer["error"]))
            return Layer("graph", Status.FAILED, tuple(evidence), profiler_fix())
        if not kernels:
            evidence.append(Text("the profile names no kernel", "采集结果中没有任何核函数"))
            return Layer("graph", Status.FAILED, tuple(evidence), profiler_fix())
        evidence.append(
            Text("npu_rms_norm ran as: {0}", "npu_rms_norm 实际执行为：{0}").format(
                ", ".join(dict.fromkeys(kernels))[:200]
            )
        )
        fused = any("rmsnorm" in one.casefold().replace("_", "") for one in kernels)
        return Layer(
            "graph", Status.PASSED if fused else Status.FAILED, tuple(evidence), None if fused else kernel_fix()
        )
    if found.cann is None:
        evidence.append(Text("no CANN, so no graph engine", "没有 CANN，因此没有图引擎"))
        return Layer("graph", Status.MISSING, tuple(evidence), cann_fix(found))
    evidence.append(no_device())
    return Layer("graph", Status.NOT_RUN, tuple(evidence), None)
