"""Runs in a child, under the interpreter of the user's model; needs nothing but the standard library and torch.

`python -c <this text> PROBE [DEVICE]` prints one line ``NPUFUSE-PROBE {json}``. Each probe answers for itself: one that
hangs or crashes takes nothing else with it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MARK = "NPUFUSE-PROBE "


def versions(device: str) -> dict[str, Any]:
    """What is installed, read from the packages' own records; nothing is imported."""
    from importlib import metadata, util

    found: dict[str, Any] = {"python": sys.version.split()[0], "executable": sys.executable}
    for name in ("torch", "torch_npu"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "?" if util.find_spec(name) is not None else None
    return found


def torch_alone(device: str) -> dict[str, Any]:
    """torch imported without torch_npu, and an addition on the CPU: what the emulation needs."""
    import torch

    return {"torch": torch.__version__, "works": bool((torch.ones(2) + 1).sum() == 4)}


def framework(device: str) -> dict[str, Any]:
    """torch and torch_npu imported, devices counted, a tensor taken to the device and back."""
    import torch

    found: dict[str, Any] = {"torch": torch.__version__, "torch_npu": None, "available": False, "count": 0, "names": []}
    import torch_npu

    found["torch_npu"] = torch_npu.__version__
    found["available"] = bool(torch.npu.is_available())
    if found["available"]:
        found["count"] = int(torch.npu.device_count())
        found["names"] = [str(torch.npu.get_device_name(one)) for one in range(found["count"])]
        value = torch.arange(1024, dtype=torch.float32)
        found["round_trip"] = bool(torch.equal(value.to(device).cpu(), value))
    return found


def operators(device: str) -> dict[str, Any]:
    """Fused operators run on the device and compared with their formulas, computed in float32 on the CPU."""
    import torch
    import torch_npu

    torch.manual_seed(0)
    results = []

    def compare(name: str, run: Any, reference: Any, tensors: list[Any]) -> None:
        try:
            got = run(*[one.to(device) for one in tensors]).float().cpu()
            wanted = reference(*[one.float() for one in tensors])
            cosine = float(torch.nn.functional.cosine_similarity(got.flatten(), wanted.flatten(), dim=0))
            results.append({"name": name, "cosine": cosine, "abs_diff": float((got - wanted).abs().max())})
        except Exception as error:
            results.append({"name": name, "error": f"{type(error).__name__}: {str(error).strip()[:300]}"})

    def rms(x: Any, w: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    def swiglu(x: Any) -> Any:
        left, right = x.chunk(2, -1)
        return torch.nn.functional.silu(left) * right

    def rotary(x: Any, cos: Any, sin: Any) -> Any:
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat((-right, left), -1) * sin

    half = torch.float16
    angle = torch.rand(1, 1, 8, 64).repeat(1, 1, 1, 2)
    compare(
        "npu_rms_norm",
        lambda x, w: torch_npu.npu_rms_norm(x, w, epsilon=1e-6)[0],
        rms,
        [torch.randn(4, 256, dtype=half), torch.rand(256, dtype=half) + 0.5],
    )
    compare("npu_swiglu", lambda x: torch_npu.npu_swiglu(x, dim=-1), swiglu, [torch.randn(4, 256, dtype=half)])
    compare(
        "npu_rotary_mul",
        torch_npu.npu_rotary_mul,
        rotary,
        [torch.randn(2, 4, 8, 128, dtype=half), angle.cos().to(half), angle.sin().to(half)],
    )
    return {"results": results}


def graph(device: str) -> dict[str, Any]:
    """A profile of a small run: which kernels the fused call became."""
    import torch
    import torch_npu

    x, w = torch.randn(4, 256, device=device, dtype=torch.float16), torch.ones(256, device=device, dtype=torch.float16)
    torch_npu.npu_rms_norm(x, w)
    torch.npu.synchronize()
    kernels: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        with torch_npu.profiler.profile(
            activities=[torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU],
            on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(folder),
        ):
            torch_npu.npu_rms_norm(x, w)
            torch.npu.synchronize()
        import csv

        for place, _, files in os.walk(folder):
            if "kernel_details.csv" in files:
                with (Path(place) / "kernel_details.csv").open(newline="", encoding="utf-8") as stream:
                    for row in csv.DictReader(stream):
                        kernels.append((row.get("Type") or row.get("OP Type") or row.get("Name") or "").strip())
    return {"kernels": kernels}


def streams(device: str) -> dict[str, Any]:
    """Two chains of matrix products, one after the other and on two streams at once; seconds of each."""
    import torch
    import torch_npu  # noqa: F401  (it gives torch.npu)

    x = torch.randn(256, 256, device=device, dtype=torch.float16)

    def chain() -> None:
        y = x
        for _ in range(64):
            y = y @ x

    def timed(run: Any) -> float:
        torch.npu.synchronize()
        start = time.perf_counter()
        run()
        torch.npu.synchronize()
        return time.perf_counter() - start

    first, second = torch.npu.Stream(), torch.npu.Stream()

    def together() -> None:
        with torch.npu.stream(first):
            chain()
        with torch.npu.stream(second):
            chain()

    def apart() -> None:
        chain()
        chain()

    timed(apart), timed(together)
    return {"apart": min(timed(apart) for _ in range(5)), "together": min(timed(together) for _ in range(5))}


PROBES = {one.__name__: one for one in (versions, torch_alone, framework, operators, graph, streams)}


def main() -> None:
    name = sys.argv[1]
    try:
        answer = PROBES[name](sys.argv[2] if len(sys.argv) > 2 else "npu:0")
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {str(error).strip()[:600]}"}
    sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a broken runtime can hang while it is torn down, after the answer is known


if __name__ == "__main__":
    main()
