"""The executable proof of candidates: the door of this room.

    check(candidates, ProofOptions(python=find_python(...)), listen) -> candidates, each with its `check`

Candidates whose plans are the same code on the same inputs (one block copied into many files) are proven once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from npufuse_tui.errors import MachineLacks, WrongInput
from npufuse_tui.events import CandidateChecked, Listener, ignore
from npufuse_tui.language import Text, same
from npufuse_tui.model import Backend, Candidate, CaseResult, Check, ProofPlan, Verdict
from npufuse_tui.proof.interpreter import Interpreter, find_python, probe
from npufuse_tui.proof.plan import as_json, digest
from npufuse_tui.proof.process import Children, Outcome, outcomes


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """How proofs are run.

    Attributes:
        python: the interpreter of the user's model; None finds one.
        backend: "auto" (an NPU where one answers, else emulated), "npu", "emulated".
        time_limit: seconds for one candidate.
        dtypes: names of torch dtypes; empty for all that the rule has.
        torch_npu: the version to emulate; None for the installed one, else the newest known.
        extra_rules: folders or files of rules that the person asked for.
        cancelled: asked between results; once it says yes, nothing more is run.
    """

    python: Path | None = None
    backend: str = "auto"
    time_limit: float = 60.0
    dtypes: tuple[str, ...] = ()
    torch_npu: str | None = None
    extra_rules: tuple[Path, ...] = ()
    cancelled: Callable[[], bool] = field(default=lambda: False)


def check(candidates: Sequence[Candidate], options: ProofOptions, listen: Listener = ignore) -> tuple[Candidate, ...]:
    """Every candidate with its `check`, in the order given; a failed proof makes the verdict refused.

    Emits `CandidateChecked` for each as soon as it is known. Raises MachineLacks when the interpreter has no torch
    or an NPU was demanded that is not there, WrongInput for an interpreter or a backend that is none.
    """
    plans: dict[str, ProofPlan] = {}
    members: dict[str, list[int]] = {}
    found: list[Candidate] = list(candidates)
    done = 0

    def settle(index: int, result: Check | None) -> None:
        nonlocal done
        found[index] = judged(found[index], result)
        done += 1
        listen(CandidateChecked(found[index], done, len(found)))

    for index, candidate in enumerate(candidates):
        plan = candidate.proof
        if plan is not None and plan.not_run is None:
            key = digest(plan)
            plans.setdefault(key, plan)
            members.setdefault(key, []).append(index)
    if plans:
        backend, children = prepare(options)
    else:
        backend, children = Backend.EMULATED, None
    for index, candidate in enumerate(candidates):
        if candidate.proof is None:
            settle(index, None)
        elif candidate.proof.not_run is not None:
            settle(index, not_run(candidate.proof.not_run, backend))
    if children is not None:
        keys = list(plans)
        jobs = [{"kind": "plan", "rule": plans[key].rule, "plan": as_json(plans[key])} for key in keys]
        for position, outcome in outcomes(jobs, children):
            for index in members[keys[position]]:
                settle(index, as_check(outcome, backend))
    return tuple(found)


def prepare(options: ProofOptions) -> tuple[Backend, Children]:
    """The backend that the options lead to and how its children are started; see `check` for what it raises."""
    if options.backend not in ("auto", "npu", "emulated"):
        raise WrongInput(
            Text(
                "there is no backend {name}: choose auto, npu or emulated",
                "没有名为 {name} 的后端：请选择 auto、npu 或 emulated",
            ).format(name=options.backend)
        )
    interpreter = probe(options.python or find_python(None, None, Path.cwd()))
    interpreter.demand_torch()
    backend = backend_of(options.backend, interpreter)
    environ: Mapping[str, str] = dict(os.environ)
    if backend is Backend.EMULATED:
        from npufuse_tui.emulator.environment import emulated

        environ = emulated(environ, version=options.torch_npu, strict=True)
        interpreter = replace(interpreter, environment=())  # the emulator stands before whatever torch_npu is there
    return backend, Children(
        interpreter,
        environ,
        device="npu" if backend is Backend.NPU else "cpu",
        dtypes=options.dtypes,
        extra_rules=options.extra_rules,
        time_limit=options.time_limit,
        cancelled=options.cancelled,
    )


def backend_of(asked: str, interpreter: Interpreter) -> Backend:
    """The backend for what was asked. Raises MachineLacks when an NPU is demanded and none answers."""
    if asked == "emulated" or (asked == "auto" and not interpreter.npu):
        return Backend.EMULATED
    if interpreter.npu:
        return Backend.NPU
    raise MachineLacks(
        Text(
            "no NPU answers under {path} ({why}): mend that (npufuse doctor), or use --backend emulated",
            "{path} 下没有可用的 NPU（{why}）：请先修复（npufuse doctor），或使用 --backend emulated",
        ).format(path=interpreter.path, why=interpreter.why_no_npu or same("?"))
    )


def as_check(outcome: Outcome, backend: Backend) -> Check:
    """What the child told, in the words of the domain."""
    fields: dict[str, Any] = {name: value for name, value in outcome.items() if name != "per_case"}
    cases = tuple(CaseResult(**_in_both_languages(one)) for one in outcome["per_case"])
    return Check(backend=backend, per_case=cases, **_in_both_languages(fields))


def _in_both_languages(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The reason of an outcome is a pair of sentences (see `npufuse_tui.proof.outcome`)."""
    en, zh = fields["reason"] or (None, None)
    return {**fields, "reason": en, "reason_zh": zh}


def not_run(reason: Text, backend: Backend) -> Check:
    """The check of a candidate that could not be run, with the reason."""
    return Check("skipped", backend, 0, None, None, None, None, reason.en, reason_zh=reason.zh)


def judged(candidate: Candidate, result: Check | None) -> Candidate:
    """The candidate with its check. A failed proof refuses it; one that did not run keeps it from being recommended."""
    if result is None:
        return candidate
    if result.status == "failed":
        reason = Text(
            "the proof failed: {why}",
            "可执行验证未通过：{why}",
        ).format(why=result.reason_text or "")
        return replace(candidate, check=result, verdict=Verdict.REFUSED, reason=reason)
    if result.status == "skipped" and candidate.verdict is Verdict.RECOMMENDED:
        reason = Text(
            "not proven: {why}",
            "未能验证：{why}",
        ).format(why=result.reason_text or "")
        return replace(candidate, check=result, verdict=Verdict.CAUTION, reason=reason)
    return replace(candidate, check=result)
