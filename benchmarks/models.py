"""Whole models with every replacement in them, against the untouched ones.

    python benchmarks/models.py [--models a,b,c] [--limit N] [--seconds S] [--work FOLDER] [--json FILE] [--markdown FILE]

Copies the installed transformers package and applies, with npufuse's own engine, every recommended and caution
candidate of the folders of the model types and of the files they share. Each type is built from a tiny configuration in
float32 (eager attention, dropout 0) and runs a training step (logits, loss, every gradient) and inference (the same
batch, left padded, token by token with a cache): the untouched package on the CPU, the edited one on the emulated NPU
with every gate on. Where candidates overlap, the longer block is applied, and in another pass the shorter one; a last
pass applies what is for inference only. Results are kept and taken again while the edits, the emulator and the runs are
the same. Ends with 1 when a type is wrong. Never a statement about speed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npufuse_tui.emulator.environment import emulated
from npufuse_tui.errors import NpufuseError
from npufuse_tui.model import Candidate, FileEdit, Verdict
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.scan.scanner import ScanOptions, scan

TYPES = """
llama qwen2 qwen3 mistral mixtral gemma gemma2 gemma3_text t5 gpt2 bert phi3 olmo2 deepseek_v2 deepseek_v3 qwen2_moe
qwen3_moe mamba2 vit clip whisper bart opt cohere glm granite stablelm starcoder2 albert apertus arcee bamba
beit bigbird_pegasus biogpt bitnet blenderbot bloom camembert codegen cohere2 convbert cwm dbrx deberta-v2 deit dia
diffllama dinov2 distilbert doge dots1 electra ernie ernie4_5 ernie4_5_moe esm exaone4 falcon falcon_h1 falcon_mamba
flex_olmo fnet fsmt gemma3n_text glm4 glm4_moe gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gpt_oss gptj granitemoe
granitemoehybrid granitemoeshared helium hubert hunyuan_v1_dense hunyuan_v1_moe ijepa jamba jetmoe lfm2 lfm2_moe
llama4_text longcat_flash longt5 m2m_100 mamba marian mbart megatron-bert minimax ministral mobilebert modernbert
modernbert-decoder mpt mt5 mvp nanochat nemotron nystromformer olmo olmo3 olmoe pegasus persimmon phi phimoe plbart
qwen2_vl_text qwen3_next recurrent_gemma rembert roberta roformer seed_oss siglip siglip_vision_model smollm3
solar_open splinter squeezebert switch_transformers t5gemma umt5 vaultgemma vit_mae vit_msn wav2vec2 xglm xlm-roberta
xlnet xlstm xmod yolos youtu zamba zamba2
""".split()

SHARED = ("integrations/*.py", "loss/*.py")
"""What every type uses besides its own folder and the files at the top."""

LIMIT = 0.9999
LOSS = 1e-4
HERE = Path(__file__).parent
CHILD = HERE / "models_child.py"


@dataclass(frozen=True, slots=True)
class Pass:
    """One way to choose among the candidates."""

    name: str
    target: str
    longest: bool


PASSES = (
    Pass("longer blocks", "both", True),
    Pass("shorter blocks", "both", False),
    Pass("inference", "inference", True),
)


@dataclass(slots=True)
class Copy:
    """An edited copy of the package: where, what was applied in which folder, and what was left out and why."""

    root: Path
    applied: list[Candidate] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    bytes_of: dict[str, str] = field(default_factory=dict)

    def rules_of(self, folder: str) -> Counter[str]:
        """How many candidates of each rule are in the folder's modeling files."""
        return Counter(
            one.rule for one in self.applied if one.file.startswith(f"models/{folder}/") and "modular_" not in one.file
        )

    def digest(self, folder: str) -> str:
        """What a type of the folder runs: the edited files of the folder and of the shared ones."""
        own = {
            file: found
            for file, found in self.bytes_of.items()
            if "modular_" not in file and (not file.startswith("models/") or file.startswith(f"models/{folder}/"))
        }
        return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def package() -> Path:
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise SystemExit("transformers is not installed here: pip install transformers==5.23.0")
    return Path(spec.origin).parent


def folder_of(model_type: str, package: Path) -> str:
    """The folder of `models/` that holds a type."""
    name = model_type.replace("-", "_")
    for candidate in (name, name.removesuffix("_text"), name.removesuffix("_vision_model")):
        if (package / "models" / candidate).is_dir():
            return candidate
    return name


