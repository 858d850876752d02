"""SARIF against the standard's rules."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import jsonschema
import pytest
import report_fixtures as fixtures
import report_hostile as hostile
from report_sarif_schema import SARIF

from npufuse_tui.model import ScanResult
from npufuse_tui.report.contract_json import as_json
from npufuse_tui.report.sarif import sarif_document


def valid(result: ScanResult, language: str = "en") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(as_json(sarif_document(result, language)))
    jsonschema.Draft202012Validator(SARIF).validate(document)
    official = os.environ.get("NPUFUSE_SARIF_SCHEMA")
    if official:
        jsonschema.Draft4Validator(json.loads(Path(official).read_text())).validate(document)
    return document


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_scan(language: str) -> None:
    run = valid(fixtures.scan(), language)["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [one["id"] for one in rules] == ["moe_grouped", "rms_norm", "rotary", "swiglu"]
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
    refused = [one for one in run["results"] if one["properties"]["verdict"] == "refused"]
    assert [(one["kind"], one["level"]) for one in refused] == [("informational", "none")]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["endLine"]) == (59, 63)
    skipped = run["invocations"][0]["toolExecutionNotifications"]
    assert (len(skipped) == 2 and "larger" in skipped[0]["message"]["text"]) or language == "zh"
    assert "estimated" in run["results"][0]["message"]["text"] or language == "zh"


def test_fingerprints_are_stable_and_differ() -> None:
    first, second = (valid(fixtures.scan())["runs"][0]["results"] for _ in range(2))
    prints = [one["partialFingerprints"]["npufuseCandidate/v1"] for one in first]
    assert prints == [one["partialFingerprints"]["npufuseCandidate/v1"] for one in second]
    assert len(set(prints)) == len(prints)


def test_nothing_found_nothing_committed() -> None:
    run = valid(fixtures.scan(commit=None, candidates=(), skipped=()))["runs"][0]
    assert run["results"] == [] and "versionControlProvenance" not in run


def test_a_rule_that_has_no_row_still_has_a_descriptor() -> None:
    run = valid(fixtures.scan(rules=()))["runs"][0]
    assert {one["ruleId"] for one in run["results"]} == {one["id"] for one in run["tool"]["driver"]["rules"]}


def test_paths_survive(tmp_path: Path) -> None:
    names = ("a b.py", "a:b.py", "100%.py", "中文.py", "#x?.py", "w\udcff.py", "[x].py")
    result = fixtures.scan(*(fixtures.norm(file=f"d/{name}", id=f"id{place}") for place, name in enumerate(names)))
    found = [
        unquote_to_bytes(one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for one in valid(result)["runs"][0]["results"]
    ]
    assert sorted(found) == sorted(f"d/{name}".encode("utf-8", "surrogateescape") for name in names)
    whole = hostile.session(tmp_path)
    assert whole.scan is not None
    valid(whole.scan)
