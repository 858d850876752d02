"""PyTorch Lightning's bar: `Epoch 0:  10%|█  | 5/50 [00:01<00:10, 4.30it/s, v_num=0, train_loss_step=2.30]`."""

from __future__ import annotations

import re

from npufuse_tui.language import same
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number

_BAR = re.compile(r"\bEpoch (\d+)(?:/\d+)?:?\s.*?\b(\d+)/(\d+)\s*[\[ ]", re.S)
_RICH = re.compile(r"\bEpoch (\d+)/\d+\s+\S+\s+(\d+)/(\d+)\s", re.S)
_LOSS = re.compile(rf"\b(?:train[_/])?loss(?:_step)?[=:]\s*({NUMBER})", re.I)


def read(line: str) -> Reading | None:
    bar = _RICH.search(line) or _BAR.search(line)
    loss = _LOSS.search(line) if bar else None
    if bar is None or loss is None or int(bar[2]) == 0:
        return None
    return Reading(int(bar[1]) * int(bar[3]) + int(bar[2]), number(loss[1]))


PARSER = Parser("lightning", same("PyTorch Lightning"), 20, read, evidence=2, redraws=True)
