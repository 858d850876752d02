"""Layer 4: the runtime."""

from __future__ import annotations

from npufuse_tui.doctor.diagnosis import Layer, Status
from npufuse_tui.doctor.findings import Findings
from npufuse_tui.doctor.fixes import driver_fix, no_device
from npufuse_tui.doctor.smi import Chip
from npufuse_tui.language import Text, same


def runtime(found: Findings) -> Layer:
    """The runtime: npu-smi and what it says of every chip, and two streams at once."""
    evidence: list[Text] = []
    if found.cann is not None and "libascendcl.so" in found.cann.libraries:
        evidence.append(
            Text("runtime {0} (libascendcl.so)", "运行时 {0}（libascendcl.so）").format(
                found.cann.part("runtime") or found.cann.version or "?"
            )
        )
    smi = found.smi
    if smi is None:
        evidence.append(
            same(found.smi_trouble) if found.smi_trouble else Text("npu-smi is not installed", "没有 npu-smi")
        )
        status = Status.FAILED if found.smi_trouble else Status.MISSING
        return Layer("runtime", status, tuple(evidence), driver_fix())
    if not smi.chips:
        evidence.append(Text("npu-smi shows no device: {0}", "npu-smi 没有列出设备：{0}").format(smi.trouble or "-"))
        return Layer("runtime", Status.FAILED, tuple(evidence), driver_fix())
    evidence += [_chip(one) for one in smi.chips]
    if smi.processes:
        evidence.append(
            Text("{0} processes hold device memory", "有 {0} 个进程占用设备内存").format(len(smi.processes))
        )
    sick = [one for one in smi.chips if not one.healthy]
    if sick:
        return Layer(
            "runtime",
            Status.FAILED,
            tuple(evidence),
            Text(
                "NPU {0}: see `npu-smi info -t health -i {0}`; reset or leave it out with ASCEND_RT_VISIBLE_DEVICES",
                "NPU {0}：请看 `npu-smi info -t health -i {0}`；可复位，或用 ASCEND_RT_VISIBLE_DEVICES 避开",
            ).format(sick[0].npu),
        )
    if not found.device:
        evidence.append(no_device())
        return Layer("runtime", Status.NOT_RUN, tuple(evidence), None)
    answer = found.ask("streams")
    if answer.get("error"):
        evidence.append(Text("two streams could not be run: {0}", "双流测试无法运行：{0}").format(answer["error"]))
        return Layer("runtime", Status.FAILED, tuple(evidence), None)
    evidence.append(
        Text(
            "two streams: {together} ms together, {apart} ms one after the other",
            "双流测试：并行 {together} ms，依次 {apart} ms",
        ).format(together=f"{answer['together'] * 1000:.2f}", apart=f"{answer['apart'] * 1000:.2f}")
    )
    return Layer("runtime", Status.PASSED, tuple(evidence))


def _chip(one: Chip) -> Text:
    memory = f"{one.memory_used}/{one.memory_total} MB" if one.memory_total else "?"
    return Text(
        "NPU {npu} chip {chip}: {name}, health {health}, {temperature} C, AI core {use}%, memory {memory}",
        "NPU {npu} 芯片 {chip}：{name}，健康 {health}，{temperature} C，AI Core {use}%，内存 {memory}",
    ).format(
        npu=one.npu,
        chip=one.chip,
        name=one.name,
        health=one.health,
        temperature="?" if one.temperature is None else f"{one.temperature:g}",
        use="?" if one.utilisation is None else f"{one.utilisation:g}",
        memory=memory,
    )
