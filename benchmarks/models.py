"""Whole models with every replacement in them, against the untouched ones.

    python benchmarks/models.py [TYPE ...] [--keep FOLDER]

Copies the installed transformers package, applies every recommended and caution candidate of the folders of the
model types, builds each type from a tiny configuration in float32 and runs it forward and backward: the untouched
package on the CPU, the edited one under the emulator with every gate on. Printed for each type: how often a fused
operator was called, cosine of the logits, relative difference of the loss, cosine of all gradients together; or why
the type does not run. Ends with 1 when a type is wrong. Never a statement about speed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from npufuse_tui.emulator.environment import emulated
from npufuse_tui.errors import NpufuseError
from npufuse_tui.model import Candidate, FileEdit, Verdict
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.scan.scanner import ScanOptions, scan

TYPES = [
    "apertus", "arcee", "bamba", "bert", "biogpt", "bitnet", "bloom", "codegen", "cohere", "cohere2", "ctrl",
    "cwm", "dbrx", "deepseek_v2", "deepseek_v3", "dia", "diffllama", "doge", "dots1", "electra", "ernie",
    "ernie4_5", "ernie4_5_moe", "esm", "exaone4", "falcon", "falcon_h1", "flex_olmo", "fuyu", "gemma", "gemma2",
    "gemma3_text", "gemma3n_text", "git", "glm", "glm4", "glm4_moe", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox",
    "gpt_neox_japanese", "gpt_oss", "gptj", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared",
    "helium", "hunyuan_v1_dense", "hunyuan_v1_moe", "jamba", "jetmoe", "lfm2", "lfm2_moe", "llama", "llama4_text",
    "longcat_flash", "mamba", "mamba2", "minimax", "ministral", "mistral", "mixtral", "modernbert",
    "modernbert-decoder", "moshi", "mpt", "mt5", "nanochat", "nemotron", "olmo", "olmo2", "olmo3", "olmoe", "opt",
    "persimmon", "phi", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next",
    "recurrent_gemma", "roberta", "roformer", "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2", "t5",
    "t5gemma", "umt5", "vaultgemma", "xglm", "xlstm", "youtu", "zamba", "zamba2",
]  # fmt: skip

LIMIT = 0.9999


def package() -> Path:
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise SystemExit("transformers is not installed here: pip install transformers==5.23.0")
    return Path(spec.origin).parent


def edited_copy(source: Path, into: Path, folders: Sequence[str]) -> tuple[Path, list[Candidate], list[str]]:
    """A copy of the package with every offered edit of those folders; the candidates, and what was left out and why."""
    copy = into / "transformers"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    result = scan(copy, ScanOptions(include=tuple(f"models/{folder}/*.py" for folder in folders)))
    offered = [one for one in result.candidates if one.verdict is not Verdict.REFUSED and one.edit is not None]
    # where two rules want the same lines, the recommended one goes first
    offered.sort(key=lambda one: one.verdict is not Verdict.RECOMMENDED)
    chosen: dict[str, list[FileEdit]] = {}
    originals: dict[str, bytes] = {}
    applied: list[Candidate] = []
    left_out: list[str] = []
    for one in offered:
        assert one.edit is not None
        try:
            for edit in one.edit.files:
                data = originals.setdefault(edit.file, (copy / edit.file).read_bytes())
                compose(data, [*chosen.get(edit.file, []), edit])
        except NpufuseError as error:
            left_out.append(f"{one.file}:{one.start_line} {one.rule}: {error}")
            continue
        for edit in one.edit.files:
            chosen.setdefault(edit.file, []).append(edit)
        applied.append(one)
    for name, edits in chosen.items():
        (copy / name).write_bytes(compose(originals[name], edits))
    return copy, applied, left_out


def run_all(types: Sequence[str], device: str, out: Path, environment: dict[str, str]) -> None:
    """Run the types in children; one that dies takes its type with it, and the next goes on with the rest."""
    out.mkdir()
    script = str(Path(__file__).with_name("models_run.py"))
    left = list(types)
    while left:
        done = subprocess.run(
            [sys.executable, script, device, str(out), *left],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        marker = out / "running"
        if not marker.exists():
            if done.returncode and not any(out.iterdir()):
                raise SystemExit(f"the child did not start: {done.stderr.strip().splitlines()[-1:]}")
            return
        died = marker.read_text()
        marker.unlink()
        (out / f"{died}.txt").write_text(f"the process ended with {done.returncode}: {done.stderr.strip()[-200:]}")
        left = left[left.index(died) + 1 :]


COMPARE = """
import json, sys, torch
from pathlib import Path
one, two, types = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
def cosine(a, b):
    a, b = a.double().flatten(), b.double().flatten()
    if torch.equal(a, b):
        return 1.0
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0, eps=0.0))
def all_gradients(kept):
    return torch.cat([kept[name].flatten() for name in sorted(kept) if name.startswith("gradient")])
