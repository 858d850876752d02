"""The child of the proof: reads jobs from a file, runs them one after another, writes results as JSON lines.

    python <bundle>/run_proof.py JOBS.json RESULT_FD

Lines: {"ready": {...}} once torch and the rules are loaded, {"failed": "..."} when they cannot be; then for each job
{"start": i} and {"done": i, "outcome": {...}}. The parent blames a crash or a time-out
on the job that has started and not ended. Standard output belongs to whatever the code under
proof prints; nothing of ours goes there.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> int:
    """Run the jobs of a file; see the module. Returns the exit code."""
    jobs_file, descriptor = Path(arguments[0]), int(arguments[1])
    request = json.loads(jobs_file.read_text(encoding="utf-8"))
    with os.fdopen(descriptor, "w", encoding="utf-8", buffering=1) as results:
        try:
            rules = _prepare(request)
        except BaseException as problem:
            _tell(results, {"failed": f"{type(problem).__name__}: {problem}"})
            return 3
        torch = importlib.import_module("torch")
        npu = sys.modules.get("torch_npu")
        _tell(results, {"ready": {"torch": torch.__version__, "torch_npu": str(getattr(npu, "__version__", ""))}})
        for index, job in enumerate(request["jobs"]):
            if index < request.get("first", 0):
                continue
            _tell(results, {"start": index})
            _tell(results, {"done": index, "outcome": _run(job, rules, request)})
    return 0


def _prepare(request: dict[str, Any]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")
    torch.set_num_threads(int(request.get("threads", 1)))
    importlib.import_module("torch_npu")
    from npufuse_tui.rules import load_rules

    rules = load_rules([Path(path) for path in request.get("extra_rules", ())])
    return {rule.id: rule for rule in rules}


def _run(job: dict[str, Any], rules: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    from npufuse_tui.language import Text
    from npufuse_tui.proof import execute, knowledge_cases
    from npufuse_tui.proof.captured import materialised
    from npufuse_tui.proof.outcome import skipped

    rule = rules.get(job["rule"])
    if rule is None:
        unknown = Text("the rule {rule} is not known to this npufuse", "此 npufuse 不认识规则 {rule}")
        return skipped(unknown.format(rule=job["rule"]))
    options = {"device": request.get("device", "cpu"), "dtypes": request.get("dtypes") or ()}
    if job["kind"] == "pattern":
        return knowledge_cases.prove(rule, job["variant"], options)
    if job.get("captured"):
        options["captured"] = materialised(job["captured"], job["plan"]["values"])
    return execute.execute(job["plan"], rule, options)


def _tell(results: Any, line: dict[str, Any]) -> None:
    results.write(json.dumps(_finite(line), allow_nan=False) + "\n")
    results.flush()


def _finite(value: Any) -> Any:
    """JSON has no infinity: such a measure is written as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
