"""JSON schemas of the documents that scripts rely on, from the contract: additions are allowed, losses are not."""

from __future__ import annotations

from typing import Any

STRING = {"type": "string"}
ONE_LINE = {"type": "string", "pattern": r"^[^\n]*$"}
COUNT = {"type": "integer", "minimum": 0}
LINE = {"type": "integer", "minimum": 1}


def maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def document(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def many(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


NUMBER = maybe({"type": "number"})
CASE = document(
    shape=STRING, dtype=STRING, layout=STRING, cosine=NUMBER, abs_diff=NUMBER, grad_cosine=NUMBER, dtype_out=STRING
)
_CHECK = {
    "status": {"enum": ["passed", "failed", "skipped"]},
    "backend": {"enum": ["emulated", "npu"]},
    "cases": COUNT,
    "worst_cosine": NUMBER,
    "worst_abs_diff": NUMBER,
    "worst_grad_cosine": NUMBER,
    "dtype_equal": maybe({"type": "boolean"}),
    "reason": maybe(STRING),
}
CHECK = document(**_CHECK)
CHECK_WITH_CASES = document(**_CHECK, per_case=many(CASE))
CANDIDATE = document(
    id=STRING,
    rule=STRING,
    variant=STRING,
    api=STRING,
    file={"type": "string", "pattern": r"^[^/\\]"},
    qualname=STRING,
    start_line=LINE,
    end_line=LINE,
    generated_from=maybe(STRING),
    group=STRING,
    verdict={"enum": ["recommended", "caution", "refused"]},
    priority={"enum": ["high", "medium", "low"]},
    reason=ONE_LINE,
    risks=many(
        document(code=STRING, severity={"enum": ["info", "warning", "danger"]}, message=STRING, line=maybe(LINE))
    ),
    gate=maybe(
        document(kind={"enum": ["existing", "argument", "environment", "availability"]}, expression=STRING, why=STRING)
    ),
    reuse=many(document(file=STRING, line=LINE, what=STRING)),
    diff=maybe(STRING),
    check=maybe(CHECK),
    estimate=maybe(
        document(
            launches_before=COUNT,
            launches_after=COUNT,
            memory_passes_before=COUNT,
            memory_passes_after=COUNT,
            basis=STRING,
        )
    ),
)
SCAN = document(
    schema={"const": 1},
    npufuse=STRING,
    root=STRING,
    commit=maybe(STRING),
    dirty={"type": "boolean"},
    scanned=document(
        files=COUNT,
        parsed=COUNT,
        bytes=COUNT,
        seconds={"type": "number"},
        cached=COUNT,
        skipped=many(document(file=STRING, reason=ONE_LINE)),
    ),
    rules=many(
        document(id=STRING, api=STRING, found=COUNT, recommended=COUNT, caution=COUNT, refused=COUNT, reason=ONE_LINE)
    ),
    candidates=many(CANDIDATE),
)
CHECKS = document(schema={"const": 1}, candidates=many(document(id=STRING, check=maybe(CHECK_WITH_CASES))))
VERIFY = document(
    schema={"const": 1},
    session=STRING,
    backend=maybe({"enum": ["emulated", "npu"]}),
    branch=maybe(STRING),
    baseline=document(
        status={"enum": ["pending", "running", "passed", "failed"]}, steps=COUNT, noise_max_rel_diff=NUMBER
    ),
    tasks=many(
        document(
            id=STRING,
            rule=STRING,
            state={
                "enum": [
                    "pending",
                    "op_check",
                    "op_failed",
                    "loss_check",
                    "loss_failed",
                    "speed_check",
                    "concluded",
                    "blocked",
                    "interrupted",
                ]
            },
            op=maybe(CHECK_WITH_CASES),
            loss=maybe(
                document(
                    steps=COUNT,
                    max_rel_diff=NUMBER,
                    first_fail_step=maybe({"type": "integer"}),
                    limit={"type": "number"},
                )
            ),
            speed=maybe(
                document(
                    baseline_median_s=NUMBER,
                    fused_median_s=NUMBER,
                    ratio=NUMBER,
                    ci_low=NUMBER,
                    ci_high=NUMBER,
                    conclusion={"type": "string", "pattern": "^(faster|slower|no difference shown|not measured: .+)$"},
                )
            ),
            conclusion=maybe({"enum": ["adopt", "reject", "blocked"]}),
            reason=maybe(STRING),
        )
    ),
)