told = {}
for name in types:
    paths = [folder / f"{name}.pt" for folder in (one, two)]
    if all(path.exists() for path in paths):
        a, b = (torch.load(path, weights_only=True) for path in paths)
        if set(a) != set(b):
            told[name] = {"gone": sorted(set(a) ^ set(b))[:3]}
            continue
        worst = min((cosine(a[key], b[key]), key) for key in a if key.startswith("gradient"))
        told[name] = {"logits": cosine(a["logits"], b["logits"]),
                      "loss": abs(float(a["loss"] - b["loss"])) / max(abs(float(a["loss"])), 1e-12),
                      "gradients": cosine(all_gradients(a), all_gradients(b)), "worst": worst}
print(json.dumps(told))
"""


def compared(one: Path, two: Path, types: Sequence[str]) -> dict[str, dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-c", COMPARE, str(one), str(two), *types], check=True, capture_output=True, text=True
    )
    read: dict[str, dict[str, object]] = json.loads(done.stdout)
    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", metavar="TYPE")
    parser.add_argument("--keep", type=Path, default=None, help="work here and keep what is made")
    options = parser.parse_args()
    source = package()
    types = list(options.types or TYPES)
    folders = sorted({folder_of(one) for one in types if (source / "models" / folder_of(one)).is_dir()})
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        copy, applied, left_out = edited_copy(source, work, folders)
        plain = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        run_all(types, "cpu", work / "untouched", plain)
        fused = emulated({**plain, "PYTHONPATH": str(copy.parent)})
        run_all(types, "npu", work / "edited", fused)
        results = compared(work / "untouched", work / "edited", types)
        edits = Counter(one.file.split("/")[1] for one in applied if "modular_" not in one.file)
        wrong = print_table(types, results, edits, work)
    for line in left_out:
        print(f"left out: {line}")
    ran = len(results)
    print(f"\n{ran} of {len(types)} types ran, {wrong} of all are wrong; emulated, so nothing is said of speed")
    raise SystemExit(1 if wrong else 0)


def folder_of(model_type: str) -> str:
    """The folder of `models/` that holds a type."""
    return model_type.replace("-", "_").removesuffix("_text")


def print_table(types: Sequence[str], results: dict[str, dict[str, object]], edits: Counter[str], work: Path) -> int:
    """One line a type; how many are wrong."""
    wrong = 0
    print(f"{'type':<22}{'edits':>6}  {'logits':>10} {'loss':>9} {'gradients':>10}")
    for name in types:
        count = edits[folder_of(name)]
        one = results.get(name)
        if one is None:
            reasons = [
                f"{what}: {path.read_text()}"
                for what in ("untouched", "edited")
                if (path := work / what / f"{name}.txt").exists()
            ]
            only_edited = len(reasons) == 1 and reasons[0].startswith("edited")
            wrong += only_edited
            print(
                f"{name:<22}{count:>6}  {'FAILS' if only_edited else 'does not run'}: {reasons[0] if reasons else '?'}"
            )
            continue
        if "gone" in one:
            wrong += 1
            print(f"{name:<22}{count:>6}  WRONG: gradients on one side only: {one['gone']}")
            continue
        logits, loss, gradients = (float(str(one[key])) for key in ("logits", "loss", "gradients"))
        bad = not (logits > LIMIT and gradients > LIMIT and loss < 1e-4)
        wrong += bad
        told = f"  WRONG, worst gradient {one['worst']}" if bad else ""
        print(f"{name:<22}{count:>6}  {logits:>10.7f} {loss:>9.1e} {gradients:>10.7f}{told}")
    return wrong


if __name__ == "__main__":
    main()
