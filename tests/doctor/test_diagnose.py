"""The five layers on machines in many states; every child is a real process."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from outputs import A3, BROKEN, INFERENCE

from npufuse_tui import language
from npufuse_tui.doctor import Status, diagnose
from npufuse_tui.doctor.children import run
from npufuse_tui.doctor.diagnosis import LAYERS
from npufuse_tui.doctor.framework import framework
from npufuse_tui.doctor.graph import graph
from npufuse_tui.doctor.operators import operators

SIMULATED = Path(__file__).with_name("simulated_torch_npu.txt").read_text()


def said(layer) -> str:
    return "\n".join(one.en for one in layer.evidence) + f"\nFIX {layer.fix.en if layer.fix else ''}"


def simulate(machine, fault: str = "") -> None:
    machine.package("torch_npu", "2.13.0", SIMULATED)
    machine.cann()
    machine.driver()
    machine.smi()
    machine.environ["FAULT"] = fault


def test_all_five_pass_where_everything_works(machine):
    simulate(machine)
    found = machine.diagnose()
    assert [one.id for one in found.layers] == list(LAYERS)
    assert [one.status for one in found.layers] == [Status.PASSED] * 5, found.to_text()
    assert all(one.fix is None for one in found.layers)
    assert found.usable == {"scan": True, "check": "npu", "verify": "npu"}
    assert "2 x Ascend910B3, Atlas A2" in said(found.layer("driver"))
    assert "firmware 7.5.0.1.129" in said(found.layer("driver"))
    assert "npu_swiglu: cosine" in said(found.layer("operators"))
    assert "npu_rms_norm ran as: RmsNorm" in said(found.layer("graph"))


@pytest.mark.parametrize(
    ("fault", "layer", "evidence"),
    [
        ("round_trip", "framework", "came back from npu:0 changed"),
        ("kernel", "operators", "561103"),
        ("wrong", "operators", "differs"),
        ("swapped", "operators", "npu_swiglu: cosine"),
        ("unfused", "graph", "Square, ReduceMean, Mul"),
    ],
)
def test_what_breaks_fails_in_its_layer(machine, fault, layer, evidence):
    simulate(machine, fault)
    found = {"framework": framework, "operators": operators, "graph": graph}[layer](machine.gather())
    assert found.status is Status.FAILED
    assert evidence in said(found)
    assert found.fix is not None


@pytest.mark.parametrize("fault", ["import", "no_device"])
def test_nothing_passes_that_did_not_run(machine, fault):
    simulate(machine, fault)
    found = machine.diagnose()
    assert found.layer("framework").status is (Status.FAILED if fault == "import" else Status.MISSING)
    for name in ("operators", "graph", "runtime"):
        assert found.layer(name).status is Status.NOT_RUN
        assert "torch reaches no NPU" in said(found.layer(name))
    assert found.usable["check"] == "emulated"


def test_a_library_out_of_reach_is_mended_with_the_script_that_is_there(machine):
    machine.package("torch_npu", "2.13.0", SIMULATED)
    home = machine.cann()
    machine.environ |= {"FAULT": "import", "LD_LIBRARY_PATH": ""}
    found = machine.diagnose()
    assert f"libhccl.so is not on the library path; run: source {home.parent}/set_env.sh" in said(
        found.layer("framework")
    )


def test_libraries_of_another_version_are_told_apart_from_missing_ones(machine):
    machine.small_torch("2.13.0")
    machine.package("torch_npu", "2.13.0", "raise ImportError('libnpu_profiler.so: undefined symbol: aclAppLog')")
    fix = machine.diagnose().layer("framework").fix
    assert "install the CANN that goes with it" in fix.en


def test_an_import_that_hangs_ends_at_its_limit(machine):
    machine.package("torch_npu", "2.13.0", SIMULATED)
    machine.environ["FAULT"] = "hang"
    machine.small_torch("2.13.0")  # the simulated one hangs before it needs torch
    machine.limit = 3.0
    found = machine.diagnose()
    assert found.layer("framework").status is Status.FAILED
    assert "no answer within 3 s" in said(found.layer("framework"))


def test_the_operators_of_an_installed_torch_npu_are_read_from_its_files(machine, tmp_path):
    import subprocess
    import sys

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")], check=True)
    (site,) = (tmp_path / "v").glob("lib/python3*/site-packages")
    package = site / "torch_npu"
    (package / "csrc/aten").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('as far as this')\n")
    (package / "version.py").write_text("__version__ = '9.9.9'\n")
    (package / "csrc/aten/npu_native_functions_by_codegen.yaml").write_text(
        "custom:\n- func: npu_swiglu(Tensor self, int dim=-1) -> Tensor\n"
    )
    machine.small_torch("9.9.9")
    (site / "torch_npu-9.9.9.dist-info").mkdir()
    (site / "torch_npu-9.9.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch_npu\nVersion: 9.9.9\n")
    layer = machine.diagnose(str(tmp_path / "v/bin/python")).layer("operators")
    assert "has 1 of the" in said(layer) and "it lacks" in said(layer) and "npu_rms_norm" in said(layer)


def test_versions_that_do_not_go_together_fail_before_anything_is_imported(machine):
    machine.small_torch("2.7.1")
    machine.package("torch_npu", "2.6.0.post5", "raise SystemExit('imported')")
    found = machine.diagnose().layer("framework")
    assert found.status is Status.FAILED
    assert found.fix.en == "pip install torch_npu==2.7.1"


@pytest.mark.parametrize("version", ["2.7.1", "2.7.1.post11", "2.7.1+cpu"])
def test_post_releases_and_builds_go_with_their_torch(machine, version):
    machine.small_torch("2.7.1")
    machine.package("torch_npu", version, "raise ImportError('as far as this')")
    assert "as far as this" in said(machine.diagnose().layer("framework"))


def test_an_empty_machine_says_what_is_missing_and_what_works(machine):
    machine.small_torch()
    found = machine.diagnose()
    assert [one.status for one in found.layers] == [Status.MISSING] * 5
    assert all(one.fix is not None and one.evidence for one in found.layers)
    assert found.usable == {"scan": True, "check": "emulated", "verify": "emulated"}


def test_without_torch_only_scanning_works(machine, tmp_path):
    import subprocess
    import sys

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v")], check=True)
    found = machine.diagnose(str(tmp_path / "v/bin/python"))
    assert found.layer("framework").status is Status.MISSING
    assert found.usable == {"scan": True, "check": False, "verify": False}


def test_a_torch_that_cannot_be_imported_is_not_called_usable(machine):
    machine.package("torch", "2.7.1", "raise OSError('libtorch_cpu.so: undefined symbol')")
    found = machine.diagnose()
    assert found.layer("framework").status is Status.FAILED
    assert "undefined symbol" in said(found.layer("framework"))
    assert found.usable["check"] is False


def test_a_python_that_is_not_there(machine):
    found = machine.diagnose(str(machine.root / "no/python"))
    assert found.layer("framework").status is Status.FAILED
    assert "--python" in found.layer("framework").fix.en
    assert found.usable["check"] is False


def test_the_emulation_is_not_taken_for_the_library(machine):
    machine.small_torch()
    machine.package("torch_npu", "2.7.1+npufuse.emulated", "raise SystemExit('imported')")
    found = machine.diagnose()
    assert found.layer("framework").status is Status.MISSING
    assert "emulation" in said(found.layer("framework"))
    assert found.usable["check"] == "emulated"


@pytest.mark.parametrize(
    ("output", "status", "evidence"),
    [
        (A3, Status.FAILED, "health Warning"),
        (BROKEN, Status.FAILED, "dcmi module initialize failed"),
        (INFERENCE, Status.NOT_RUN, "310P3"),
        ("", Status.FAILED, "shows no device"),
    ],
    ids=["A3", "broken", "inference", "empty"],
)
def test_what_npu_smi_says(machine, output, status, evidence):
    machine.small_torch()
    machine.smi(output)
    found = machine.diagnose()
    assert found.layer("runtime").status is status
    assert evidence in said(found.layer("runtime"))


def test_an_npu_smi_that_hangs_ends_with_its_children(machine):
    machine.small_torch()
    marker = machine.root / "pid"
    machine.smi(script=f"#!/bin/sh\nsleep 600 &\necho $! > {marker}\ntrap '' TERM\nsleep 600\n")
    machine.limit = 2.0
    found = machine.diagnose()
    assert found.layer("runtime").status is Status.FAILED
    assert "no answer within 2 s" in said(found.layer("runtime"))
    pid = int(marker.read_text())
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # ended; nobody has collected it yet
            break
        os.sched_yield()
    assert not Path(f"/proc/{pid}/stat").exists() or state == "Z"


def test_inference_card_names_what_its_documentation_supports(machine):
    machine.small_torch()
    machine.smi(INFERENCE)
    machine.driver()
    driver = machine.diagnose().layer("driver")
    assert "2 x 310P3, Atlas inference" in said(driver)


def test_json_is_the_contract(machine):
    machine.small_torch()
    found = json.loads(json.dumps(machine.diagnose().to_json()))
    assert found["schema"] == 1
    assert [one["id"] for one in found["layers"]] == ["framework", "operators", "graph", "runtime", "driver"]
    for one in found["layers"]:
        assert set(one) == {"id", "status", "evidence", "fix"}
        assert one["status"] in ("passed", "failed", "missing", "not_run")
    assert found["usable"] == {"scan": True, "check": "emulated", "verify": "emulated"}


def test_text_in_both_languages(machine):
    machine.small_torch()
    machine.smi(A3)
    found = machine.diagnose()
    assert "✗" in found.to_text() and "✗" not in found.to_text(ascii_only=True)
    language.set_language("zh")
    text = found.to_text(columns=60)
    assert "运行时" in text and "健康 Warning" in text


def test_this_machine(tmp_path):
    """Whatever it has: five layers, and nothing green that did not run."""
    found = diagnose(limit=60)
    assert len(found.layers) == 5
    if not Path("/dev/davinci0").exists():
        assert all(one.status is not Status.PASSED for one in found.layers)


def test_children_read_nothing_from_the_terminal():
    assert run(["cat"], 10, {"PATH": "/usr/bin:/bin"}).code == 0


def test_progress_names_every_layer_in_order(machine):
    machine.small_torch()
    heard = []
    found = diagnose(environ=machine.environment, root=machine.root, listen=heard.append)
    assert [one.text.en.split(" (")[0] for one in heard] == [
        "Framework adaptor",
        "Operator library",
        "Graph engine and fusion",
        "Runtime",
        "Driver and device",
    ]
    assert len(found.layers) == 5
