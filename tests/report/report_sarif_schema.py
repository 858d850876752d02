"""The part of SARIF 2.1.0 that a scan's log uses, as a JSON schema, strict: a property that is not listed is an error.

From the standard's text: 3.13 sarifLog, 3.14 run, 3.18 tool, 3.19 toolComponent, 3.20 invocation, 3.27 result,
3.28 location, 3.29 physicalLocation, 3.30 region, 3.49 reportingDescriptor, 3.58 notification.
`NPUFUSE_SARIF_SCHEMA` may name a file with the whole official schema; the tests then use that one too.
"""

from __future__ import annotations

from typing import Any

from report_schema import many


def strict(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


STRING = {"type": "string"}
MESSAGE = strict(("text",), text=STRING)
# RFC 3986: a relative reference holds no raw space, quote, bracket or letter beyond ASCII.
URI = {"type": "string", "pattern": r"^[A-Za-z0-9/_.~%:-]+$"}
ARTIFACT = strict(("uri",), uri=URI, uriBaseId=STRING)
REGION = strict(("startLine",), startLine={"type": "integer", "minimum": 1}, endLine={"type": "integer", "minimum": 1})
PHYSICAL = strict(("artifactLocation",), artifactLocation=ARTIFACT, region=REGION)
LOCATION = strict(
    (),
    id={"type": "integer", "minimum": 0},
    physicalLocation=PHYSICAL,
    logicalLocations=many(strict((), fullyQualifiedName=STRING, kind=STRING)),
    message=MESSAGE,
)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
BAG = {"type": "object", "properties": {"tags": {"type": "array", "items": STRING, "uniqueItems": True}}}
DESCRIPTOR = strict(
    ("id",),
    id=STRING,
    name=STRING,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=strict((), level=LEVEL),
    properties=BAG,
)
RESULT: dict[str, Any] = strict(
    ("message",),
    ruleId=STRING,
    ruleIndex={"type": "integer", "minimum": 0},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=LEVEL,
    message=MESSAGE,
    locations=many(LOCATION),
    relatedLocations=many(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": STRING},
    properties=BAG,
)
# 3.27.10: a level other than "none" only where the kind is "fail".
RESULT["anyOf"] = [{"properties": {"kind": {"const": "fail"}}}, {"properties": {"level": {"const": "none"}}}]
SARIF = strict(
    ("version", "runs"),
    **{"$schema": {"type": "string"}},
    version={"const": "2.1.0"},
    runs=many(
        strict(
            ("tool",),
            tool=strict(
                ("driver",),
                driver=strict(
                    ("name",),
                    name=STRING,
                    version=STRING,
                    semanticVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                    language={"type": "string", "pattern": r"^[a-z]{2}(-[A-Z]{2})?$"},
                    rules={"type": "array", "items": DESCRIPTOR, "uniqueItems": True},
                ),
            ),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            originalUriBaseIds={"type": "object", "additionalProperties": strict((), uri={**URI, "pattern": "/$"})},
            invocations=many(
                strict(
                    ("executionSuccessful",),
                    executionSuccessful={"type": "boolean"},
                    toolExecutionNotifications=many(
                        strict(("message",), level=LEVEL, message=MESSAGE, locations=many(LOCATION))
                    ),
                )
            ),
            results=many(RESULT),
            versionControlProvenance=many(
                strict(("repositoryUri",), repositoryUri=URI, revisionId=STRING, mappedTo=strict((), uriBaseId=STRING))
            ),
        )
    ),
)
