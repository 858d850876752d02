"""Each way of switching, in a repo that is written so: the right gate is chosen, and both of its sides run."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gate_repos import CONFIG, REPOS, Repo, model

from npufuse_tui.emulator.environment import emulated
from npufuse_tui.model import Candidate, FileEdit, GateKind
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.fallback import prove
from npufuse_tui.scan.scanner import ScanOptions, scan
from npufuse_tui.workspace.other_gate import with_gate

RUN = """\
import json, os, sys
import torch
import torch_npu
from torch_npu.record import calls

torch.set_num_threads(1)
x = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
expected = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
for job in json.load(open(sys.argv[1])):
    child = os.fork()  # torch is loaded once, each repo in a process of its own
    if not child:
        os.chdir(job["folder"])
        sys.path.insert(0, job["folder"])
        os.environ.update(job["environment"])
        names = {"on": job["on"]}
        try:
            exec(job["make"], names)
            with torch.no_grad():
                y = names["norm"](x.to("npu"))
            difference = float((y.cpu() - expected).abs().max())
            line = {"name": job["name"], "on": job["on"], "calls": calls["npu_rms_norm"], "difference": difference}
        except BaseException as error:
            line = {"name": job["name"], "on": job["on"], "error": repr(error)}
        print(json.dumps(line), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def laid_out(root: Path, repo: Repo) -> Candidate:
    for name, text in {**repo.files, "model.py": repo.model}.items():
        (root / name).write_text(text)
    [one] = scan(root, ScanOptions(use_cache=False, jobs=1, rules=("rms_norm",))).candidates
    return one


def applied(root: Path, one: Candidate) -> None:
    assert one.edit is not None
    by_file: dict[str, list[FileEdit]] = {}
    for edit in one.edit.files:
        by_file.setdefault(edit.file, []).append(edit)
    for name, edits in by_file.items():
        before = (root / name).read_bytes()
        after = compose(before, edits)
        prove(before, after, edits)
        ast.parse(after)
        (root / name).write_bytes(after)


@pytest.mark.parametrize("repo", REPOS, ids=lambda one: one.name)
def test_the_right_gate_is_chosen(tmp_path: Path, repo: Repo) -> None:
    one = laid_out(tmp_path, repo)
    assert one.gate is not None
    assert one.gate.kind.value == repo.kind
    assert one.gate.expression.removesuffix(" and torch_npu is not None") == repo.asked
    assert one.gate == one.gates[0]
    assert one.gates[-1].kind is GateKind.AVAILABILITY
    assert sum(gate.kind is GateKind.ENVIRONMENT for gate in one.gates) == 1
    assert one.gate.why.en and one.gate.why.zh and "{" not in one.gate.why.en + one.gate.why.zh
    assert one.diff is not None and f"if {one.gate.expression} and x.is_npu" in one.diff


def test_both_sides_of_every_gate_run(tmp_path: Path) -> None:
    jobs = []
    for place, repo in enumerate(REPOS):
        needed = [one for one in ("absl", "omegaconf") if f"from {one} import" in repo.model + repo.make]
        if any(importlib.util.find_spec(one) is None for one in needed):
            continue
        folder = tmp_path / str(place)
        folder.mkdir()
        applied(folder, laid_out(folder, repo))
        for on in (True, False):
            environment = {} if on else repo.off
            jobs.append(
                {"name": repo.name, "on": on, "folder": str(folder), "make": repo.make, "environment": environment}
            )
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    environ = {key: value for key, value in os.environ.items() if key not in ("USE_NPU", "NO_NPU")}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "jobs.json")],
        env=emulated(environ, folder=tmp_path / "emulator"),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(jobs)
    for one in told:
        assert "error" not in one, one
        assert one["calls"] == (1 if one["on"] else 0), one
        assert one["difference"] < 1e-5, one


