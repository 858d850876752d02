"""Layer 5: the driver and the devices."""

from __future__ import annotations

from npufuse_tui.doctor.cann import find_driver
from npufuse_tui.doctor.diagnosis import Layer, Status
from npufuse_tui.doctor.findings import Findings
from npufuse_tui.doctor.fixes import device_fix, driver_fix
from npufuse_tui.judgement.devices import recognise
from npufuse_tui.language import Text
from npufuse_tui.rules import load_rules


def driver_layer(found: Findings) -> Layer:
    """Driver, firmware, device nodes, and what each product supports."""
    driver = find_driver(found.root)
    smi = found.smi
    version = driver.version or (smi.version if smi else None)
    firmware = driver.firmware or found.board.get("Firmware Version")
    evidence: list[Text] = []
    if version:
        evidence.append(Text("driver {0}", "驱动 {0}").format(version))
    if firmware and firmware != "NA":
        evidence.append(Text("firmware {0}", "固件 {0}").format(firmware))
    if driver.nodes:
        evidence.append(
            Text("{0} device nodes (/dev/davinci*)", "{0} 个设备节点（/dev/davinci*）").format(len(driver.nodes))
        )
    names = [one.name for one in smi.chips] if smi else []
    names = [str(one) for one in found.framework.get("names", [])] or names
    for name in dict.fromkeys(names):
        evidence.append(_product(name, names.count(name)))
    if not version and not driver.nodes and not names:
        evidence.append(Text("no driver, no device nodes", "没有驱动，也没有设备节点"))
        return Layer("driver", Status.MISSING, tuple(evidence), driver_fix())
    if driver.nodes and smi is not None and smi.chips and version:
        return Layer("driver", Status.PASSED, tuple(evidence))
    if smi is not None and not smi.chips:
        return Layer("driver", Status.FAILED, tuple(evidence), driver_fix())
    if not driver.nodes:
        evidence.append(Text("no device node under /dev", "/dev 下没有设备节点"))
        return Layer("driver", Status.MISSING, tuple(evidence), device_fix())
    evidence.append(Text("npu-smi did not answer: devices were not listed", "npu-smi 没有应答：未能列出设备"))
    return Layer("driver", Status.NOT_RUN, tuple(evidence), driver_fix())


def _product(name: str, count: int) -> Text:
    device = recognise(name)
    if device is None:
        return Text(
            "{count} x {name}: a product that npufuse does not know", "{count} 个 {name}：npufuse 不认识的产品"
        ).format(count=count, name=name)

    serves = [one.id for one in load_rules() if device.served_by(one.products)]
    lacks = [one.id for one in load_rules() if one.products and not device.served_by(one.products)]
    return Text(
        "{count} x {name}, {title}: supports {serves}{lacks}", "{count} 个 {name}，{title}：支持 {serves}{lacks}"
    ).format(
        count=count,
        name=name,
        title=device.title,
        serves=", ".join(serves) or "-",
        lacks=Text("; documentation does not name it for {0}", "；文档未列出其支持 {0}").format(", ".join(lacks))
        if lacks
        else Text("", ""),
    )
