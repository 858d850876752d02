"""The JSON documents against schemas written from the contract."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import report_fixtures as fixtures
import report_hostile as hostile
from report_schema import CHECKS, SCAN, VERIFY

from npufuse_tui.language import Text
from npufuse_tui.model import Backend, Session, SpeedResult, Stage
from npufuse_tui.report.contract_json import as_json, check_document, scan_document, verify_document


def valid(document: dict[str, object], schema: dict[str, object]) -> dict[str, object]:
    """The document as a reader gets it, after it was found to be what the schema says."""
    read: dict[str, object] = json.loads(as_json(document))
    jsonschema.Draft202012Validator(schema).validate(read)
    return read


@pytest.mark.parametrize("language", ["en", "zh"])
def test_scan_is_what_the_contract_says(language: str) -> None:
    result = fixtures.scan()
    document = scan_document(result, language)
    valid(document, SCAN)
    assert [one["id"] for one in document["rules"]] == ["moe_grouped", "rms_norm", "rotary", "swiglu"]
    assert document["rules"][2]["found"] == 0
    by_id = {one["id"]: one for one in document["candidates"]}
    assert by_id["77aa0001"]["diff"] is None and by_id["77aa0001"]["check"] is None
    assert by_id["9f3a1c27"]["estimate"]["basis"] == "counted from the graph"
    assert by_id["9f3a1c27"]["check"]["backend"] == "emulated" and "per_case" not in by_id["9f3a1c27"]["check"]
    said = by_id["9f3a1c27"]["risks"][0]["message"]
    assert said == fixtures.norm().risks[0].message.in_language(language)


def test_the_schema_notices_what_is_lost() -> None:
    document = scan_document(fixtures.scan(), "en")
    for key in ("commit", "scanned", "rules"):
        with pytest.raises(jsonschema.ValidationError):
            valid({name: value for name, value in document.items() if name != key}, SCAN)
    del document["candidates"][0]["group"]
    with pytest.raises(jsonschema.ValidationError):
        valid(document, SCAN)


def test_order_does_not_depend_on_the_order_of_the_workers() -> None:
    result = fixtures.scan()
    first = as_json(scan_document(result, "en"))
    for seed in range(5):
        dice = random.Random(seed)
        candidates, rules, skipped = (
            tuple(dice.sample(part, len(part))) for part in (result.candidates, result.rules, result.skipped)
        )
        shuffled = replace(result, candidates=candidates, rules=rules, skipped=skipped)
        assert as_json(scan_document(shuffled, "en")) == first


def test_checks_carry_every_case_and_no_nan() -> None:
    failed = fixtures.norm(
        check=fixtures.check(
            "failed",
            worst_cosine=math.nan,
            per_case=(fixtures.case("x(2)", "float32", False, cosine=math.nan, abs_diff=math.inf),),
        )
    )
    document = check_document([failed, fixtures.mlp(check=None)])
    valid(document, CHECKS)
    case = document["candidates"][0]["check"]["per_case"][0]
    assert case["cosine"] is None and case["abs_diff"] is None and case["passed"] is False
    assert document["candidates"][1]["check"] is None


@pytest.mark.parametrize("backend", list(Backend))
def test_verify_is_what_the_contract_says(tmp_path: Path, backend: Backend) -> None:
    session = fixtures.session(tmp_path, backend)
    document = verify_document(session, "en")
    valid(document, VERIFY)
    assert [one["id"] for one in document["tasks"]] == [one.id for one in session.tasks]
    speed = document["tasks"][0]["speed"]
    if backend is Backend.NPU:
        assert speed["conclusion"] == "faster" and speed["ratio"] == pytest.approx(0.8767)
    else:
        assert speed["conclusion"] == "not measured: emulated" and speed["ratio"] is None


def test_an_emulated_run_never_gives_a_speed_whatever_the_record_holds(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, Backend.EMULATED)
    wrong = SpeedResult("faster", Text("wrong", "错"), 2.9, 1.0, 0.34, 0.33, 0.35)
    session = replace(session, tasks=(replace(session.tasks[0], speed=wrong), *session.tasks[1:]))
    speed = verify_document(session, "en")["tasks"][0]["speed"]
    assert speed["conclusion"] == "not measured: emulated"
    assert [speed[key] for key in ("baseline_median_s", "fused_median_s", "ratio", "ci_low", "ci_high")] == [None] * 5


def test_the_reason_of_a_speed_is_said_once(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, Backend.NPU)
    for reason in ("not measured: too few steps", "too few steps", "Not measured: too few steps"):
        speed = SpeedResult("not measured", Text(reason, "步数太少"))
        changed = replace(session, tasks=(replace(session.tasks[0], speed=speed),))
        assert verify_document(changed, "en")["tasks"][0]["speed"]["conclusion"] == "not measured: too few steps"


def test_a_session_that_has_only_begun() -> None:
    session = Session("s1", "2026-11-30T09:00:00Z", "/r", None, None, None, Stage.SCAN)
    document = verify_document(session, "zh")
    valid(document, VERIFY)
    assert document["baseline"]["status"] == "pending" and document["tasks"] == []


def test_hostile_names_come_back_as_they_were(tmp_path: Path) -> None:
    session = hostile.session(tmp_path)
    assert session.scan is not None
    document = scan_document(session.scan, "en")
    read = json.loads(as_json(document).encode("utf-8"))
    assert any(one["qualname"] == hostile.ALL for one in read["candidates"])
    valid(verify_document(session, "en"), VERIFY)


def test_the_reason_of_a_check_is_said_in_the_language() -> None:
    check = fixtures.check("failed", reason="the halves are swapped", reason_zh="两半颠倒")
    case = replace(fixtures.case("x(2)", "float32", False), reason="swapped", reason_zh="颠倒")
    candidate = fixtures.norm(check=replace(check, per_case=(case,)))
    for language, whole, one in (("en", "the halves are swapped", "swapped"), ("zh", "两半颠倒", "颠倒")):
        found = check_document([candidate], language)["candidates"][0]["check"]
        assert (found["reason"], found["per_case"][0]["reason"]) == (whole, one)
        assert scan_document(fixtures.scan(candidate), language)["candidates"][0]["check"]["reason"] == whole
