"""Layer 1: the framework adaptor."""

from __future__ import annotations

import re

from npufuse_tui.doctor.diagnosis import Layer, Status
from npufuse_tui.doctor.findings import Findings, is_real, torch_number
from npufuse_tui.doctor.fixes import device_fix, emulated_fix
from npufuse_tui.language import Text, same


def framework(found: Findings) -> Layer:
    """torch and torch_npu: there, of one version, importable, and a tensor moves."""
    versions = found.versions
    if "python" not in versions:
        return Layer(
            "framework",
            Status.FAILED,
            (same(f"{found.python}: {versions.get('error', '?')}"),),
            Text("give the Python of the model with --python", "请用 --python 给出模型所用的 Python"),
        )
    evidence = [same(f"Python {versions['python']}: {versions['executable']}")]
    if not versions.get("torch"):
        evidence.append(Text("torch is not installed", "没有安装 torch"))
        return Layer(
            "framework",
            Status.MISSING,
            tuple(evidence),
            Text(
                "install torch in this Python, or give the model's own with --python; until then only scanning works",
                "请在此 Python 中安装 torch，或用 --python 给出模型所用的 Python；在此之前只能扫描",
            ),
        )
    evidence.append(same(f"torch {versions['torch']}"))
    if not found.torch.get("works"):
        evidence.append(Text("import torch failed: {0}", "导入 torch 失败：{0}").format(found.torch.get("error", "?")))
        return Layer("framework", Status.FAILED, tuple(evidence), _import_fix(found, str(found.torch.get("error"))))
    if not versions.get("torch_npu"):
        evidence.append(Text("torch_npu is not installed", "没有安装 torch_npu"))
        return Layer(
            "framework",
            Status.MISSING,
            tuple(evidence),
            Text("pip install torch_npu=={0}", "pip install torch_npu=={0}").format(
                torch_number(str(versions["torch"]))
            ),
        )
    evidence.append(same(f"torch_npu {versions['torch_npu']}"))
    if not is_real(versions["torch_npu"]):
        evidence.append(
            Text(
                "this torch_npu is npufuse's emulation on the CPU, not the library",
                "此 torch_npu 是 npufuse 的 CPU 仿真，并非真正的库",
            )
        )
        return Layer("framework", Status.MISSING, tuple(evidence), emulated_fix())
    wanted, has = torch_number(str(versions["torch"])), torch_number(str(versions["torch_npu"]))
    if "?" not in (wanted, has) and wanted != has:
        evidence.append(
            Text(
                "torch_npu {has} goes with torch {has}, not {wanted}", "torch_npu {has} 对应 torch {has}，而非 {wanted}"
            ).format(has=has, wanted=wanted)
        )
        return Layer(
            "framework",
            Status.FAILED,
            tuple(evidence),
            same(f"pip install torch_npu=={wanted}"),
        )
    return _imported(found, evidence)


def _imported(found: Findings, evidence: list[Text]) -> Layer:
    answer = found.framework
    error = answer.get("error")
    if error:
        evidence.append(Text("import failed: {0}", "导入失败：{0}").format(error))
        return Layer("framework", Status.FAILED, tuple(evidence), _import_fix(found, str(error)))
    evidence.append(Text("import torch_npu works", "import torch_npu 成功"))
    if not answer.get("available"):
        evidence.append(
            Text(
                "torch.npu.is_available() is False: no tensor was moved",
                "torch.npu.is_available() 为 False：没有搬运 Tensor",
            )
        )
        return Layer("framework", Status.MISSING, tuple(evidence), device_fix())
    evidence.append(
        Text("torch sees {count} devices: {names}", "torch 看到 {count} 个设备：{names}").format(
            count=answer.get("count", 0), names=", ".join(dict.fromkeys(answer.get("names", []))) or "?"
        )
    )
    if answer.get("round_trip") is not True:
        evidence.append(Text("a tensor came back from npu:0 changed", "Tensor 往返 npu:0 后发生变化"))
        return Layer("framework", Status.FAILED, tuple(evidence), device_fix())
    evidence.append(Text("a tensor went to npu:0 and came back equal", "Tensor 往返 npu:0 后完全一致"))
    return Layer("framework", Status.PASSED, tuple(evidence))


def _import_fix(found: Findings, error: str) -> Text:
    library = re.search(r"(lib\w+\.so[\w.]*): cannot open shared object file", error)
    if library:
        if found.cann and found.cann.set_env:
            return Text(
                "{library} is not on the library path; run: source {script}",
                "{library} 不在库路径中；请执行：source {script}",
            ).format(library=library[1], script=found.cann.set_env)
        return Text(
            "{library} belongs to CANN: install the CANN toolkit and source its set_env.sh",
            "{library} 属于 CANN：请安装 CANN toolkit，并 source 其 set_env.sh",
        ).format(library=library[1])
    if "undefined symbol" in error:
        return Text(
            "the libraries found are not those that torch_npu {version} needs: install the CANN that goes with it, and "
            "source that one's set_env.sh",
            "找到的库与 torch_npu {version} 所需版本不符：请安装与之配套的 CANN，并 source 它的 set_env.sh",
        ).format(version=found.versions.get("torch_npu") or "?")
    return Text(
        "run `python -c 'import torch, torch_npu'` in this environment and mend what it says",
        "请在该环境执行 `python -c 'import torch, torch_npu'`，并按其提示修复",
    )
