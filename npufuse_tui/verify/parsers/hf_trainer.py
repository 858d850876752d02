"""The Trainer of Hugging Face, and LLaMA-Factory: `{'loss': 2.31, 'grad_norm': 1.0, 'epoch': 0.1}`.

Newer versions print the values as strings. The dictionary may stand behind the remains of a progress bar or a prefix
of the logger. It has no step; the lines are counted.
"""

from __future__ import annotations

import re

from npufuse_tui.language import same
from npufuse_tui.verify.reading import Parser, Reading, number

_DICT = re.compile(r"\{'[^{}]{1,4000}\}")
_PAIR = re.compile(r"'([\w/.-]+)':\s*'?([^,'}]+)'?")


def read(line: str) -> Reading | None:
    found = _DICT.search(line)
    if found is None:
        return None
    pairs = dict(_PAIR.findall(found[0]))
    if "loss" not in pairs or not ("learning_rate" in pairs or "epoch" in pairs or "grad_norm" in pairs):
        return None
    step = number(pairs.get("step") or pairs.get("global_step"))
    tokens = pairs.get("train_tokens_per_second") or pairs.get("tokens_per_second") or pairs.get("throughput")
    return Reading(
        int(step) if step is not None else None, number(pairs["loss"]), number(pairs.get("step_time")), number(tokens)
    )


PARSER = Parser("hf_trainer", same("Hugging Face Trainer / LLaMA-Factory"), 16, read)
