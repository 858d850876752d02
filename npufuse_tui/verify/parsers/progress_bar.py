"""A tqdm bar with the loss behind it, as scripts with accelerate have: `3%|▎ | 3/100 [00:02<01:10, loss=2.3]`."""

from __future__ import annotations

import re

from npufuse_tui.language import Text
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number

_BAR = re.compile(r"\|\s*(\d+)/\d+\s*\[[^\]]*?\b(?:[\w/]+_)?loss[=:]\s*'?(" + NUMBER + r")'?[^\]]*\]", re.I)


def read(line: str) -> Reading | None:
    bars = _BAR.findall(line)
    if not bars or bars[-1][0] == "0":
        return None
    step, loss = bars[-1]
    return Reading(int(step), number(loss))


PARSER = Parser(
    "progress_bar", Text("tqdm bar (accelerate)", "tqdm 进度条（accelerate）"), 30, read, evidence=2, redraws=True
)
