"""A repo with the Qwen3 model files of the installed transformers and a training script, as a person would have it."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

TEXT = """The mill stood where two streams met, and the wheel turned whether or not there was corn. The miller kept a ledger of
every sack, who brought it and what was owed, and read it aloud on winter evenings. When the upper stream froze, the wheel
went at half its pace; when the thaw came, it groaned and threw water over the path. Children measured the height of the
flood with notches in the door, and the oldest notch was above the lintel. Nobody in the village remembered that year, but
the ledger did: nine sacks of rye, two of barley, one of oats, all paid for in eels.
"""

TRAIN = '''"""Trains a tiny Qwen3 on text.txt, letter by letter, on the CPU or, where there is one, an NPU."""

import argparse
import importlib.util
import time
from pathlib import Path

import torch
from qwen3.configuration_qwen3 import Qwen3Config
from qwen3.modeling_qwen3 import Qwen3ForCausalLM

DEVICE = "npu" if importlib.util.find_spec("torch_npu") else "cpu"

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
arguments = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
text = Path(__file__).with_name("text.txt").read_text()
letters = sorted(set(text))
tokens = torch.tensor([letters.index(one) for one in text])
config = Qwen3Config(
    vocab_size=len(letters),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=64,
    attn_implementation="eager",
)
model = Qwen3ForCausalLM(config).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
generator = torch.Generator().manual_seed(0)
for step in range(arguments.steps):
    began = time.perf_counter()
    starts = torch.randint(len(tokens) - 33, (4,), generator=generator)
    batch = torch.stack([tokens[start : start + 33] for start in starts]).to(DEVICE)
    loss = model(input_ids=batch, labels=batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f} time {time.perf_counter() - began:.4f}", flush=True)
'''


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def make(folder: Path) -> Path:
    """The repo at `folder`, with one commit. The files of transformers are verbatim but for their relative imports."""
    found = importlib.util.find_spec("transformers")
    assert found is not None and found.origin is not None
    source = Path(found.origin).parent / "models" / "qwen3"
    package = folder / "qwen3"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in ("configuration_qwen3.py", "modeling_qwen3.py"):
        (package / name).write_text((source / name).read_text().replace("from ...", "from transformers."))
    (folder / "train.py").write_text(TRAIN)
    (folder / "text.txt").write_text(TEXT * 4)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A Person")
    git(folder, "config", "user.email", "person@example.com")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "A tiny Qwen3")
    return folder


def seen_by_person(folder: Path) -> dict[str, object]:
    """All that must be as before: HEAD, the branch it is on, the index, the stash, the status, every byte of every file."""
    return {
        "head": git(folder, "rev-parse", "HEAD"),
        "branch": git(folder, "symbolic-ref", "HEAD"),
        "index": git(folder, "ls-files", "--stage"),
        "stash": git(folder, "stash", "list"),
        "status": git(folder, "status", "--porcelain", "--ignored"),
        "files": {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(folder).parts
        },
    }
