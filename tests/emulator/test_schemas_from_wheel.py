"""The tool that reads a version's operators out of its wheel."""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
from pathlib import Path

import pytest
import real_library

from npufuse_tui import schemas

TOOL = Path(__file__).parents[2] / "tools" / "schemas_from_wheel.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    spec = importlib.util.spec_from_file_location("schemas_from_wheel", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "schemas_from_wheel", module)
    spec.loader.exec_module(module)
    return module


TEXTS = [
    "npu_new_one(Tensor input, *, float eps=1e-6, str layout='BSND') -> (Tensor, Tensor)",
    "npu::npu_rms_norm(Tensor input, Tensor gamma, float epsilon=1e-6) -> (Tensor, Tensor)",
    "npu_listed.List(Tensor[] x, int[2] range=[0, 1]) -> Tensor[]",
    "no schema (at all) -> really",
    "printf(%s) -> %d",
]


def a_wheel(path: Path, texts: list[str] = TEXTS, nodes: bytes = b"NpuNewOneBackward0") -> Path:
    data = b"\x7fELF\0" + b"\0".join(text.encode() for text in texts) + b"\0" + nodes + b"\0"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("torch_npu/lib/libtorch_npu.so", data)
    return path


def test_a_wheel_is_read(tool, tmp_path: Path) -> None:
    wheel = a_wheel(tmp_path / "torch_npu-9.9.0.post1-cp311-cp311-manylinux_2_28_x86_64.whl")
    (tmp_path / "2.13.0.json").write_text(json.dumps(schemas.raw("2.13.0")))
    assert tool.main([str(wheel), "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "9.9.0.post1.json").read_text())
    assert found == {
        "npu_listed": {
            "List": {
                "schema": "npu_listed.List(Tensor[] x, int[2] range=[0, 1]) -> Tensor[]",
                "autograd_kind": "torch_default_fallback",
            }
        },
        "npu_new_one": {
            "default": {
                "schema": 'npu_new_one(Tensor input, *, float eps=1e-06, str layout="BSND") -> (Tensor, Tensor)',
                "autograd_kind": "formula",
            }
        },
        "npu_rms_norm": {"default": schemas.raw("2.13.0")["npu_rms_norm"]["default"]},
    }


def test_a_version_that_is_the_same_is_said_to_be(tool, tmp_path: Path) -> None:
    first = a_wheel(tmp_path / "torch_npu-9.8.0-cp311-x.whl")
    second = a_wheel(tmp_path / "torch_npu-9.9.0-cp311-x.whl", nodes=b"other bytes, NpuNewOneBackward0")
    for wheel in (first, second):
        tool.main([str(wheel), "--output", str(tmp_path)])
    assert json.loads((tmp_path / "9.9.0.json").read_text()) == {"same_as": "9.8.0"}


def test_what_is_no_library(tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = tmp_path / "library.so"
    nothing.write_bytes(b"\0nothing\0")
    with pytest.raises(SystemExit):
        tool.main([str(nothing), "--output", str(tmp_path)])
    assert "does not say its version" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tool.main([str(nothing), "--version", "9.9.0", "--output", str(tmp_path)])
    assert "no operator is registered" in capsys.readouterr().err


@pytest.mark.real_torch_npu
def test_the_real_library_says_what_is_recorded(tool) -> None:
    try:
        real_library.environment()
    except real_library.Unavailable as reason:
        pytest.skip(str(reason))
    path = next(real_library.folder().glob("lib/python*/site-packages/torch_npu/lib/libtorch_npu.so"))
    found = tool.schemas(path.read_bytes(), tool.recorded_kinds(schemas.folder()))
    wanted = schemas.raw(real_library.VERSION)
    assert set(found) <= set(wanted)
    # Registered without a text; none is an operator on tensors that a rule could name.
    assert set(wanted) - set(found) <= {
        "print_npugraph_tensor",
        "save_npugraph_tensor",
        "set_op_timeout_ms",
        "super_kernel_scope_begin",
        "super_kernel_scope_end",
    }
    for name, overloads in found.items():
        assert overloads == wanted[name], name
