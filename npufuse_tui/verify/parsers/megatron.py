"""Megatron-LM and MindSpeed: ` iteration 3/ 500 | elapsed time per iteration (ms): 812.4 | lm loss: 1.05E+01 | …`."""

from __future__ import annotations

import re

from npufuse_tui.language import same
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number, seconds

_STEP = re.compile(r"\biteration\s+(\d+)\s*/\s*\d+\s*\|")
_LOSS = re.compile(rf"\|\s*(?:lm|total|mtp_1|loss)?\s*loss\s*:\s*({NUMBER})", re.I)
_TIME = re.compile(rf"elapsed time per iteration \((ms|s)\)\s*:\s*({NUMBER})", re.I)
_TOKENS = re.compile(rf"tokens(?:/| per )s(?:ec(?:ond)?)?(?:/[\w]+)?\s*:\s*({NUMBER})", re.I)


def read(line: str) -> Reading | None:
    step = _STEP.search(line)
    if step is None:
        return None
    loss, time, tokens = _LOSS.search(line), _TIME.search(line), _TOKENS.search(line)
    if loss is None and time is None:
        return None
    return Reading(
        int(step[1]),
        number(loss[1]) if loss else None,
        seconds(time[2], time[1]) if time else None,
        number(tokens[1]) if tokens else None,
    )


PARSER = Parser("megatron", same("Megatron-LM / MindSpeed"), 10, read)
