"""What a run of the launch command is called with: real processes, real torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from capture_repo import MODEL, TRAIN, candidates, make

from npufuse_tui.model import Launch
from npufuse_tui.verify.capture import CaptureOptions, capture
from npufuse_tui.verify.capture_records import Captured, CapturedValue

PYTHON = sys.executable
BIN = Path(sys.executable).parent


def run(repo: Path, command: str, **options: object) -> dict[str, Captured]:
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    folder = repo.parent / "captured"
    text, file = MODEL, "model.py"
    if "pkg/model.py" in (found := {path.relative_to(repo).as_posix() for path in repo.rglob("*.py")}):
        file = "pkg/model.py"
    elif "model.py" not in found:
        text, file = (repo / "train.py").read_text(), "train.py"
    before = {path: path.read_bytes() for path in repo.rglob("*.py")}
    given = CaptureOptions(**{"time_limit": 120.0, **options})  # type: ignore[arg-type]
    result = capture(Launch(command), repo, candidates(text, file), folder, environ, given)
    output = (folder / "output.log").read_text(errors="replace")
    assert "Traceback" not in output, output
    assert {path: path.read_bytes() for path in repo.rglob("*.py")} == before
    return result


def value(captured: Captured, name: str, call: int = 0) -> CapturedValue:
    return dict(captured.examples[call].values)[name]


def holds_what_was_called(found: dict[str, Captured], calls: int = 6) -> None:
    norm = found["norm1"]
    assert norm.status == "called", norm.reason
    assert norm.calls == calls and norm.function_calls == calls
    assert norm.distinct_shapes == 2
    assert norm.calls_per_step == 1.0
    assert [value(norm, "x", call).shape for call in (0, 1)] == [(2, 7, 16), (2, 5, 16)]
    assert value(norm, "x").stride == (16, 32, 1)
    assert value(norm, "x").dtype == "float32" and value(norm, "x").device == "cpu"
    assert value(norm, "x").requires_grad is False and value(norm, "weight").requires_grad is True
    assert value(norm, "eps").value == 1e-6
    assert 0.7 < (value(norm, "x").std or 0) < 1.3
    assert norm.examples[0].training is True and norm.examples[0].grad_enabled is True
    assert norm.examples[0].autocast is None
    mlp = found["mlp1"]
    assert value(mlp, "gate").shape == (2, 7, 32) and value(mlp, "up").requires_grad is True
    assert found["unused1"].status == "never called" and found["unused1"].reason.en.startswith("not on the path")
    assert found["branch1"].status == "not reached" and found["branch1"].function_calls == calls


def test_a_script(tmp_path: Path) -> None:
    holds_what_was_called(run(make(tmp_path / "repo"), f"{PYTHON} train.py"))


def test_a_shell_script_that_changes_directory(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo", {"run.sh": "cd sub && python ../train.py\n", "sub/x": ""})
    holds_what_was_called(run(repo, "bash run.sh"))


def test_a_script_that_changes_directory_before_it_imports(tmp_path: Path) -> None:
    late = "import os, sys\nsys.path.insert(0, os.getcwd())\nos.chdir('/')\n" + TRAIN
    holds_what_was_called(run(make(tmp_path / "repo", {"train.py": late}), "python train.py"))


def test_a_module_of_a_package(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo", {"pkg/__init__.py": "", "pkg/model.py": MODEL})
    (repo / "model.py").unlink()
    (repo / "pkg" / "train.py").write_text(TRAIN.replace("from model", "from .model"))
    holds_what_was_called(run(repo, "python -m pkg.train"))


SINGLE = MODEL + "\n\nif True:\n    Here = Model\n" + TRAIN.replace("from model import Model", "")


def test_a_model_in_the_script_itself(tmp_path: Path) -> None:
    checks = (
        "import sys as _sys\nassert __spec__ is None and __package__ is None, (__spec__, __package__)\n"
        "assert __file__ == _sys.path[0] + '/train.py', (__file__, _sys.path[0])\n"
        "assert _sys.argv == ['train.py', '--flag'], _sys.argv\n"
        "assert _sys.modules['__main__'].Model is Model\nimport beside\n"
    )
    repo = make(tmp_path / "repo", {"train.py": SINGLE + "\n" + checks, "beside.py": ""})
    (repo / "model.py").unlink()
    holds_what_was_called(run(repo, "python -W ignore -u train.py --flag"))


def test_the_same_as_a_module(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo", {"train.py": SINGLE})
    (repo / "model.py").unlink()
    holds_what_was_called(run(repo, "python -m train"))


def test_run_by_runpy(tmp_path: Path) -> None:
    starter = "import runpy, sys\nsys.argv = ['train.py']\nrunpy.run_path('train.py', run_name='__main__')\n"
    repo = make(tmp_path / "repo", {"train.py": SINGLE, "start.py": starter})
    (repo / "model.py").unlink()
    holds_what_was_called(run(repo, "python start.py"))


def test_spawned_workers(tmp_path: Path) -> None:
    spawn = (
        "import multiprocessing\nfrom train import main\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=main)\n"
        "    process.start()\n    process.join()\n"
    )
    holds_what_was_called(run(make(tmp_path / "repo", {"spawn.py": spawn}), "python spawn.py"))


def test_a_spawned_worker_of_a_script_that_holds_the_model(tmp_path: Path) -> None:
    spawn = SINGLE.replace(
        "    main()\n",
        "    import multiprocessing\n"
        "    process = multiprocessing.get_context('spawn').Process(target=main)\n"
        "    process.start()\n    process.join()\n    assert process.exitcode == 0\n",
    )
    repo = make(tmp_path / "repo", {"train.py": spawn})
    (repo / "model.py").unlink()
    holds_what_was_called(run(repo, "python train.py"))


def test_forked_data_loaders_do_not_count(tmp_path: Path) -> None:
    loaders = TRAIN.replace(
        "for step in range(steps):\n        x = torch.randn(5 if step % 3 else 7, 2, 16)\n",
        "data = [torch.randn(5 if step % 3 else 7, 2, 16) for step in range(steps)]\n"
        "    for step, x in enumerate(torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)):\n",
    )
    holds_what_was_called(run(make(tmp_path / "repo", {"train.py": loaders}), "python train.py"))


@pytest.mark.slow
def test_torchrun_reports_rank_0(tmp_path: Path) -> None:
    ranks = "import os\nimport torch\nif os.environ['RANK'] == '1':\n    torch.zeros(1)\n" + TRAIN.replace(
        "main()\n", "main(6 if os.environ['RANK'] == '0' else 9)\n"
    ).replace("def main(6 if os.environ['RANK'] == '0' else 9)\n", "def main(steps=6):\n")
    repo = make(tmp_path / "repo", {"train.py": ranks})
    found = run(repo, "torchrun --standalone --nproc_per_node 2 train.py")
    holds_what_was_called(found)
    assert found["norm1"].processes == 2


def test_a_sitecustomize_of_the_user_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.theirs = 42\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    repo = make(tmp_path / "repo", {"train.py": "assert theirs == 42\n" + TRAIN})
    holds_what_was_called(run(repo, "python train.py"))


def test_a_copy_of_the_file_elsewhere_counts(tmp_path: Path) -> None:
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "model.py").write_text(MODEL)
    elsewhere = f"import sys\nsys.path.insert(0, {str(tmp_path / 'installed')!r})\n" + TRAIN
    holds_what_was_called(run(make(tmp_path / "repo", {"train.py": elsewhere}), "python train.py"))


def test_compiled_and_scripted_functions_are_recorded(tmp_path: Path) -> None:
    compiled = TRAIN.replace(
        "model = Model()", "model = Model()\n    model.norm = torch.compile(model.norm, fullgraph=True)"
    )
    compiled = compiled.replace("    model.norm =", "    model.mlp = torch.jit.script(model.mlp)\n    model.norm =")
    holds_what_was_called(run(make(tmp_path / "repo", {"train.py": compiled}), "python train.py"))


def test_autocast_eval_and_half(tmp_path: Path) -> None:
    evaluates = (
        "import torch\nfrom model import Model\nmodel = Model().eval()\n"
        "with torch.no_grad(), torch.autocast('cpu', dtype=torch.bfloat16):\n"
        "    model(torch.randn(3, 2, 16, dtype=torch.bfloat16))\n"
    )
    found = run(make(tmp_path / "repo", {"train.py": evaluates}), "python train.py")
    assert found["norm1"].calls_per_step is None
    call = found["norm1"].examples[0]
    assert (call.training, call.grad_enabled, call.autocast) == (False, False, "bfloat16")
    assert value(found["norm1"], "x").dtype == "bfloat16"


def test_checkpointing_is_no_change_of_shape(tmp_path: Path) -> None:
    """With checkpointing each region runs twice a step, once without gradients."""
    checkpointed = TRAIN.replace("model(x)", "torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True)")
    checkpointed = checkpointed.replace("16)\n", "16, requires_grad=True)\n")
    found = run(
        make(tmp_path / "repo", {"train.py": "import torch.utils.checkpoint\n" + checkpointed}), "python train.py"
    )
    assert found["norm1"].calls == 12 and found["norm1"].calls_per_step == 2.0
    assert found["norm1"].distinct_shapes == 2
    states = {
        (call.grad_enabled, value(found["norm1"], "x", i).requires_grad)
        for i, call in enumerate(found["norm1"].examples)
    }
    assert (True, True) in states and len(found["norm1"].examples) == 4


def test_together_with_the_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from npufuse_tui.emulator.environment import emulated

    for name, text in emulated(os.environ).items():
        monkeypatch.setenv(name, text)
    on_npu = TRAIN.replace("Model()", "Model().npu()").replace("16)\n", "16).npu()\n        assert x.is_npu\n")
    on_npu = on_npu.replace(
        "import torch\n", "import torch\nimport torch_npu\nassert 'emulated' in torch_npu.__version__\n"
    )
    found = run(make(tmp_path / "repo", {"train.py": on_npu}), "python train.py")
    assert found["norm1"].calls == 6 and value(found["norm1"], "x").shape == (2, 7, 16)


def test_inputs_are_kept_on_request_and_masks_always(tmp_path: Path) -> None:
    import torch

    repo = make(tmp_path / "repo")
    found = run(repo, "python train.py")
    assert value(found["norm1"], "x").file is None
    found = run(repo, "python train.py", keep_inputs=True)
    kept = value(found["norm1"], "x")
    assert kept.file is not None and kept.key == "x"
    tensor = torch.load(kept.file, weights_only=True)[kept.key]
    torch.manual_seed(0)
    assert tuple(tensor.shape) == (2, 7, 16)
    masked = MODEL.replace("def forward(self, x, weight):", "def forward(self, x, weight):  # mask")
    assert masked != MODEL


def test_a_run_that_never_ends_is_ended_once_enough_was_seen(tmp_path: Path) -> None:
    endless = TRAIN.replace("for step in range(steps):", "import itertools\n    for step in itertools.count():")
    repo = make(tmp_path / "repo", {"train.py": endless})
    found = run(repo, "python train.py", settle=1.0)
    assert found["norm1"].calls >= 1 and found["unused1"].status == "never called"


def test_a_python_that_ignores_the_environment_is_said(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo", {"train.py": "print(1)\n"})
    found = run(repo, "python -I train.py")
    assert {one.status for one in found.values()} == {"not recorded"}
    assert "-I" in found["norm1"].reason.en


def test_a_command_that_does_not_load_the_file(tmp_path: Path) -> None:
    found = run(make(tmp_path / "repo", {"train.py": "print(1)\n"}), "python train.py")
    assert {one.status for one in found.values()} == {"never called"}


def test_lines_in_tracebacks_stay(tmp_path: Path) -> None:
    raises = MODEL.replace("        return self.weight * hidden", "        1 / 0\n        return self.weight * hidden")
    repo = make(tmp_path / "repo", {"model.py": raises})
    line = next(number for number, text in enumerate(raises.splitlines(), 1) if "1 / 0" in text)
    folder = tmp_path / "captured"
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    found = capture(Launch("python train.py"), repo, candidates(raises), folder, environ)
    output = (folder / "output.log").read_text()
    assert f'model.py", line {line}, in forward' in output and "ZeroDivisionError" in output
    assert found["norm1"].calls == 1
