"""What people print: `step 3 loss 2.31 time 0.12`, `iter 3: loss 2.31, time 120ms`, `Step [3/50], Loss: 2.31`."""

from __future__ import annotations

import re

from npufuse_tui.language import Text
from npufuse_tui.verify.reading import NUMBER, Parser, Reading, number, seconds

_STEP = re.compile(
    r"\b(?:global[_ ]?)?(?:steps?|iter(?:ation)?s?|it|batch(?:[_ ]?idx)?)\b\s*[:=#\[(]*\s*(\d[\d,]*)", re.I
)
_EPOCH_OF = re.compile(r"\bepoch:?\s*(\d+)\D{1,3}(\d+)\s*/\s*(\d+)", re.I)
_COUNTED = re.compile(r"(?:^|[\[(\s])(\d+)\s*/\s*\d+(?:[\])\s:,|]|$)")
_LEADING = re.compile(r"^\s*(\d+)\s*[:|,]\s")
_LOSS = re.compile(
    r"(?<![\w/])(?!(?:eval|val|valid|validation|test)[_ /])(?:[a-z]+[_ /])?loss(?:es)?\b"
    rf"\s*(?:[:=(|]|is\b)?\s*({NUMBER})",
    re.I,
)
_NOT_TRAINING = re.compile(r"\b(?:eval|val|valid|validation|test)[_ /-]?(?:loss|step)\b", re.I)
_TIME = re.compile(
    r"\b(?:(?:step|iter(?:ation)?|batch)[_ ]?time|time(?:[_ ]per[_ ](?:step|iter(?:ation)?|batch))?|dt|took)\b"
    rf"\s*(?:\((m?s)\))?\s*[:=]?\s*({NUMBER})\s*(ms|msec|us|µs|sec|s|min)?\b",
    re.I,
)
_RATE = re.compile(rf"\b({NUMBER})\s*(?:(s|ms)/(?:it|step|iter|batch)\b)", re.I)
_TOKENS = re.compile(
    rf"\b(?:tok(?:en)?s?\s*(?:/|per|_per_|_/_)\s*s(?:ec(?:ond)?)?|tps)\b\s*[:=]?\s*({NUMBER})|({NUMBER})\s*tok(?:en)?s?/s",
    re.I,
)


def read(line: str) -> Reading | None:
    if "loss" not in line and "Loss" not in line and "LOSS" not in line:
        return None
    loss = _LOSS.search(line)
    if loss is None or len(line) > 4096 or (_NOT_TRAINING.search(line) and "train" not in line.lower()):
        return None
    time, rate, tokens = _TIME.search(line), _RATE.search(line), _TOKENS.search(line)
    if time is not None:
        step_time = seconds(time[2], time[1] or time[3])
    else:
        step_time = seconds(rate[1], rate[2]) if rate else None
    return Reading(_step(line), number(loss[1]), step_time, number(tokens[1] or tokens[2]) if tokens else None)


def _step(line: str) -> int | None:
    if found := _STEP.search(line):
        return int(found[1].replace(",", ""))
    if found := _EPOCH_OF.search(line):
        return int(found[2])
    if found := _COUNTED.search(line) or _LEADING.search(line):
        return int(found[1])
    return None


PARSER = Parser("plain", Text("plain prints", "普通打印"), 90, read, evidence=2)
