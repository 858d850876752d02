"""Which Python is the model's, and what it has."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from npufuse_tui.errors import MachineLacks, WrongInput
from npufuse_tui.model import Backend, Launch
from npufuse_tui.proof.check import ProofOptions, backend_of, check
from npufuse_tui.proof.interpreter import find_python, probe

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of its own, without torch."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_probe_sees_torch_without_importing_it() -> None:
    found = probe(PYTHON)
    assert found.torch is not None and found.torch[0].isdigit()
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.npu is False and found.why_no_npu is not None
    assert (
        "torch"
        not in subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys, npufuse_tui.proof.interpreter; print('torch' in sys.modules and 'torch')",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def test_the_second_probe_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    first = probe(PYTHON)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("asked again"))
    assert probe(PYTHON) is first


def test_a_python_without_torch_is_one_clear_sentence(bare: Path) -> None:
    from hand_plans import RIGHT, candidate

    assert probe(bare).torch is None
    with pytest.raises(MachineLacks) as raised:
        check([candidate(RIGHT["norm"])], ProofOptions(python=bare, backend="emulated"))
    assert "has no torch" in raised.value.text.en and "--python" in raised.value.text.en
    assert "torch" in raised.value.text.zh and str(bare) in raised.value.text.zh


def test_what_is_no_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="no Python interpreter at"):
        find_python(str(tmp_path / "nowhere"), None, tmp_path)
    with pytest.raises(WrongInput, match="cannot be run"):
        probe(executable(tmp_path / "fake", "#!/bin/sh\necho hello\n"))
    with pytest.raises(WrongInput, match="cannot be run"):
        probe(tmp_path / "gone")


def test_a_python_that_does_not_answer(tmp_path: Path) -> None:
    sleeps = executable(tmp_path / "sleeps", "#!/bin/sh\nexec sleep 600\n")
    with pytest.raises(MachineLacks, match="did not answer"):
        probe(sleeps, time_limit=0.5)


def test_torch_npu_without_its_libraries_is_seen_and_switched_off(bare: Path) -> None:
    packages = next((bare.parent.parent / "lib").glob("python3*")) / "site-packages"
    for name, text in {
        "torch": "import os\n__version__ = '2.6.0'\nif os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD') != '0':\n"
        "    raise RuntimeError('Failed to load the backend extension: torch_npu')\n",
        "torch_npu": "raise ImportError('libhccl.so: cannot open shared object file')\n",
    }.items():
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(text)
        info = packages / f"{name}-2.6.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.6.0\n")
    os.utime(packages)
    found = probe(bare)
    assert found.torch == "2.6.0" and found.torch_npu == "2.6.0" and not found.npu
    assert found.why_no_npu is not None and "libhccl.so" in found.why_no_npu.en
    assert dict(found.environment) == {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert backend_of("auto", found) is Backend.EMULATED
    with pytest.raises(MachineLacks, match="libhccl"):
        backend_of("npu", found)


def test_torch_that_does_not_load_is_one_clear_sentence(tmp_path: Path) -> None:
    from hand_plans import RIGHT, candidate

    folder = tmp_path / "env"
    venv.create(folder, with_pip=False)
    packages = next((folder / "lib").glob("python3*")) / "site-packages"
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so is broken')")
    (packages / "torch-2.6.0.dist-info").mkdir()
    (packages / "torch-2.6.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\n")
    with pytest.raises(MachineLacks, match=r"libtorch_cpu.so is broken.*--python"):
        check([candidate(RIGHT["norm"])], ProofOptions(python=folder / "bin" / "python", backend="emulated"))


def launch(command: str, **environment: str) -> Launch:
    return Launch(command, environment=tuple(environment.items()))


def test_the_interpreter_of_the_launch_command(bare: Path, tmp_path: Path) -> None:
    folder = bare.parent
    script = executable(folder / "torchrun", f"#!{bare}\nprint(1)\n")
    long_path = executable(folder / "accelerate", f"#!/bin/sh\n'''exec' \"{bare}\" \"$0\" \"$@\"\n' '''\n")
    executable(tmp_path / "run.sh", f"# python of nowhere\nset -e\nexport A=1\n{bare} train.py \\\n  --steps 3\n")
    (tmp_path / "inner.sh").write_text("bash run.sh\n")
    (tmp_path / "env").symlink_to(folder.parent)
    commands = [
        f"{bare} train.py",
        f"CUDA_VISIBLE_DEVICES=0 A=b nohup {bare} -u train.py --lr 1 > log 2>&1 &",
        f"cd sub && {script} --nproc_per_node 2 train.py",
        f"{long_path} launch train.py",
        "bash run.sh",
        "sh -x inner.sh",
        "./run.sh --flag",
        f"bash -c '{bare} train.py'",
        "source env/bin/activate && python train.py",
        "env/bin/python train.py",
    ]
    for command in commands:
        found = find_python(None, launch(command), tmp_path)
        assert found.resolve() == bare.resolve() and found.parent.resolve() == folder.resolve(), command
    on_path = find_python(None, launch("python train.py", PATH=f"{folder}:/usr/bin"), tmp_path)
    assert on_path == folder / "python"


def test_order_of_preference(bare: Path, tmp_path: Path) -> None:
    assert find_python(str(bare), launch(f"{PYTHON} train.py"), tmp_path) == bare
    assert find_python(str(bare.parent.parent), None, tmp_path) == bare  # an environment's folder
    assert find_python(None, Launch("x", python=str(bare)), tmp_path) == bare
    (tmp_path / ".venv").symlink_to(bare.parent.parent)
    assert find_python(None, None, tmp_path) == tmp_path / ".venv" / "bin" / "python"
    (tmp_path / ".venv").unlink()
    assert find_python(None, None, tmp_path) == PYTHON  # has torch
    assert find_python(None, launch("make train"), tmp_path) == PYTHON
