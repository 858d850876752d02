"""SARIF 2.1.0: the candidates as notes that a code-scanning viewer shows beside the code.

Fields as the standard names them: OASIS SARIF 2.1.0, sections 3.13 (log), 3.14 (run), 3.27 (result), 3.49 (rule).
"""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

from npufuse_tui import __version__
from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Candidate, Risk, ScanResult, Severity, Verdict
from npufuse_tui.report.contract_json import in_order
from npufuse_tui.report.opportunity import gain

SCHEMA_ADDRESS = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "ROOT"


def sarif_document(result: ScanResult, language: str | None = None) -> dict[str, Any]:
    """The log: one run with its rules, a result for each candidate, a notification for each skipped file."""
    said = language or current_language()
    rules = sorted(result.rules, key=lambda one: one.id)
    known = [one.id for one in rules]
    missing = sorted({one.rule for one in result.candidates} - set(known))
    names = [*known, *missing]
    apis = {one.rule: one.api for one in result.candidates} | {one.id: one.api for one in rules}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "npufuse",
                "version": __version__,
                "semanticVersion": __version__,
                "language": "zh-CN" if said == "zh" else "en-US",
                "rules": [_rule(name, apis[name], said) for name in names],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": _folder(result.root)}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": Text("skipped: {0}", "已跳过：{0}").format(one.reason).in_language(said)},
                        "locations": [{"physicalLocation": {"artifactLocation": _file(one.file)}}],
                    }
                    for one in sorted(result.skipped, key=lambda one: (one.file, one.reason.en))
                ],
            }
        ],
        "results": [_result(one, names.index(one.rule), said) for one in in_order(result.candidates)],
    }
    if result.commit:
        run["versionControlProvenance"] = [
            {"repositoryUri": _folder(result.root), "revisionId": result.commit, "mappedTo": {"uriBaseId": _ROOT}}
        ]
    return {"$schema": SCHEMA_ADDRESS, "version": "2.1.0", "runs": [run]}


def _rule(name: str, api: str, language: str) -> dict[str, Any]:
    text = Text(
        "A chain of small operators that {0} computes in one launch.", "可由 {0} 一次下发完成的小算子链。"
    ).format(api)
    return {
        "id": name,
        "name": "".join(part.capitalize() for part in name.split("_")),
        "shortDescription": {"text": text.in_language(language)},
        "fullDescription": {"text": text.in_language(language)},
        "help": {
            "text": Text(
                "Run npufuse in this repository to see the diff, approve it and verify it.",
                "在该仓库中运行 npufuse，查看差异、批准并验证。",
            ).in_language(language)
        },
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["performance", "ascend-npu"], "api": api},
    }


def _result(one: Candidate, index: int, language: str) -> dict[str, Any]:
    refused = one.verdict is Verdict.REFUSED
    text = Text(
        "{0} could take the place of this block ({1}). {2} Expected gain: {3}.",
        "该代码块可由 {0} 替换（{1}）。{2} 预期收益：{3}。",
    )
    if refused:
        text = Text("Recognised as {0} and not replaced ({1}): {2}", "识别为 {0}，但不替换（{1}）：{2}")
    said = text.format(one.api, one.qualname, one.reason, gain(one.estimate)).in_language(language)
    document: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": index,
        # A level other than "none" is allowed for the kind "fail" alone, and viewers hide the other kinds.
        "kind": "informational" if refused else "fail",
        "level": "none" if refused else "note",
        "message": {"text": said},
        "locations": [_location(one.file, one.start_line, one.end_line, one.qualname)],
        "partialFingerprints": {
            "npufuseCandidate/v1": hashlib.sha256(one.id.encode("utf-8", "surrogateescape")).hexdigest()
        },
        "properties": {
            "candidate": one.id,
            "variant": one.variant,
            "verdict": one.verdict.value,
            "priority": one.priority.value,
            "tags": [f"verdict:{one.verdict.value}", f"priority:{one.priority.value}"],
        },
    }
    if one.risks:
        document["relatedLocations"] = [_risk(place, one, risk, language) for place, risk in enumerate(one.risks)]
    if one.diff:
        document["properties"]["diff"] = one.diff
    return document


def _risk(number: int, one: Candidate, risk: Risk, language: str) -> dict[str, Any]:
    word = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.DANGER: "danger"}[risk.severity]
    location: dict[str, Any] = {"artifactLocation": _file(risk.file or one.file)}
    if risk.line and risk.line > 0:
        location["region"] = {"startLine": risk.line}
    return {
        "id": number,
        "physicalLocation": location,
        "message": {"text": f"{word}: {risk.code}: {risk.message.in_language(language)}"},
    }


def _location(file: str, start: int, end: int, name: str) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": _file(file),
            "region": {"startLine": max(start, 1), "endLine": max(end, start, 1)},
        },
        "logicalLocations": [{"fullyQualifiedName": name, "kind": "function"}],
    }


def _file(path: str) -> dict[str, str]:
    """A path as a relative reference: names with spaces, colons, % or bytes that are no UTF-8 stay one path."""
    quoted = quote(path.encode("utf-8", "surrogateescape"), safe="/-._~")
    return {"uri": quoted, "uriBaseId": _ROOT}


def _folder(path: str) -> str:
    quoted = quote(path.replace("\\", "/").encode("utf-8", "surrogateescape"), safe="/-._~:")
    return f"file://{'' if quoted.startswith('/') else '/'}{quoted.rstrip('/')}/"
