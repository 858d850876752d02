"""How the faults that several layers share are mended."""

from __future__ import annotations

from npufuse_tui.doctor.findings import Findings
from npufuse_tui.language import Text


def device_fix() -> Text:
    return Text(
        "check the driver and runtime layers below; in a container, pass the devices (/dev/davinci*) and the driver in",
        "请看下面的运行时层与驱动层；若在容器中，请把设备（/dev/davinci*）与驱动目录映射进来",
    )


def emulated_fix() -> Text:
    return Text("on a machine with an NPU, install torch_npu itself", "在有 NPU 的机器上安装真正的 torch_npu")


def cann_fix(found: Findings) -> Text:
    if found.cann is None:
        return Text(
            "install the CANN toolkit and the kernels package of your product, then source its set_env.sh",
            "请安装 CANN toolkit 与对应产品的 kernels 包，然后 source 其 set_env.sh",
        )
    return Text("run: source {0}", "请执行：source {0}").format(found.cann.set_env or found.cann.home / "set_env.sh")


def kernel_fix() -> Text:
    return Text(
        "install the CANN kernels package of this product in the toolkit's own version",
        "请安装与 toolkit 版本一致、对应本产品的 CANN kernels 包",
    )


def no_device() -> Text:
    return Text("not run: torch reaches no NPU", "未运行：torch 没有可用的 NPU")


def profiler_fix() -> Text:
    return Text(
        "check that CANN's toolkit (with its msprof) is installed and that its set_env.sh was sourced",
        "请确认已安装 CANN toolkit（含 msprof）并 source 其 set_env.sh",
    )


def driver_fix() -> Text:
    return Text(
        "install the Ascend driver and firmware (npu-smi comes with them); in a container, map them and /dev/davinci*",
        "请安装昇腾驱动与固件（npu-smi 随之提供）；若在容器中，请把它们与 /dev/davinci* 映射进来",
    )
