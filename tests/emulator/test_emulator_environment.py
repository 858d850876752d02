"""The environment of a child that sees the emulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from npufuse_tui import schemas
from npufuse_tui.emulator.environment import emulated, lay_out
from npufuse_tui.errors import MachineLacks, WrongInput


def child(code: str, environment: dict[str, str], *flags: str) -> str:
    result = subprocess.run([sys.executable, *flags, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "emulator"


def test_the_emulator_is_what_is_imported(folder: Path) -> None:
    code = """
import torch_npu, importlib.util, importlib.metadata
print(torch_npu.__version__, torch_npu.backend, torch_npu.__file__)
print(importlib.util.find_spec("torch_npu").origin, importlib.metadata.version("torch_npu"))
"""
    out = child(code, emulated(os.environ, version="2.14.0", folder=folder)).split()
    assert out[0] == out[4] == "2.14.0+npufuse.emulated" and out[1] == "emulated"
    assert Path(out[2]).is_relative_to(folder) and Path(out[3]).is_relative_to(folder)


def test_importing_torch_alone_is_enough(folder: Path) -> None:
    code = "import torch; print(torch.npu.is_available(), torch.ones(1, device='npu').is_npu)"
    assert child(code, emulated(os.environ, folder=folder)) == "True True"


def test_a_child_that_needs_no_torch_does_not_get_it(folder: Path) -> None:
    code = "import sys, json; print([name for name in sys.modules if name.startswith(('torch', 'npufuse'))])"
    assert child(code, emulated(os.environ, folder=folder)) == "[]"


def test_nothing_of_npufuse_is_needed_or_seen(folder: Path, tmp_path: Path) -> None:
    """What is put on the path is torch_npu, its schemas and its metadata; and it imports torch and the library only."""
    environment = emulated({}, version="2.13.0", folder=folder)
    path = Path(environment["PYTHONPATH"])
    assert {entry.name for entry in path.iterdir()} == {
        "torch_npu",
        "schemas",
        "torch_npu-2.13.0+npufuse.emulated.dist-info",
    }
    source = "\n".join(file.read_text() for file in path.rglob("*.py"))
    assert "npufuse_tui" not in source
    code = """
import sys, torch
before = set(sys.modules)
import torch_npu
new = {name.partition(".")[0] for name in set(sys.modules) - before} - {"torch", "torch_npu"}
print(sorted(new - set(sys.stdlib_module_names)))
"""
    environment = emulated(os.environ, folder=folder) | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert child(code, environment) == "[]"


def test_gates_of_libraries_open(folder: Path) -> None:
    code = """
