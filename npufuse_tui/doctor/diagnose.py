"""The five layers of the Ascend stack, each tested, in the order in which a call goes through them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from npufuse_tui.doctor.diagnosis import TITLES, Diagnosis, Layer, Status
from npufuse_tui.doctor.driver import driver_layer
from npufuse_tui.doctor.findings import Findings, gather
from npufuse_tui.doctor.framework import framework
from npufuse_tui.doctor.graph import graph
from npufuse_tui.doctor.operators import operators
from npufuse_tui.doctor.runtime import runtime
from npufuse_tui.events import Listener, Message, ignore


def diagnose(
    python: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    limit: float = 60.0,
    listen: Listener = ignore,
) -> Diagnosis:
    """Test the stack as the interpreter `python` sees it (default: the current one).

    `environ` and `root` stand for the environment and the file system; every child ends within `limit` seconds. A
    layer passes only when all of its tests ran and passed. `listen` hears the name of each layer before it is tested.
    """
    listen(Message(TITLES["framework"]))
    found = gather(python or sys.executable, dict(os.environ if environ is None else environ), root, limit)
    layers = [framework(found)]
    for name, test in (("operators", operators), ("graph", graph), ("runtime", runtime), ("driver", driver_layer)):
        listen(Message(TITLES[name]))
        layers.append(test(found))
    return Diagnosis(tuple(layers), _usable(found, tuple(layers)))


def _usable(found: Findings, layers: tuple[Layer, ...]) -> dict[str, bool | str]:
    runs: bool | str = False
    if found.torch.get("works"):
        status = {one.id: one.status for one in layers}
        on_npu = status["framework"] is Status.PASSED and status["operators"] is Status.PASSED
        runs = "npu" if on_npu else "emulated"
    return {"scan": True, "check": runs, "verify": runs}
