"""The validation report of one candidate, and the index of a session: pages for a browser, each one file.

The conclusion stands first; everything below it is what led there. Times of an emulated run are veiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Approval, Candidate, Conclusion, Decision, RunRecord, Session, Task, TaskState
from npufuse_tui.report import api_lines, diff_view, facts, labels, redact
from npufuse_tui.report.conclusion import Outcome, conclude, headline, how_much, reason_of, total_saved
from npufuse_tui.report.metrics import Comparison, Series, columns, comparison, thinned
from npufuse_tui.report.opportunity import gain, place_of
from npufuse_tui.report.page import render

_LONGEST_LOG = 8_000
_MOST_CASES = 500


@dataclass(frozen=True, slots=True)
class Gauge:
    """One of the checks as the head of a page shows it. `tone`: "good", "bad", "open" (not known) or "veiled"."""

    anchor: str
    title: Text
    word: Text
    tone: str
    line: Text


def candidate_page(
    session: Session,
    task: Task,
    folder: Path,
    language: str | None = None,
    index: str = "index.html",
    metrics: str = "",
) -> str:
    """The report of one task. `folder`: the session's, where its metrics are.

    `index`: the link back; `metrics`: the link to the data; each "" for none.
    """
    candidate = next((one for one in session.scan.candidates if one.id == task.id), None) if session.scan else None
    outcome = Outcome(task, candidate)
    compared = comparison(session, task, folder)
    approval = _approval(session, task.id)
    runs = (*(session.baseline.runs if session.baseline else ()), *task.runs)
    rule_facts = api_lines.facts_of([candidate]) if candidate else {}
    return render(
        "candidate.html.j2",
        language or current_language(),
        session=session,
        task=task,
        candidate=candidate,
        title=outcome.title,
        word=outcome.word,
        tone=tone_of(task),
        reason=reason_of(outcome, session),
        gauges=gauges(session, task),
        emulated=labels.emulated(session.backend),
        gain=gain(candidate.estimate if candidate else None),
        how_much=how_much(outcome, session),
        place=place_of(candidate) if candidate else task.id,
        charts=_charts(session, task, compared),
        chart_note=_chart_note(session, task, compared),
        speed_veil=_speed_veil(session, task),
        speed_line=labels.speed_line(task.speed, session.backend),
        files=diff_view.parse(candidate.diff) if candidate and candidate.diff else (),
        approval=approval,
        by_hand=_by_hand(approval, candidate),
        edited=approval is not None and approval.edit is not None,
        cases=task.op.per_case[:_MOST_CASES] if task.op else (),
        environment=facts.environment(session),
        runs=[_run(one) for one in runs],
        api_rows=api_lines.rows(candidate.api, rule_facts) if candidate else [],
        index=index,
        metrics=metrics,
    )


def index_page(
    session: Session, pages: dict[str, str], language: str | None = None, others: list[tuple[Text, str]] | None = None
) -> str:
    """The session at a glance. `pages`: task id → the name of its page; `others`: further files of the report."""
    found = conclude(session)
    return render(
        "index.html.j2",
        language or current_language(),
        session=session,
        headline=headline(session),
        emulated=labels.emulated(session.backend),
        total=total_saved(found.adopt),
        counts=[
            (labels.CONCLUSION[Conclusion.ADOPT], len(found.adopt), "good"),
            (labels.CONCLUSION[Conclusion.REJECT], len(found.reject), "bad"),
            (labels.CONCLUSION[Conclusion.BLOCKED], len(found.blocked), "open"),
            (Text("unfinished", "未完成"), len(found.unfinished), "open"),
        ],
        rows=[
            {
                "outcome": one,
                "page": pages.get(one.task.id, ""),
                "place": place_of(one.candidate) if one.candidate else one.task.id,
                "tone": tone_of(one.task),
                "reason": reason_of(one, session),
                "how_much": how_much(one, session),
                "gauges": gauges(session, one.task),
            }
            for one in found.all
        ],
        not_measured=found.not_measured,
        baseline=labels.baseline_line(session.baseline),
        environment=facts.environment(session),
        others=others or [],
    )


def tone_of(task: Task) -> str:
    """The colour of a conclusion; the word is always beside it."""
    if task.conclusion is Conclusion.ADOPT:
        return "good"
    if task.conclusion is Conclusion.REJECT or task.state in (TaskState.OP_FAILED, TaskState.LOSS_FAILED):
        return "bad"
    return "open"


def gauges(session: Session, task: Task) -> list[Gauge]:
    """The three checks in their order, each with what it said or why it said nothing."""
    op_tone = {"passed": "good", "failed": "bad"}.get(task.op.status, "open") if task.op else "open"
    loss_tone = {True: "good", False: "bad", None: "open"}[task.loss.passed] if task.loss else "open"
    loss_word = Text("not run", "未运行")
    if task.loss:
        loss_word = {
            True: labels.status("passed"),
            False: labels.status("failed"),
            None: Text("cannot be judged", "无法判定"),
        }[task.loss.passed]
    measured = _speed_veil(session, task) is None
    speed_word = labels.speed_conclusion(task.speed.conclusion if task.speed and measured else "not measured")
    speed_tone = {"faster": "good", "slower": "bad"}.get(
        task.speed.conclusion if task.speed and measured else "", "open"
    )
    return [
        Gauge(
            "operator",
            Text("Operator check", "算子校验"),
            labels.status(task.op.status) if task.op else Text("not run", "未运行"),
            op_tone,
            labels.check_line(task.op),
        ),
        Gauge("loss", Text("Loss check", "loss 校验"), loss_word, loss_tone, labels.loss_line(task.loss)),
        Gauge(
            "speed",
            Text("Speed check", "性能校验"),
            speed_word,
            speed_tone if measured else "veiled",
            labels.speed_line(task.speed, session.backend),
        ),
    ]


def _speed_veil(session: Session, task: Task) -> Text | None:
    """Why the speed panel is veiled; None when a speed was measured."""
    measured = (
        task.speed is not None and task.speed.conclusion != "not measured" and not labels.emulated(session.backend)
    )
    return None if measured else labels.speed_line(task.speed, session.backend)


def _charts(session: Session, task: Task, compared: Comparison | None) -> dict[str, Any] | None:
    """What the page's script draws: columns of steps, and the limits that they are judged by."""
    if compared is None:
        return None
    fail = task.loss.first_fail_step if task.loss else None
    steps = thinned(compared, always=(fail,))
    again = compared.again
    noise = task.loss.noise_max_rel_diff if task.loss else None
    if noise is None and session.baseline:
        noise = session.baseline.noise_max_rel_diff
    return {
        **columns(compared, steps),
        "again_loss": columns(Comparison(again, again), steps)["base_loss"] if again and again.loss else [],
        "limit": task.loss.limit if task.loss else None,
        "noise": noise,
        "first_fail_step": fail,
        "veiled": _speed_veil(session, task) is not None,
        "emulated": labels.emulated(session.backend),
        "total": len(compared.steps),
    }


