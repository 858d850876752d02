"""torchtitan: `step:  3  loss:  8.1234  grad_norm:  1.20 …  tps: 4,321  tflops: 9.1  mfu: 2.9%`."""

from __future__ import annotations

import re

from npufuse_tui.language import same
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number

_LINE = re.compile(rf"\bstep:\s*(\d+)\s+loss:\s*({NUMBER})\s.*?\b(?:tps|tokens_per_second):\s*({NUMBER})", re.I)


def read(line: str) -> Reading | None:
    found = _LINE.search(line)
    return Reading(int(found[1]), number(found[2]), None, number(found[3])) if found else None


PARSER = Parser("torchtitan", same("torchtitan"), 14, read)
