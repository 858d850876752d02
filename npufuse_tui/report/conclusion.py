"""What a session came to: which candidates to adopt, which not, how much they bring, why, and what was not measured."""

from __future__ import annotations

from dataclasses import dataclass

from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Candidate, Conclusion, Decision, Session, Task, TaskState
from npufuse_tui.report import labels
from npufuse_tui.report import markdown as md
from npufuse_tui.report.opportunity import basis, gain, place_of

ENVIRONMENT_NOTE = "environment."


@dataclass(frozen=True, slots=True)
class Outcome:
    """One approved candidate and what its verification said. `candidate` is None when the scan no longer has it."""

    task: Task
    candidate: Candidate | None

    @property
    def title(self) -> str:
        return (
            f"{self.task.rule}: {place_of(self.candidate)}" if self.candidate else f"{self.task.rule}: {self.task.id}"
        )

    @property
    def word(self) -> Text:
        """The conclusion, or the state where there is none yet."""
        return labels.CONCLUSION[self.task.conclusion] if self.task.conclusion else labels.STATE[self.task.state]


@dataclass(frozen=True, slots=True)
class SessionConclusion:
    """The session's outcomes by conclusion, in the order of the tasks."""

    adopt: tuple[Outcome, ...]
    reject: tuple[Outcome, ...]
    blocked: tuple[Outcome, ...]
    unfinished: tuple[Outcome, ...]
    not_measured: tuple[Text, ...]

    @property
    def all(self) -> tuple[Outcome, ...]:
        return self.adopt + self.reject + self.blocked + self.unfinished


def conclude(session: Session) -> SessionConclusion:
    """The outcomes of a session at any moment of it."""
    candidates = {one.id: one for one in session.scan.candidates} if session.scan else {}
    outcomes = [Outcome(task, candidates.get(task.id)) for task in session.tasks]

    def of(conclusion: Conclusion | None) -> tuple[Outcome, ...]:
        return tuple(one for one in outcomes if one.task.conclusion is conclusion)

    unfinished = of(None)
    blocked = tuple(one for one in unfinished if one.task.state is TaskState.BLOCKED)
    rest = tuple(one for one in unfinished if one.task.state is not TaskState.BLOCKED)
    return SessionConclusion(
        of(Conclusion.ADOPT), of(Conclusion.REJECT), of(Conclusion.BLOCKED) + blocked, rest, not_measured(session)
    )


def reason_of(outcome: Outcome, session: Session) -> Text:
    """Why the task ended as it did: the recorded reason, else what its checks say."""
    task = outcome.task
    if task.reason:
        return task.reason
    if task.state is TaskState.OP_FAILED:
        return Text("operator check: {0}", "算子校验：{0}").format(labels.check_line(task.op))
    if task.state is TaskState.LOSS_FAILED:
        return Text("loss check: {0}", "loss 校验：{0}").format(labels.loss_line(task.loss))
    if task.state is TaskState.BLOCKED:
        return Text("no reason was recorded", "未记录原因")
    if task.conclusion is Conclusion.ADOPT:
        return Text("loss: {0}; speed: {1}", "loss：{0}；性能：{1}").format(
            labels.loss_line(task.loss), labels.speed_line(task.speed, session.backend)
        )
    return labels.STATE[task.state]


def not_measured(session: Session) -> tuple[Text, ...]:
    """Everything that a reader might take for measured and is not."""
    said: list[Text] = []
    if labels.emulated(session.backend):
        said.append(
            Text(
                "Speed: every run used CPU emulation of torch_npu, so no step time here says anything about an NPU.",
                "性能：所有运行均使用 torch_npu 的 CPU 仿真，此处任何耗时都不代表 NPU。",
            )
        )
        said.append(
            Text(
                "Numbers on an NPU: the emulator follows the operator's documented arithmetic; "
                "the hardware's own rounding was not seen.",
                "NPU 上的数值：仿真依照算子文档的算法；硬件自身的舍入行为未经验证。",
            )
        )
    if session.backend is None and session.tasks:
        said.append(Text("The backend of the runs was not recorded.", "未记录运行所用的后端。"))
    if session.tasks and not (session.baseline and session.baseline.noise_max_rel_diff is not None):
        said.append(
            Text(
                "Run-to-run noise of the baseline: it was not run twice to the end.",
                "基线自身的波动：基线没有完整运行两次。",
            )
        )
    for task in session.tasks:
        name = f"{task.rule} {task.id}"
        if task.conclusion is Conclusion.REJECT or task.state in (TaskState.OP_FAILED, TaskState.LOSS_FAILED):
            if task.loss is None:
                said.append(
                    Text(
                        "{0}: the loss check did not run, because the candidate was rejected before.",
                        "{0}：loss 校验未运行，因为候选此前已被否决。",
                    ).format(name)
                )
            elif task.loss.passed is None:
                said.append(
                    Text("{0}: the loss could not be judged: {1}", "{0}：loss 无法判定：{1}").format(
                        name, task.loss.reason
                    )
                )
            continue
        if task.op is None or task.op.status == "skipped":
            said.append(Text("{0}: operator check {1}", "{0}：算子校验{1}").format(name, labels.check_line(task.op)))
        if task.loss is None:
            said.append(Text("{0}: the loss check did not run.", "{0}：loss 校验未运行。").format(name))
        elif task.loss.passed is None:
            said.append(
                Text("{0}: the loss could not be judged: {1}", "{0}：loss 无法判定：{1}").format(name, task.loss.reason)
            )
        if not labels.emulated(session.backend) and (task.speed is None or task.speed.conclusion == "not measured"):
            said.append(
                Text("{0}: speed {1}", "{0}：性能{1}").format(name, labels.speed_line(task.speed, session.backend))
            )
    if session.scan:
        tried = {task.id for task in session.tasks}
        approved = [
            one for one in session.approvals if one.decision is Decision.APPROVED and one.candidate not in tried
        ]
        if approved and session.tasks:
            said.append(
                Text("Approved and not verified: {0}", "已批准但未验证：{0}").format(
                    ", ".join(one.candidate for one in approved)
                )
            )
    return tuple(said)


