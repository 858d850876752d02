"""Profiles written by hand, with the headers that several versions write."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

NEW = [
    "Step Id",
    "Device_id",
    "Model ID",
    "Task ID",
    "Stream ID",
    "Name",
    "Type",
    "OP State",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Num",
    "Mix Block Num",
    "HF32 Eligible",
    "Input Shapes",
    "Input Data Types",
    "Input Formats",
    "Output Shapes",
    "Output Data Types",
    "Output Formats",
    "Context ID",
    "aicore_time(us)",
    "aic_total_cycles",
    "aic_mac_time(us)",
    "aic_mac_ratio",
    "aic_mte2_ratio",
    "aiv_time(us)",
    "aiv_vec_ratio",
    "aiv_mte2_ratio",
    "aiv_mte3_ratio",
    "cube_utilization(%)",
]
OLD = [
    "Device_id",
    "Op Name",
    "OP Type",
    "Task Type",
    "Task Start Time(us)",
    "Task Duration(us)",
    "Task Wait Time(us)",
    "Block Dim",
    "Input Shapes",
    "Input Data Types",
    "Output Shapes",
]
LEVEL0 = ["Step Id", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)", "Block Dim"]

RMS_NORM = ("Cast", "Square", "ReduceMean", "Adds", "Rsqrt", "Mul", "Cast", "Mul")
ROTARY = ("Neg", "ConcatD", "Mul", "Mul", "Add")
ATTENTION = ("BatchMatMulV3", "Muls", "Add", "SoftmaxV2", "BatchMatMulV2")
SWIGLU = ("Swish", "Mul")


@dataclass
class Kernel:
    type: str
    duration: float = 20.0
    wait: float = 1.0
    mac: float | None = None
    vec: float | None = 0.3
    mte2: float | None = 0.6
    step: str = "1"
    shapes: str = '"1,2048,4096"'
    stream: str = "2"
    device: str = "0"


def kernels(*chains: tuple[str, ...], **values: object) -> list[Kernel]:
    made = []
    for chain in chains:
        for one in chain:
            matmul = "MatMul" in one
            made.append(Kernel(one, **({"mac": 0.86, "vec": None, "mte2": 0.4} if matmul else {}) | values))
    return made


def write(path: Path, rows: list[Kernel], headers: list[str] = NEW, bom: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    start = 0.75
    with path.open("w", newline="", encoding="utf-8-sig" if bom else "utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(headers)
        for place, one in enumerate(rows):
            start += one.wait
            core = "AI_CORE" if "MatMul" in one.type else "AI_VECTOR_CORE"
            whole = int(start)
            shown = f"{1717575960208020 + whole}{f'{start - whole:.3f}'[1:]}\t"
            cells = {
                "Step Id": one.step,
                "Device_id": one.device,
                "Stream ID": one.stream,
                "Task ID": str(place),
                "Name": f"aclnn{one.type}_{one.type}AiCore_{one.type}",
                "Type": one.type,
                "Accelerator Core": core,
                "Start Time(us)": shown,
                "Duration(us)": f"{one.duration}\t",
                "Wait Time(us)": str(one.wait),
                "Block Num": "40",
                "Input Shapes": one.shapes,
                "Input Data Types": "DT_BF16",
                "Context ID": "N/A",
                "aic_mac_ratio": "N/A" if one.mac is None else str(one.mac),
                "aic_mte2_ratio": "0" if one.mac is None else str(one.mte2),
                "aiv_vec_ratio": "" if one.vec is None or one.mac is not None else str(one.vec),
                "aiv_mte2_ratio": "" if one.mte2 is None or one.mac is not None else str(one.mte2),
            }
            cells |= {
                "Op Name": cells["Name"],
                "OP Type": cells["Type"],
                "Task Type": core,
                "Task Start Time(us)": shown,
                "Task Duration(us)": cells["Duration(us)"],
                "Task Wait Time(us)": cells["Wait Time(us)"],
                "Block Dim": "40",
            }
            writer.writerow([cells.get(name, "N/A") for name in headers])
            start += one.duration
    return path


OPERATOR_HEADERS = [
    "Name",
    "Input Shapes",
    "Call Stack",
    "Host Self Duration(us)",
    "Host Total Duration(us)",
    "Device Self Duration(us)",
    "Device Total Duration(us)",
    "Device Self Duration With AICore(us)",
    "Device Total Duration With AICore(us)",
]


def write_operators(path: Path, rows: list[tuple[str, str, float, float]]) -> Path:
    """Rows of (name, call stack, host, device)."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(OPERATOR_HEADERS)
        for name, stack, host, device in rows:
            writer.writerow([name, "1,2048,4096", stack, host, host, device, device, "N/A", device])
    return path
