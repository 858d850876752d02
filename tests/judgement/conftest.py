"""A small torch_npu in the format of the real one, as a folder and as a wheel."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from npufuse_tui import language

DOCUMENTATION = '''
import torch_npu


def _add_torch_npu_docstr(method, docstr):
    raise RuntimeError("this file must never be run")


_add_torch_npu_docstr(
    "npu_rms_norm",
    """
torch_npu.npu_rms_norm(Tensor self) -> Tensor
an older entry of the same name
"""
)

_add_torch_npu_docstr(
    "npu_rms_norm",
    """
torch_npu.npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-5) -> (Tensor, Tensor)
功能描述
RmsNorm 归一化。

参数说明:
self：Tensor类型。
约束说明
仅支持 float16、bfloat16 和 float32。

示例
>>> import torch_npu
"""
)

_add_torch_npu_docstr(
    "npu_swiglu",
    """
接口原型：
torch_npu.npu_swiglu(Tensor self, int dim=-1) -> (Tensor)

功能描述：
提供swiglu的激活函数。

支持的型号:
Atlas A2 训练系列产品

调用示例:
y = torch_npu.npu_swiglu(x)
"""
)
'''

DECLARATIONS = """\
autograd:
- func: fused_cell(Tensor a) -> Tensor
  impl_ns: op_api
backend: NPU
cpp_namespace: at_npu::native
custom:
- device_check: NoCheck
  exposed: true
  func: npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)
  impl_ns: acl_op, op_api
- func: npu_rms_norm_backward(Tensor dy, Tensor self, Tensor gamma, Tensor rstd) -> (Tensor, Tensor)
- func: npu_swiglu(Tensor self, int dim=-1) -> Tensor
- func: 'npu_folded(Tensor self, *, str? mode="a, b",
    Tensor(a!) out, int[] size=[1, 2]) -> Tensor(a!)'
  impl_ns: op_api
- func: this is no declaration
quant:
- func: dequantize.self(Tensor self) -> Tensor
supported:
- _local_scalar_dense
"""


def write_package(root: Path, version: str = "9.9.9") -> Path:
    package = root / "torch_npu"
    (package / "csrc/aten").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('never import me')\n")
    (package / "version.py").write_text(f"__version__ = '{version}'\n")
    (package / "_op_plugin_docs.py").write_text(DOCUMENTATION, encoding="utf-8")
    (package / "csrc/aten/npu_native_functions_by_codegen.yaml").write_text(DECLARATIONS)
    return package


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package folder."""
    return write_package(tmp_path / "site")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The same as a wheel."""
    package = write_package(tmp_path / "wheel")
    path = tmp_path / "torch_npu-9.9.9-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file():
                archive.write(file, f"torch_npu/{file.relative_to(package)}")
    return path


@pytest.fixture(autouse=True)
def english():
    language.set_language("en")
    yield
    language.set_language("en")