def headline(session: Session) -> Text:
    """The conclusion in one sentence."""
    found = conclude(session)
    if not session.tasks:
        return Text("Nothing was verified in this session.", "本次会话没有验证任何候选。")
    said = Text(
        "Adopt {0} of {1}, reject {2}, blocked {3}, unfinished {4}.",
        "{1} 项中采纳 {0} 项，不采纳 {2} 项，受阻 {3} 项，未完成 {4} 项。",
    ).format(len(found.adopt), len(session.tasks), len(found.reject), len(found.blocked), len(found.unfinished))
    how = (
        Text("Numerics were compared on CPU emulation; speed was not measured.", "数值在 CPU 仿真上对比；性能未测量。")
        if labels.emulated(session.backend)
        else None
    )
    return Text(f"{said.en} {how.en}", f"{said.zh}{how.zh}") if how else said


def how_much(outcome: Outcome, session: Session) -> Text:
    """What adopting it brings: the measured speed where there is one, else the estimate, said as such."""
    speed = outcome.task.speed
    if speed and not labels.emulated(session.backend) and speed.conclusion != "not measured":
        return Text("measured: {0}", "实测：{0}").format(labels.speed_line(speed, session.backend))
    estimate = outcome.candidate.estimate if outcome.candidate else None
    if estimate is None:
        return Text("speed {0}; no estimate", "性能{0}；无估计").format(labels.speed_line(speed, session.backend))
    return Text("speed {0}; {1}", "性能{0}；{1}").format(labels.speed_line(speed, session.backend), gain(estimate))


def conclusion_markdown(session: Session, language: str | None = None) -> str:
    """The session's conclusion as a Markdown page."""
    said = language or current_language()

    def say(en: str, zh: str) -> str:
        return md.sentence(Text(en, zh).in_language(said))

    def of(text: Text) -> str:
        return md.sentence(text.in_language(said))

    found = conclude(session)
    blocks = [
        "# " + say("Conclusion of session", "会话结论") + f" {md.code(session.id)}",
        md.sentence(headline(session).in_language(said)),
    ]
    chapters = (
        (Text("Adopt", "采纳"), found.adopt),
        (Text("Do not adopt", "不采纳"), found.reject),
        (Text("Blocked", "受阻"), found.blocked),
        (Text("Unfinished", "未完成"), found.unfinished),
    )
    for title, outcomes in chapters:
        if not outcomes:
            continue
        blocks.append(f"## {title.in_language(said)}")
        for one in outcomes:
            lines = [
                f"- {md.code(one.title)} ({md.code(one.task.id)})",
                f"  - {say('Why', '理由')}: {md.sentence(reason_of(one, session).in_language(said))}",
                f"  - {say('Operator check', '算子校验')}: {of(labels.check_line(one.task.op))}",
                f"  - {say('Loss', 'loss')}: {of(labels.loss_line(one.task.loss))}",
                f"  - {say('How much', '收益')}: {md.sentence(how_much(one, session).in_language(said))}",
            ]
            if one.task.commit:
                lines.append(f"  - {say('Commit', '提交')}: {md.code(one.task.commit)}")
            blocks.append("\n".join(lines))
    blocks.append("## " + say("What was not measured", "未测量的内容"))
    blocks.append(
        "\n".join(f"- {md.sentence(one.in_language(said))}" for one in found.not_measured)
        or say("Nothing is missing.", "无遗漏。")
    )
    total = total_saved(found.adopt)
    if total:
        blocks.insert(2, md.sentence(total.in_language(said)))
    return "\n\n".join(blocks) + "\n"


def total_saved(outcomes: tuple[Outcome, ...]) -> Text | None:
    """Launches that the adopted ones save together, each run once: a count, and said to be one."""
    counted = [one.candidate.estimate for one in outcomes if one.candidate and one.candidate.estimate]
    if not counted:
        return None
    return Text(
        "Adopted together: {0} launches fewer each time the {1} block(s) run once (estimated, {2}).",
        "采纳项合计：{1} 个代码块各执行一次共少 {0} 次下发（估计，{2}）。",
    ).format(sum(one.launches_before - one.launches_after for one in counted), len(counted), basis(counted[0]))