def edited_copy(source: Path, into: Path, folders: Iterable[str], wanted: Pass) -> Copy:
    """A copy of the package with every offered edit of those folders and of the shared files."""
    copy = Copy(into / "transformers")
    if not copy.root.is_dir():
        shutil.copytree(source, copy.root, ignore=shutil.ignore_patterns("__pycache__"))
    top = (path.name for path in source.glob("*.py") if path.name != "__init__.py")
    include = (*top, *SHARED, *(f"models/{folder}/*.py" for folder in folders))
    result = scan(source, ScanOptions(include=include, target=wanted.target))
    offered = [one for one in result.candidates if one.verdict is not Verdict.REFUSED and one.edit is not None]
    offered.sort(key=lambda one: one.start_line - one.end_line)
    if not wanted.longest:
        offered.reverse()  # of two that take the same lines (SwiGLU and GEGLU on one activation) the other one, too
    chosen: dict[str, list[FileEdit]] = {}
    originals: dict[str, bytes] = {}
    for one in offered:
        assert one.edit is not None
        try:
            for edit in one.edit.files:
                data = originals.setdefault(edit.file, (source / edit.file).read_bytes())
                compose(data, [*chosen.get(edit.file, []), edit])
        except NpufuseError as error:
            copy.left_out.append(f"{one.file}:{one.start_line} {one.rule}: {error}")
            continue
        for edit in one.edit.files:
            chosen.setdefault(edit.file, []).append(edit)
        copy.applied.append(one)
    for name in sorted(path.relative_to(source).as_posix() for path in source.glob("models/*/*.py")):
        if name not in chosen and (copy.root / name).read_bytes() != (source / name).read_bytes():
            shutil.copy2(source / name, copy.root / name)  # edited by an earlier run, and not by this one
    for name, edits in chosen.items():
        data = compose(originals[name], edits)
        (copy.root / name).write_bytes(data)
        copy.bytes_of[name] = hashlib.sha256(data).hexdigest()
    return copy


def run_all(command: Sequence[str], types: Sequence[str], out: Path, environment: dict[str, str], tell: Any) -> None:
    """Run the types in children; one that dies takes its type with it, and the next goes on with the rest."""
    left = [one for one in types if not (out / f"{one}.pt").exists() and not (out / f"{one}.txt").exists()]
    while left:
        (out / "running").unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, str(CHILD), *command, *left], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
        if not (out / "running").exists():
            raise SystemExit(f"the child did not start: {done.stderr.strip()[-600:]}")
        died = (out / "running").read_text()
        tell(died, f"the process ended with {done.returncode}: {' '.join(done.stderr.split())[-300:]}")
        left = left[left.index(died) + 1 :]


def untouched(types: Sequence[str], work: Path, seconds: int, environment: dict[str, str]) -> Path:
    """The folder with what the untouched package gives for each type."""
    folder = work / f"untouched-{_digest_of_runs()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    missing = [one for one in types if not any((folder / f"{one}{end}").exists() for end in (".pt", ".txt"))]

    def died(model_type: str, why: str) -> None:
        (folder / f"{model_type}.txt").write_text(why)

    run_all(["keep", str(folder), str(seconds)], missing, folder, environment, died)
    return folder


