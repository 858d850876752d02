"""`progress.md`: where a session stands, for a person who opens its folder."""

from __future__ import annotations

from collections.abc import Callable

from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Decision, Session, Stage, TaskState, Verdict
from npufuse_tui.report import labels, redact
from npufuse_tui.report import markdown as md
from npufuse_tui.report.conclusion import Outcome, conclude, headline, reason_of

_DONE, _NOW, _OPEN = "[x]", "[>]", "[ ]"


def progress_markdown(session: Session, language: str | None = None) -> str:
    """The session so far: stages, decisions, tasks with every state that they passed, and how to go on."""
    said = language or current_language()

    def say(en: str, zh: str, *values: object) -> str:
        return md.sentence(Text(en, zh).format(*values).in_language(said))

    def of(text: Text) -> str:
        return md.sentence(text.in_language(said))

    at = list(Stage).index(session.stage)
    stages = [
        f"{_DONE if place < at else _NOW if place == at else _OPEN} {of(labels.STAGE[stage])}"
        for place, stage in enumerate(Stage)
    ]
    rows = [
        (say("Session", "会话"), md.code(session.id)),
        (say("Started", "开始"), md.sentence(session.created)),
        (say("Repository", "仓库"), md.code(session.repository or session.root)),
        (say("Base commit", "基准提交"), md.code(session.base) if session.base else "-"),
        (say("Branch", "分支"), md.code(session.branch) if session.branch else "-"),
        (say("Backend", "后端"), of(labels.backend(session.backend)) if session.backend else "-"),
        (
            say("Launch command", "启动命令"),
            md.code(redact.command(session.launch.command))
            if session.launch
            else say("not given yet: phase two waits for it", "尚未给出：第二阶段等待该命令"),
        ),
    ]
    blocks = [
        "# " + say("Progress", "进度"),
        " → ".join(stages).replace("[", "\\["),
        md.table((say("What", "项目"), say("Value", "内容")), rows),
    ]
    if session.scan:
        scan = session.scan
        counts = {verdict: sum(one.verdict is verdict for one in scan.candidates) for verdict in Verdict}
        blocks += [
            "## " + say("Scan", "扫描"),
            say(
                "{0} candidates in {1} files: {2} recommended, {3} caution, {4} refused; {5} files skipped.",
                "{1} 个文件中共 {0} 个候选：推荐 {2}，需谨慎 {3}，不替换 {4}；跳过 {5} 个文件。",
                len(scan.candidates),
                scan.files,
                *counts.values(),
                len(scan.skipped),
            ),
        ]
    if session.approvals:
        rules = {one.id: one.rule for one in session.scan.candidates} if session.scan else {}
        blocks += [
            "## " + say("Decisions", "决定"),
            md.table(
                (
                    say("Candidate", "候选"),
                    say("Decision", "决定"),
                    say("Who", "谁"),
                    say("When", "何时"),
                    say("Note", "备注"),
                ),
                [
                    (
                        f"{md.code(one.candidate)} {md.sentence(rules.get(one.candidate, ''))}".rstrip(),
                        of(labels.DECISION[one.decision])
                        + (say(" (edited by hand)", "（手工修改）") if one.edit else ""),
                        md.sentence(one.who),
                        md.sentence(one.when),
                        md.sentence(one.note) or "-",
                    )
                    for one in session.approvals
                ],
            ),
        ]
    if session.baseline or session.tasks:
        blocks += [
            "## " + say("Verification", "验证"),
            "- " + say("Baseline: {0}", "基线：{0}", labels.baseline_line(session.baseline)),
        ]
    if session.tasks:
        head = (
            say("Candidate", "候选"),
            say("State", "状态"),
            say("Operator check", "算子校验"),
            say("Loss", "loss"),
            say("Speed", "性能"),
            say("Conclusion", "结论"),
            say("Why", "理由"),
            say("Commit", "提交"),
        )
        blocks += [
            md.table(head, [_task_row(one, session, said) for one in conclude(session).all]),
            of(headline(session)),
        ]
    blocks += ["## " + say("Next", "下一步"), _next(session, say)]
    return "\n\n".join(blocks) + "\n"


def _task_row(outcome: Outcome, session: Session, language: str) -> tuple[str, ...]:
    task = outcome.task

    def of(text: Text) -> str:
        return md.sentence(text.in_language(language))

    not_yet = task.state in (TaskState.PENDING, TaskState.OP_CHECK, TaskState.LOSS_CHECK, TaskState.SPEED_CHECK)
    return (
        f"{md.code(task.id)} {md.code(outcome.title)}",
        of(labels.STATE[task.state]),
        of(labels.check_line(task.op)) if task.op else "-",
        of(labels.loss_line(task.loss)) if task.loss else "-",
        of(labels.speed_line(task.speed, session.backend)) if task.speed else "-",
        of(labels.CONCLUSION[task.conclusion]) if task.conclusion else "-",
        "-" if not_yet and not task.reason else of(reason_of(outcome, session)),
        md.code(task.commit[:12]) if task.commit else "-",
    )


def _next(session: Session, speak: Callable[..., str]) -> str:
    resume = md.code(f"npufuse --resume {session.id}")
    approved = sum(one.decision is Decision.APPROVED for one in session.approvals)
    if session.stage in (Stage.SCAN, Stage.CANDIDATES, Stage.CHECKPOINT):
        text = speak(
            "Approve or reject candidates, then confirm ({0} approved so far). Nothing has been edited.",
            "批准或拒绝候选，然后确认（目前已批准 {0} 个）。尚未修改任何文件。",
            approved,
        )
    elif session.stage is Stage.APPLY and session.launch is None:
        text = speak("Give the launch command; the verification waits for it.", "请给出启动命令；验证在等待它。")
    elif session.stage is Stage.REPORT:
        text = speak(
            "Read the reports; the branch holds the adopted candidates, one commit each.",
            "请阅读报告；分支上每个采纳的候选对应一个提交。",
        )
    else:
        text = speak("Go on with the verification.", "继续验证。")
    return f"{text} {resume}"
