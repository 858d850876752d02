"""The JSON documents that scripts rely on: scan, check, verify. They change only by adding.

Everything is a plain JSON value; a number that is not finite becomes null, because JSON has no word for it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from npufuse_tui import __version__
from npufuse_tui.language import Text, current_language
from npufuse_tui.model import (
    Candidate,
    CaseResult,
    Check,
    Estimate,
    Gate,
    LossResult,
    Risk,
    ScanResult,
    Session,
    SpeedResult,
    Task,
)
from npufuse_tui.report.labels import emulated, speed_line

SCHEMA = 1
_LONE = re.compile("[\ud800-\udfff]")


def as_json(document: Mapping[str, Any]) -> str:
    """A document as it is printed: UTF-8 as it is, two spaces, one newline at the end, never NaN."""
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # The name of a file may hold bytes that are no UTF-8; as JSON escapes they come back as what Python reads them as.
    return _LONE.sub(lambda one: f"\\u{ord(one.group()):04x}", text)


def scan_document(result: ScanResult, language: str | None = None) -> dict[str, Any]:
    """`scan --format json`. Sentences are in `language`, by default the current one."""
    said = language or current_language()
    return {
        "schema": SCHEMA,
        "npufuse": __version__,
        "root": result.root,
        "commit": result.commit,
        "dirty": result.dirty,
        "target": result.target,
        "scanned": {
            "files": result.files,
            "parsed": result.parsed,
            "bytes": result.bytes,
            "seconds": finite(result.seconds),
            "cached": result.cached,
            "skipped": [
                {"file": one.file, "reason": one.reason.in_language(said)}
                for one in sorted(result.skipped, key=lambda one: (one.file, one.reason.en))
            ],
        },
        "rules": [
            {
                "id": one.id,
                "api": one.api,
                "found": one.found,
                "recommended": one.recommended,
                "caution": one.caution,
                "refused": one.refused,
                "reason": one.reason.in_language(said),
            }
            for one in sorted(result.rules, key=lambda one: one.id)
        ],
        "candidates": [candidate_document(one, said) for one in in_order(result.candidates)],
    }


def check_document(candidates: Iterable[Candidate], language: str | None = None) -> dict[str, Any]:
    """`check --format json`."""
    said = language or current_language()
    return {
        "schema": SCHEMA,
        "candidates": [
            {"id": one.id, "check": _check(one.check, said, per_case=True) if one.check else None}
            for one in in_order(candidates)
        ],
    }


def verify_document(session: Session, language: str | None = None) -> dict[str, Any]:
    """`verify --format json`: the tasks in the order in which they ran."""
    said = language or current_language()
    baseline = session.baseline
    return {
        "schema": SCHEMA,
        "session": session.id,
        "backend": session.backend.value if session.backend else None,
        "branch": session.branch,
        "baseline": {
            "status": baseline.status if baseline else "pending",
            "steps": baseline.steps if baseline else 0,
            "noise_max_rel_diff": finite(baseline.noise_max_rel_diff) if baseline else None,
            "reason": _said(baseline.reason, said) if baseline else None,
        },
        "tasks": [task_document(one, session, said) for one in session.tasks],
    }


def task_document(task: Task, session: Session, language: str) -> dict[str, Any]:
    """One task of `verify --format json`."""
    return {
        "id": task.id,
        "rule": task.rule,
        "state": task.state.value,
        "op": _check(task.op, language, per_case=True) if task.op else None,
        "loss": _loss(task.loss, language) if task.loss else None,
        "speed": _speed(task.speed, session, language) if task.speed else None,
        "conclusion": task.conclusion.value if task.conclusion else None,
        "reason": _said(task.reason, language),
        "commit": task.commit,
    }


def candidate_document(candidate: Candidate, language: str) -> dict[str, Any]:
    """One candidate of `scan --format json`."""
    return {
        "id": candidate.id,
        "rule": candidate.rule,
        "variant": candidate.variant,
        "api": candidate.api,
        "file": candidate.file,
        "qualname": candidate.qualname,
        "start_line": candidate.start_line,
        "end_line": candidate.end_line,
        "generated_from": candidate.generated_from,
        "group": candidate.group,
        "verdict": candidate.verdict.value,
        "priority": candidate.priority.value,
        "reason": candidate.reason.in_language(language),
        "risks": [_risk(one, language) for one in candidate.risks],
        "gate": _gate(candidate.gate, language) if candidate.gate else None,
        "reuse": [{"file": one.file, "line": one.line, "what": one.what} for one in candidate.reuse],
        "diff": candidate.diff,
        "check": _check(candidate.check, language) if candidate.check else None,
        "estimate": _estimate(candidate.estimate) if candidate.estimate else None,
    }


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """By place, then rule: the same from run to run, whatever order the workers finished in."""
    return sorted(candidates, key=lambda one: (one.file, one.start_line, one.end_line, one.rule, one.id))


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _said(text: Text | None, language: str) -> str | None:
    return text.in_language(language) if text else None


def _risk(risk: Risk, language: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "code": risk.code,
        "severity": risk.severity.value,
        "message": risk.message.in_language(language),
        "line": risk.line,
    }
    return document | ({"file": risk.file} if risk.file else {})


def _gate(gate: Gate, language: str) -> dict[str, Any]:
    return {"kind": gate.kind.value, "expression": gate.expression, "why": gate.why.in_language(language)}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "launches_before": estimate.launches_before,
        "launches_after": estimate.launches_after,
        "memory_passes_before": estimate.memory_passes_before,
        "memory_passes_after": estimate.memory_passes_after,
        "basis": estimate.basis,
    }


def _check(check: Check, language: str, per_case: bool = False) -> dict[str, Any]:
    document: dict[str, Any] = {
        "status": check.status,
        "backend": check.backend.value,
        "cases": check.cases,
        "worst_cosine": finite(check.worst_cosine),
        "worst_abs_diff": finite(check.worst_abs_diff),
        "worst_grad_cosine": finite(check.worst_grad_cosine),
        "dtype_equal": check.dtype_equal,
        "reason": _said(check.reason_text, language),
    }
    return document | ({"per_case": [_case(one, language) for one in check.per_case]} if per_case else {})


def _case(case: CaseResult, language: str) -> dict[str, Any]:
    return {
        "shape": case.shape,
        "dtype": case.dtype,
        "layout": case.layout,
        "cosine": finite(case.cosine),
        "abs_diff": finite(case.abs_diff),
        "grad_cosine": finite(case.grad_cosine),
        "dtype_out": case.dtype_out,
        "passed": case.passed,
        "grad_abs_diff": finite(case.grad_abs_diff),
        "reference_error_original": finite(case.reference_error_original),
        "reference_error_fused": finite(case.reference_error_fused),
        "reason": _said(case.reason_text, language),
    }


def _loss(loss: LossResult, language: str) -> dict[str, Any]:
    return {
        "steps": loss.steps,
        "max_rel_diff": finite(loss.max_rel_diff),
        "first_fail_step": loss.first_fail_step,
        "limit": loss.limit,
        "noise_max_rel_diff": finite(loss.noise_max_rel_diff),
        "passed": loss.passed,
        "reason": loss.reason.in_language(language),
    }


def _speed(speed: SpeedResult, session: Session, language: str) -> dict[str, Any]:
    """Times of an emulated run are no speeds, so none leave here, whatever the record holds."""
    measured = not emulated(session.backend) and speed.conclusion != "not measured"
    return {
        "baseline_median_s": finite(speed.baseline_median_s) if measured else None,
        "fused_median_s": finite(speed.fused_median_s) if measured else None,
        "ratio": finite(speed.ratio) if measured else None,
        "ci_low": finite(speed.ci_low) if measured else None,
        "ci_high": finite(speed.ci_high) if measured else None,
        "conclusion": speed.conclusion if measured else speed_line(speed, session.backend).en,
        "reason": speed.reason.in_language(language),
    }
