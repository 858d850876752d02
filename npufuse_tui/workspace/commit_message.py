"""The message of a commit: what was replaced where, and what was measured. English, as the history of code is."""

from __future__ import annotations

from npufuse_tui import __version__
from npufuse_tui.model import Backend, Candidate, Session, Task

WIDTH = 72


def commit_message(candidate: Candidate, task: Task | None, session: Session) -> str:
    """Subject, place and measurements, without trailers; `task` None: nothing was measured."""
    name = candidate.api.rpartition(".")[2]
    subject = f"{candidate.qualname}: use {name}"
    if len(subject) > WIDTH:
        subject = f"{candidate.qualname.rpartition('.')[2]}: use {name}"[:WIDTH]
    lines = [
        _flat(subject),
        "",
        f"Rule: {candidate.rule} ({candidate.variant})",
        f"Operator: {candidate.api}",
        _flat(f"Place: {candidate.file}:{candidate.start_line}-{candidate.end_line}, {candidate.qualname}"),
    ]
    if candidate.gate is not None:
        lines.append(_flat(f"Switch: {candidate.gate.expression}"))
    lines += ["", *_measured(task, session.backend)]
    lines += ["", f"The original statements stay in the else branch. Made with npufuse {__version__}."]
    return "\n".join(lines)


def _measured(task: Task | None, backend: Backend | None) -> list[str]:
    if task is None:
        return ["Not verified yet."]
    places = {Backend.NPU: "on an NPU", Backend.EMULATED: "with torch_npu emulated on the CPU"}
    where = places[backend] if backend is not None else "on an unknown backend"
    lines = [f"Verified {where}:"]
    if task.op is not None:
        lines.append(
            f"- operator check {task.op.status}: {task.op.cases} cases, worst cosine {_number(task.op.worst_cosine)}, "
            f"largest difference {_number(task.op.worst_abs_diff)}"
        )
    if task.loss is not None:
        said = {True: "passed", False: "failed", None: "cannot be judged"}[task.loss.passed]
        worst = _percent(task.loss.max_rel_diff)
        lines.append(f"- loss check {said}: {task.loss.steps} steps, largest relative difference {worst}")
    if task.speed is not None:
        lines.append(_flat(f"- speed: {_speed(task)}"))
    return lines


def _speed(task: Task) -> str:
    speed = task.speed
    assert speed is not None
    if speed.ratio is None or speed.baseline_median_s is None or speed.fused_median_s is None:
        return f"{speed.conclusion} ({speed.reason.en})"
    interval = f", 95% interval {speed.ci_low:.3f} to {speed.ci_high:.3f}" if speed.ci_low and speed.ci_high else ""
    return (
        f"{speed.conclusion}; median step {speed.baseline_median_s:.4g} s before, {speed.fused_median_s:.4g} s after, "
        f"ratio {speed.ratio:.3f}{interval}"
    )


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.6g}"


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{100 * value:.4g}%"


def _flat(text: str) -> str:
    """One line, whatever a file name or a sentence holds."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