from transformers.utils import is_torch_npu_available
from accelerate.utils import is_npu_available
print(is_torch_npu_available(), is_torch_npu_available(check_device=True), is_npu_available(), is_npu_available(True))
from accelerate import PartialState
print(PartialState().device.type)
"""
    assert child(code, emulated(os.environ, folder=folder)).splitlines() == ["True True True True", "npu"]


def test_the_users_own_sitecustomize_still_runs(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.users_own = 7\n")
    environment = emulated({**os.environ, "PYTHONPATH": str(own)}, folder=folder)
    assert child("import sys, torch_npu; print(sys.users_own)", environment) == "7"


def test_it_hides_an_installed_torch_npu_and_takes_its_version(folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "torch_npu").mkdir(parents=True)
    (site / "torch_npu" / "__init__.py").write_text("raise ImportError('libhccl.so: cannot open shared object file')\n")
    (site / "torch_npu-2.6.0.dist-info").mkdir()
    (site / "torch_npu-2.6.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch_npu\nVersion: 2.6.0\n"
    )
    (site / "torch_npu-2.6.0.dist-info" / "entry_points.txt").write_text(
        "[torch.backends]\ntorch_npu = torch_npu:_autoload\n"
    )
    environment = emulated({**os.environ, "PYTHONPATH": str(site)}, folder=folder)
    assert child("import torch, torch_npu; print(torch_npu.__version__)", environment) == "2.6.0+npufuse.emulated"
    given = emulated({**os.environ, "PYTHONPATH": str(site)}, version="2.14.0", folder=folder)
    assert child("import torch, torch_npu; print(torch_npu.__version__)", given) == "2.14.0+npufuse.emulated"


def test_autoload_switched_off_is_switched_on(folder: Path) -> None:
    environment = emulated({**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, folder=folder)
    code = "import torch, os; print(torch.npu.is_available(), os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'])"
    assert child(code, environment) == "True 1"


def test_an_emulated_process_may_start_another(folder: Path) -> None:
    outer = emulated(os.environ, version="2.14.0", folder=folder)
    inner = emulated(outer, version="2.7.1", folder=folder)
    assert inner["PYTHONPATH"].split(os.pathsep)[0].endswith("2.7.1")
    assert sum(str(folder) in entry for entry in inner["PYTHONPATH"].split(os.pathsep)) == 1
    version = "import torch_npu; print(torch_npu.__version__)"
    code = f"import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', {version!r}], text=True))"
    assert child(code, inner) == "2.7.1+npufuse.emulated"


def test_the_callers_environment_is_not_changed(folder: Path) -> None:
    given = {"PYTHONPATH": "/somewhere", "NPUFUSE_EMULATED_LOG": "/old", "OTHER": "1"}
    before = dict(given)
    found = emulated(given, folder=folder)
    assert given == before and found["OTHER"] == "1" and "NPUFUSE_EMULATED_LOG" not in found
    assert found["PYTHONPATH"].split(os.pathsep)[1] == "/somewhere"


def test_the_log_says_what_was_emulated(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    code = "import torch, torch_npu\nfor _ in range(3): torch_npu.npu_swiglu(torch.ones(2, 4))"
    child(code, emulated(os.environ, version="2.13.0", log=log, folder=folder))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["backend"] == "emulated" for line in lines)
    assert lines[0]["event"] == "loaded" and lines[0]["torch_npu"] == "2.13.0+npufuse.emulated" and lines[0]["strict"]
    assert lines[1]["operator"] == "npu_swiglu"
    assert lines[-1]["calls"] == {"npu_swiglu": 3}


def test_a_log_that_cannot_be_written_stops_nothing(folder: Path, tmp_path: Path) -> None:
    environment = emulated(os.environ, log=tmp_path / "missing" / "log", folder=folder)
    assert child("import torch, torch_npu; print(torch_npu.npu_swiglu(torch.ones(2, 4)).shape)", environment)


ROTATE = "torch_npu.npu_rotary_mul(x, x, x, 'half', rotate=None)"
SINK = "torch_npu.npu_fusion_attention(x, x, x, 1, 'BSND', sink=None)"
NO_GROUP_TYPE = "torch_npu.npu_grouped_matmul([x[0, 0]], [x[0, 0].t()])"
CALLS = {  # call → the versions that do not take it
    "torch_npu.npu_rms_norm(x, x[0, 0, 0], epsilon=1e-6)": (),
    "torch_npu.npu_rms_norm(x, x[0, 0, 0], eps=1e-6)": schemas.versions(),
    "torch_npu.npu_rotary_mul(x, x, x, rotary_matrix=None)": schemas.versions(),
    ROTATE: ("2.1.0.post17", "2.4.0.post4", "2.6.0.post5", "2.7.1"),
    SINK: ("2.1.0.post17", "2.4.0.post4", "2.7.1"),
    "torch_npu.npu_fusion_attention_v3": ("2.1.0.post17", "2.4.0.post4", "2.6.0.post5", "2.7.1"),
    NO_GROUP_TYPE: tuple(version for version in schemas.versions() if version != "2.4.0.post4"),
}


@pytest.mark.parametrize("version", schemas.versions())
def test_each_version_has_its_operators_and_takes_its_arguments(folder: Path, version: str) -> None:
    code = f"""
import torch, torch_npu
x = torch.cos(torch.ones(1, 1, 1, 8))
for call in {list(CALLS)!r}:
    try:
        eval(call)
        print("taken")
    except (RuntimeError, AttributeError):
        print("refused")
print(len(torch_npu._operators), sum(torch_npu._operators.values()))
"""
    *taken, counts = child(code, emulated(os.environ, version=version, folder=folder)).splitlines()
    assert dict(zip(CALLS, taken, strict=True)) == {
        call: "refused" if version in versions else "taken" for call, versions in CALLS.items()
    }
    registered, emulated_here = map(int, counts.split())
    assert registered == sum(len(overloads) for overloads in schemas.operators(version).values())
    assert emulated_here > 25


@pytest.mark.parametrize(
    "version", ["latest", "abc", "2", "../../etc", "2.6.0/../../x", "2.6.0 ; rm", "２.６.０", "2.6.0-x"]
)
def test_versions_that_are_none(folder: Path, version: str) -> None:
    with pytest.raises(WrongInput, match="is not a version of torch_npu"):
        emulated(os.environ, version=version, folder=folder)
    assert not folder.exists()


def test_a_version_as_the_emulator_tells_it(folder: Path) -> None:
    found = emulated(os.environ, version="2.13.0+npufuse.emulated", folder=folder)
    assert found["NPUFUSE_EMULATED_TORCH_NPU"] == "2.13.0"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineLacks, match=r"cannot be laid out in .*XDG_CACHE_HOME"):
        emulated(os.environ, folder=tmp_path / "file" / "emulator")


def test_an_empty_entry_of_the_path_is_the_current_folder(folder: Path) -> None:
    found = emulated({"PYTHONPATH": "/a::/b"}, folder=folder)
    assert found["PYTHONPATH"].split(os.pathsep)[1:] == ["/a", "", "/b"]
    assert os.pathsep not in emulated({"PYTHONPATH": ""}, folder=folder)["PYTHONPATH"]


def test_it_is_laid_out_once(folder: Path) -> None:
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(lay_out("2.14.0", folder))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and [entry.name for entry in folder.iterdir()] == [found[0].name]
    assert lay_out("2.13.0", folder) != found[0]
