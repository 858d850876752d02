"""What a proof found, as plain data in the fields of `npufuse_tui.model.Check`, and its sentences. Runs in the child.

A reason is a `Text`; as JSON that is a list of the English and the Chinese sentence.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from npufuse_tui.language import Text, same

Outcome = dict[str, Any]

KEPT = Text("the guard keeps the original code here", "守卫条件在此保留原代码")
_ALWAYS_KEPT = Text(
    "the guard keeps the original code for all of these inputs, so the fused call never runs on them",
    "守卫条件对所有这些输入都保留原代码，因此融合调用不会在其上运行",
)


def skipped(reason: Text) -> Outcome:
    """The outcome of a plan that said nothing, with the reason."""
    return {
        "status": "skipped",
        "cases": 0,
        "worst_cosine": None,
        "worst_abs_diff": None,
        "worst_grad_cosine": None,
        "dtype_equal": None,
        "reason": reason,
        "per_case": [],
    }


def failed(reason: Text) -> Outcome:
    """The outcome of a plan that is wrong before anything was measured."""
    return {**skipped(reason), "status": "failed"}


def summed_up(results: Sequence[Outcome], left_out: Sequence[Text], approximate: bool, lost_gradients: bool) -> Outcome:
    """All cases as one outcome. `approximate`: failures near zero are told and not counted."""
    if all(one["reason"] == KEPT for one in results):
        return skipped(_ALWAYS_KEPT)
    wrong = [one for one in results if not one["passed"]]
    counted = [one for one in wrong if not (approximate and one["layout"] == "near zero")]
    reason: Text | None = None
    if counted:
        first = counted[0]
        reason = Text(
            "{wrong} of {all} cases failed; {where}: {why}",
            "{all} 个用例中 {wrong} 个失败；{where}：{why}",
        ).format(
            wrong=len(counted),
            all=len(results),
            where=f"{first['shape']} {first['dtype']} {first['layout']}",
            why=first["reason"],
        )
    elif wrong:
        reason = Text("differs near zero, as the rule says: {why}", "在接近零处有差异，规则已说明这一点：{why}").format(
            why=wrong[0]["reason"]
        )
    elif lost_gradients:
        reason = Text(
            "run without gradients, since the original raises with them", "未计算梯度，因为原代码在求梯度时报错"
        )
    elif left_out:
        reason = Text(
            "{count} cases left out, since the original raises in them; {first}",
            "跳过 {count} 个用例，因为原代码在其中报错；{first}",
        ).format(count=len(left_out), first=left_out[0])
    answers = [one["dtype_equal"] for one in results if one["dtype_equal"] is not None]
    return {
        "status": "failed" if counted else "passed",
        "cases": len(results),
        "worst_cosine": smallest(one["cosine"] for one in results),
        "worst_abs_diff": largest(one["abs_diff"] for one in results),
        "worst_grad_cosine": smallest(one["grad_cosine"] for one in results),
        "dtype_equal": all(answers) if answers else None,
        "reason": reason,
        "per_case": [{key: value for key, value in one.items() if key != "dtype_equal"} for one in results],
    }


def joined(reasons: Sequence[Text]) -> Text | None:
    """Several reasons as one, None for none."""
    return Text("; ".join(one.en for one in reasons), "；".join(one.zh for one in reasons)) if reasons else None


def said(problem: BaseException) -> Text:
    """Class and first line of an error, and the line of the plan's code that raised it."""
    if isinstance(problem, KeyboardInterrupt):
        sys.exit(130)
    first = (str(problem).strip().splitlines() or [""])[0][:300]
    frames = [one for one in traceback.extract_tb(problem.__traceback__) if one.filename.startswith("<")]
    where = f" ({frames[-1].filename.strip('<>')}:{frames[-1].lineno})" if frames else ""
    return same(f"{type(problem).__name__}: {first}{where}")


def largest(values: Iterable[float | None]) -> float | None:
    return max((one for one in values if one is not None), default=None)


def smallest(values: Iterable[float | None]) -> float | None:
    return min((one for one in values if one is not None), default=None)
