"""What this process was asked to emulate, read from its environment."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

SUFFIX = "+npufuse.emulated"
_HERE = Path(__file__).resolve().parent
_SCHEMAS = _HERE.parent / "schemas"


class NotEmulated(NotImplementedError):
    """Something of torch_npu that the emulator has not. The message names it."""


class EmulatorWarning(UserWarning):
    """A documented limit of the NPU that was passed while the emulator is lenient, or an approximation it makes."""


def strict() -> bool:
    """Whether documented limits are errors (the default) or warnings."""
    return os.environ.get("NPUFUSE_EMULATED_STRICT", "1") != "0"


def say(en: str, zh: str) -> str:
    """The sentence in the language of the person, as the environment gives it."""
    for name in ("NPUFUSE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return zh if value.lower().startswith("zh") else en
    return en


def not_emulated(what: str) -> NotEmulated:
    """The error for something that the emulator has not."""
    return NotEmulated(
        say(
            f"{what} is not emulated: run it on an NPU, or leave it out where torch_npu.__version__ ends in {SUFFIX!r}",
            f"{what} 没有被模拟：请在 NPU 上运行，或在 torch_npu.__version__ 以 {SUFFIX!r} 结尾时跳过它",
        )
    )


def limit(operator: str, en: str, zh: str) -> None:
    """A documented limit is passed: raises RuntimeError when strict, else warns."""
    sentence = say(f"{operator}: {en}", f"{operator}：{zh}")
    if strict():
        raise RuntimeError(sentence)
    warnings.warn(sentence, EmulatorWarning, stacklevel=3)


def caution(operator: str, en: str, zh: str) -> None:
    """Something that the NPU takes and that may go wrong there: a warning, strict or not."""
    warnings.warn(say(f"{operator}: {en}", f"{operator}：{zh}"), EmulatorWarning, stacklevel=3)


@lru_cache(maxsize=1)
def version() -> str:
    """The version of torch_npu that is emulated: as asked, else the one that is installed beside, else the newest."""
    asked = os.environ.get("NPUFUSE_EMULATED_TORCH_NPU", "auto")
    if asked not in ("", "auto"):
        return asked
    return _installed() or _known()[-1]


def schemas() -> dict[str, dict[str, dict[str, str]]]:
    """The registered operators of the emulated version: {operator: {overload: {"schema", "autograd_kind"}}}."""
    wanted = _order(version())
    known = _known()
    same = [one for one in known if _order(one)[:3] == wanted[:3]]
    older = [one for one in (same or known) if _order(one) <= wanted]
    name = (older or same or known)[-1 if older else 0]
    while True:
        entries: dict[str, Any] = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        if "same_as" not in entries:
            return entries
        name = entries["same_as"]


def _known() -> list[str]:
    return sorted((path.stem for path in _SCHEMAS.glob("*.json")), key=_order)


def _installed() -> str | None:
    """The version of the real torch_npu on the path, which this one hides."""
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE.parent]
    for distribution in importlib.metadata.distributions(name="torch_npu", path=others):
        if SUFFIX not in distribution.version:
            return distribution.version.split("+")[0]
    return None


def _order(text: str) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    post = re.search(r"post(\d+)", text)
    found = [int(number or 0) for number in numbers.groups()] if numbers else [0, 0, 0]
    return (*found, int(post.group(1)) if post else 0)