@pytest.mark.parametrize("repo", REPOS, ids=lambda one: one.name)
def test_every_other_gate_can_be_taken_instead(tmp_path: Path, repo: Repo) -> None:
    one = laid_out(tmp_path, repo)
    sources = {path.name: path.read_bytes() for path in tmp_path.glob("*.py")}
    for gate in one.gates:
        other = with_gate(one, gate, sources)
        assert other.edit is not None and other.gate == gate
        for edit in other.edit.files:
            edited = compose(sources[edit.file], [edit])
            ast.parse(edited)
        main = next(edit for edit in other.edit.files if edit.file == "model.py")
        text = compose(sources["model.py"], [main]).decode()
        assert f"if {gate.expression} and x.is_npu" in text
        assert ("_NPU_FUSED_RMS_NORM = " in text) == (gate.kind is GateKind.ENVIRONMENT)
        assert {edit.file for edit in other.edit.files} == {"model.py", *(edit.file for edit in gate.files)}
        back = with_gate(other, one.gate, sources)
        assert back.edit is not None and one.edit is not None
        for name, source in sources.items():
            wanted = [edit for edit in one.edit.files if edit.file == name]
            assert compose(source, [edit for edit in back.edit.files if edit.file == name]) == compose(source, wanted)


def test_a_switch_that_is_off_is_offered_with_a_warning(tmp_path: Path) -> None:
    one = laid_out(tmp_path, next(repo for repo in REPOS if repo.name == "a switch that is off"))
    [gate] = [gate for gate in one.gates if gate.kind is GateKind.EXISTING]
    assert gate.expression.startswith("self.use_npu") and "off by default" in gate.why.en
    assert "self.use_npu" in [reuse.what for reuse in one.reuse]


def test_fused_blocks_of_the_repo_are_told(tmp_path: Path) -> None:
    files = {
        "fused_ops.py": "import torch\n\n\ndef fused_rms_norm(x, weight):\n    return x\n\n\ndef fused_rope(x):\n    return x\n"
        "\n\nclass LayerFusionSpec:\n    pass\n\n\nclass NpuRMSNorm:\n    pass\n\n\ndef plain_rms_norm(x):\n    return x\n"
    }
    one = laid_out(tmp_path, Repo("", "", "", model(), "", files))
    assert [(reuse.file, reuse.line, reuse.what) for reuse in one.reuse] == [
        ("fused_ops.py", 4, "fused_rms_norm"),
        ("fused_ops.py", 16, "NpuRMSNorm"),
    ]


def test_a_published_configuration_is_not_edited_unasked(tmp_path: Path) -> None:
    config = CONFIG.replace("class Config:", "class Config(PreTrainedConfig):").replace(
        "from dataclasses", "from transformers import PreTrainedConfig\nfrom dataclasses"
    )
    repo = Repo(
        "",
        "",
        "",
        model("from config import Config\n", "config: Config, ", "self.config = config"),
        "",
        {"config.py": config},
    )
    one = laid_out(tmp_path, repo)
    assert one.gate is not None and one.gate.kind is GateKind.ENVIRONMENT
    assert GateKind.ARGUMENT in [gate.kind for gate in one.gates]


def test_fields_that_subclasses_build_on_are_left_alone(tmp_path: Path) -> None:
    config = CONFIG + "\n\n@dataclass\nclass Larger(Config):\n    depth: int = 2\n"
    repo = Repo(
        "",
        "",
        "",
        model("from config import Config\n", "config: Config, ", "self.config = config"),
        "",
        {"config.py": config},
    )
    one = laid_out(tmp_path, repo)
    assert GateKind.ARGUMENT not in [gate.kind for gate in one.gates]


@pytest.mark.parametrize(
    "head",
    [
        "try:\n    import torch_npu\nexcept ImportError:\n    pass\n",
        "import importlib.util\n\nif importlib.util.find_spec('torch_npu'):\n    import torch_npu\n",
        "try:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None\n",
        "import torch_npu\n",
    ],
)
def test_an_import_of_torch_npu_that_may_fail_is_not_relied_on(tmp_path: Path, head: str) -> None:
    one = laid_out(tmp_path, Repo("", "", "", model(head), ""))
    applied(tmp_path, one)
    code = "import torch; from model import Norm; print(Norm(8)(torch.ones(2, 8)).shape[0])" if one.edit else ""
    if head == "import torch_npu\n":
        return  # the file itself cannot do without
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    # x.is_npu is only asked behind the switch, so a machine without torch_npu never gets there
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "2", json.dumps(done.stderr)