def edited(
    types: Sequence[str], copy: Copy, kept: Path, work: Path, seconds: int, environment: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """What the edited package gives for each type that the untouched one runs."""
    log = work / "emulator.jsonl"
    environment = emulated({**environment, "PYTHONPATH": str(copy.root.parent)}, log=log)
    emulator = environment["PYTHONPATH"].split(os.pathsep)[0]
    results: dict[str, dict[str, Any]] = {}
    keys = {
        one: hashlib.sha256(
            f"{one} {copy.digest(folder_of(one, copy.root))} {_digest_of_runs()} {emulator}".encode()
        ).hexdigest()[:24]
        for one in types
    }
    store = work / "results"
    store.mkdir(exist_ok=True)
    missing = [f"{one}:{keys[one]}" for one in types if not (store / f"{keys[one]}.json").exists()]

    def died(named: str, why: str) -> None:
        model_type, key = named.split(":")
        (store / f"{key}.json").write_text(json.dumps({"type": model_type, "error": why, "calls": {}}))

    run_all(["compare", str(kept), str(store), str(seconds)], missing, store, environment, died)
    for one in types:
        results[one] = json.loads((store / f"{keys[one]}.json").read_text())
    return results


def _digest_of_runs() -> str:
    digest = hashlib.sha256()
    for path in (CHILD, HERE / "models_tiny.py"):
        digest.update(path.read_bytes())
    digest.update(f"{importlib.metadata.version('torch')} {importlib.metadata.version('transformers')}".encode())
    return digest.hexdigest()


def faults(result: dict[str, Any]) -> list[str]:
    """Why a result is wrong; nothing where it is right."""
    if "error" in result:
        return [f"fails where the untouched runs: {result['error']} {result.get('where', '')}"]
    found = [f"logits {result['logits']:.6f}"] if not result["logits"] > LIMIT else []
    if not result["loss"] <= LOSS:
        found.append(f"loss differs by {result['loss']:.1e}")
    if not result["gradient"] > LIMIT:
        found.append(f"gradient of {result['worst']} {result['gradient']:.6f}")
    for name, value in result["inference"].items():
        if not (isinstance(value, float) and value > LIMIT):
            found.append(f"{name}: {value}")
    return found


def measure(types: Sequence[str], work: Path, seconds: int, passes: Sequence[Pass] = PASSES) -> list[dict[str, Any]]:
    """One row for each type: what was applied, called and found in each pass, or why it does not run."""
    source = package()
    folders = sorted({folder_of(one, source) for one in types})
    plain = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    kept = untouched(types, work, seconds, plain)
    rows = []
    for one in types:
        row: dict[str, Any] = {"type": one, "passes": {}}
        if not (kept / f"{one}.pt").exists():
            row["not_run"] = (kept / f"{one}.txt").read_text()
        rows.append(row)
    seen: set[tuple[str, str]] = set()
    for wanted in passes:
        copy = edited_copy(source, work / wanted.name.replace(" ", "-"), folders, wanted)
        digests = {one: copy.digest(folder_of(one, source)) for one in types}
        ours = [row["type"] for row in rows if "not_run" not in row and (row["type"], digests[row["type"]]) not in seen]
        seen |= {(one, digests[one]) for one in ours}
        results = edited(ours, copy, kept, work, seconds, plain)
        for row in rows:
            if row["type"] in results:
                result = results[row["type"]]
                rules = dict(sorted(copy.rules_of(folder_of(row["type"], source)).items()))
                row["passes"][wanted.name] = {"applied": rules, **result, "faults": faults(result)}
        for line in copy.left_out:
            print(f"left out in the pass “{wanted.name}”: {line}", file=sys.stderr)
    return rows


def verdict(row: dict[str, Any]) -> str:
    """In a few words."""
    if "not_run" in row:
        return f"does not run untouched: {row['not_run']}"
    wrong = [f"{name}: {fault}" for name, one in row["passes"].items() for fault in one["faults"]]
    if wrong:
        return "WRONG: " + "; ".join(wrong)
    if not any(one["applied"] for one in row["passes"].values()):
        return "equal; nothing is offered in its files"
    if not any(one["calls"] for one in row["passes"].values()):
        return "equal, but no fused operator was called: its guards are closed for this configuration"
    return "equal"


HEADS = ("type", "applied", "calls of fused operators", "worst logits", "worst gradient", "loss difference", "verdict")


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """The row of the table; numbers are the worst of all passes."""
    passes = list(row["passes"].values())
    ran = [one for one in passes if "error" not in one]
    applied, calls = Counter[str](), Counter[str]()
    for one in passes:
        applied |= Counter(one["applied"])
        calls |= Counter(one["calls"])
    logits = [one["logits"] for one in ran]
    logits += [value for one in ran for value in one["inference"].values() if isinstance(value, float)]
    return (
        row["type"],
        ", ".join(f"{count} {rule}" for rule, count in sorted(applied.items())) or "–",
        ", ".join(f"{count} {name.removeprefix('npu_')}" for name, count in sorted(calls.items())) or "–",
        f"{min(logits):.7f}" if logits else "–",
        f"{min(one['gradient'] for one in ran):.7f}" if ran else "–",
        f"{max(one['loss'] for one in ran):.1e}" if ran else "–",
        verdict(row),
    )


def summary(rows: Sequence[dict[str, Any]]) -> str:
    ran = [row for row in rows if "not_run" not in row]
    wrong = sum(any(one["faults"] for one in row["passes"].values()) for row in ran)
    fused = sum(any(one["calls"] for one in row["passes"].values()) for row in ran)
    return (
        f"{len(ran)} of {len(rows)} model types run; in {fused} of them fused operators were called; {wrong} are wrong. "
        f"torch {importlib.metadata.version('torch')}, transformers {importlib.metadata.version('transformers')}, "
        "float32, emulated NPU: nothing is said of speed."
    )


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(one.replace("|", "\\|") for one in cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    from platformdirs import user_cache_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="", help="model types, with commas between them; else a list of its own")
    parser.add_argument("--limit", type=int, default=None, help="the first so many")
    parser.add_argument("--seconds", type=int, default=120, help="time limit of one run of one type")
    parser.add_argument("--work", type=Path, default=None, help="where copies and results are kept, else the cache")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--markdown", type=Path, default=None)
    options = parser.parse_args()
    types = [one for one in options.models.split(",") if one] or TYPES
    work = (options.work or user_cache_path("npufuse") / "benchmarks" / "models").resolve()
    rows = measure(types[: options.limit], work, options.seconds)
    for row in rows:
        print("  ".join(cells(row)))
    print(f"\n{summary(rows)}")
    if options.json:
        options.json.write_text(json.dumps({"summary": summary(rows), "rows": rows}, indent=1))
    if options.markdown:
        options.markdown.write_text(markdown(rows))
    raise SystemExit(any(one["faults"] for row in rows for one in row["passes"].values()))


if __name__ == "__main__":
    main()
