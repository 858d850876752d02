"""Trains the language model on data/text.txt, character by character: python train.py --steps 60"""

import argparse
import importlib.util
import time
from pathlib import Path

import torch

from model.language_model import LanguageModel

if importlib.util.find_spec("torch_npu"):
    import torch_npu  # noqa: F401

    DEVICE = "npu:0"
else:
    DEVICE = "cpu"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    text = (Path(__file__).parent / "data" / "text.txt").read_text(encoding="utf-8")
    letters = sorted(set(text))
    number = {letter: index for index, letter in enumerate(letters)}
    data = torch.tensor([number[letter] for letter in text])

    model = LanguageModel(len(letters), context=args.context).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    generator = torch.Generator().manual_seed(0)
    for step in range(args.steps):
        began = time.perf_counter()
        starts = torch.randint(len(data) - args.context - 1, (args.batch,), generator=generator)
        tokens = torch.stack([data[start : start + args.context] for start in starts]).to(DEVICE)
        targets = torch.stack([data[start + 1 : start + args.context + 1] for start in starts]).to(DEVICE)
        _, loss = model(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f} time {time.perf_counter() - began:.4f}", flush=True)


if __name__ == "__main__":
    main()
