"""DeepSpeed's pipeline engine: `steps: 10 loss: 2.3456 iter time (s): 0.512 samples/sec: 31.25`."""

from __future__ import annotations

import re

from npufuse_tui.language import same
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number, seconds

_LINE = re.compile(rf"\bsteps:\s*(\d+)\s+loss:\s*({NUMBER})\s+iter time \((ms|s)\):\s*({NUMBER})", re.I)


def read(line: str) -> Reading | None:
    found = _LINE.search(line)
    if found is None:
        return None
    return Reading(int(found[1]), number(found[2]), seconds(found[4], found[3]))


PARSER = Parser("deepspeed", same("DeepSpeed"), 12, read)