def _chart_note(session: Session, task: Task, compared: Comparison | None) -> Text | None:
    """What the reader must know of the data behind the charts, or why there are none."""
    if compared is None:
        return Text(
            "There are no curves: the loss check did not run for this candidate.", "没有曲线：该候选未运行 loss 校验。"
        )
    said: list[Text] = []
    for name, series in ((Text("baseline", "基线"), compared.base), (Text("candidate", "候选"), compared.fused)):
        said += _series_note(name, series)
    if len(compared.steps) > len(thinned(compared)):
        said.append(
            Text(
                "{0} of {1} steps are in this page, the extremes of each stretch among them; "
                "all are in the metrics file.",
                "本页含 {1} 步中的 {0} 步（保留每段的极值）；全部数据见指标文件。",
            ).format(len(thinned(compared)), len(compared.steps))
        )
    if not said:
        return None
    first, *more = said
    for one in more:
        first = labels.join(first, one, " ", "")
    return first


def _series_note(name: Text, series: Series) -> list[Text]:
    if series.missing:
        return [Text("{0}: {1}.", "{0}：{1}。").format(name, series.missing)]
    if series.unread:
        return [
            Text("{0}: {1} line(s) of the metrics could not be read.", "{0}：有 {1} 行指标无法读取。").format(
                name, series.unread
            )
        ]
    return []


def _approval(session: Session, candidate: str) -> Approval | None:
    own = [one for one in session.approvals if one.candidate == candidate and one.decision is Decision.APPROVED]
    return own[-1] if own else None


def _shown(approval: Approval, candidate: Candidate | None) -> bool:
    """Whether the candidate's difference is the one that was approved, hand-made or not."""
    own, approved = candidate.edit if candidate else None, approval.edit
    return own is not None and approved is not None and own.digest == approved.digest


def _by_hand(approval: Approval | None, candidate: Candidate | None) -> list[tuple[str, str]]:
    """The text that a person put in place of the candidate's own, where the difference does not show it."""
    if approval is None or approval.edit is None or _shown(approval, candidate):
        return []
    return [(one.file, "\n".join(splice.text for splice in one.splices)) for one in approval.edit.files]


def _run(run: RunRecord) -> dict[str, Any]:
    return {
        "label": labels.run_label(run.label),
        "command": redact.command(run.command),
        "ended": labels.ended(run.ended),
        "tone": "good"
        if run.ended == "finished" and run.exit_code == 0
        else "bad"
        if run.ended in ("failed", "timed out")
        else "open",
        "last_lines": redact.command(run.last_lines)[-_LONGEST_LOG:],
        "record": run,
    }


def page_name(task: Task) -> str:
    """A file name from our own words only: whatever the id holds, it leaves no folder."""
    kept = "".join(one if one.isascii() and (one.isalnum() or one in "-_") else "_" for one in f"{task.rule}-{task.id}")
    return f"{kept[:100]}.html"
