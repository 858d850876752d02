"""Which gate is put in front of the fused branch, and which others a person may choose.

The order of preference: a switch that the repo has already, a new argument where it keeps its arguments, an environment
variable, availability alone. A switch that is off unless someone turns it on is offered and not chosen: nothing would
be fused, and the verification would compare the original with itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npufuse_tui.dataflow.lower import FunctionGraph
from npufuse_tui.judgement.gates.arguments import new_arguments
from npufuse_tui.judgement.gates.existing import Switch, existing_switches
from npufuse_tui.judgement.gates.wrappers import wrappers
from npufuse_tui.language import Text
from npufuse_tui.model import Gate, GateKind, Reuse
from npufuse_tui.rules import Rule

_ON = Text(
    "the repo has this switch already ({place}), and it is on unless someone turns it off",
    "仓库已有该开关（{place}），默认开启",
)
_OFF = Text(
    "the repo has this switch already ({place}); it is off by default, so turn it on for the run that verifies",
    "仓库已有该开关（{place}）；默认关闭，验证运行时需要打开",
)
_OPEN = Text(
    "the repo has this switch already ({place}); whether it is on by default cannot be read off the code",
    "仓库已有该开关（{place}）；无法从代码判断默认是否开启",
)
_AVAILABILITY = Text(
    "no switch: the fused branch is taken wherever torch_npu and the tensor's device allow it",
    "不设开关：只要有 torch_npu 且张量在 NPU 上就走融合分支",
)


@dataclass(frozen=True, slots=True)
class Offer:
    """The gates that a candidate offers, the chosen one first, and what the repo has that could serve."""

    gates: tuple[Gate, ...]
    reuse: tuple[Reuse, ...]


def offer(function: FunctionGraph, rule: Rule, environment: Gate, torch_npu_may_lack: bool = True) -> Offer:
    """The gates for a candidate in a function; `environment` is the one that an environment variable switches.

    `torch_npu_may_lack`: the file's `torch_npu` may be None, so the guard has to ask.
    """
    found = existing_switches(function, rule)
    best = [one for one in found if one.sure and one.on]
    others = [one for one in found if one not in best]
    added = [(_with_torch_npu(gate, torch_npu_may_lack), right) for gate, right in new_arguments(function)]
    gates = [
        *(_existing(one, torch_npu_may_lack) for one in best),
        *(gate for gate, right in added if right),
        environment,
        *(_existing(one, torch_npu_may_lack) for one in others),
        *(gate for gate, right in added if not right),
        _available(torch_npu_may_lack),
    ]
    return Offer(tuple(gates), (*_reuse(found), *wrappers(function.module, rule)))


def _existing(switch: Switch, torch_npu_may_lack: bool) -> Gate:
    why = _ON if switch.on else _OPEN if switch.on is None else _OFF
    asked = f"{switch.expression} and torch_npu is not None" if torch_npu_may_lack else switch.expression
    return Gate(GateKind.EXISTING, asked, why.format(place=f"{switch.file}:{switch.line}"))


def _with_torch_npu(gate: Gate, torch_npu_may_lack: bool) -> Gate:
    return replace(gate, expression=f"{gate.expression} and torch_npu is not None") if torch_npu_may_lack else gate


def _available(torch_npu_may_lack: bool) -> Gate:
    return Gate(GateKind.AVAILABILITY, "torch_npu is not None" if torch_npu_may_lack else "True", _AVAILABILITY)


def _reuse(found: Sequence[Switch]) -> tuple[Reuse, ...]:
    return tuple(Reuse(one.file, one.line, one.expression) for one in found)
