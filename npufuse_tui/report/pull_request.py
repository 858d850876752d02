"""The text of a pull request that a person can paste: what changes, the proof, and what was not measured."""

from __future__ import annotations

from npufuse_tui import __version__
from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Session, Severity
from npufuse_tui.report import facts, labels, redact
from npufuse_tui.report import markdown as md
from npufuse_tui.report.conclusion import conclude, how_much, reason_of, total_saved
from npufuse_tui.report.opportunity import place_of


def pull_request_text(session: Session, language: str | None = None) -> str:
    """A title line, an empty line, and the description in Markdown."""
    said = language or current_language()

    def say(en: str, zh: str, *values: object) -> str:
        return md.sentence(Text(en, zh).format(*values).in_language(said))

    def of(text: Text) -> str:
        return md.sentence(text.in_language(said))

    found = conclude(session)
    if not found.adopt:
        return (
            say("No candidate passed, so there is nothing to merge.", "没有候选通过验证，因此没有可合并的内容。") + "\n"
        )
    apis = sorted({one.candidate.api if one.candidate else one.task.rule for one in found.adopt})
    title = Text("Use fused NPU operators: {0}", "使用 NPU 融合算子：{0}").format(", ".join(apis)).in_language(said)
    rows = [
        (
            md.code(place_of(one.candidate) if one.candidate else one.task.id),
            md.code(one.candidate.api if one.candidate else one.task.rule),
            of(labels.check_line(one.task.op)),
            of(labels.loss_line(one.task.loss)),
            of(how_much(one, session)),
            md.code(one.task.commit[:12]) if one.task.commit else "-",
        )
        for one in found.adopt
    ]
    head = (
        say("Place", "位置"),
        say("Operator", "算子"),
        say("Operator check", "算子校验"),
        say("Loss", "loss"),
        say("Gain", "收益"),
        say("Commit", "提交"),
    )
    blocks = [
        " ".join(md.visible(title).split()),
        "## " + say("What changes", "改动内容"),
        say(
            "Each place below gets a fused branch behind a switch; the original code stays, verbatim, as the "
            "other branch. Each was verified alone against {0}.",
            "下列每处都在开关之后增加融合分支；原代码原样保留为另一分支。每一处都单独与 {0} 对比验证。",
            session.base or Text("the unmodified code", "未修改的代码"),
        ),
        md.table(head, rows),
    ]
    total = total_saved(found.adopt)
    if total:
        blocks.append(of(total))
    gates = sorted({one.candidate.gate.expression for one in found.adopt if one.candidate and one.candidate.gate})
    if gates:
        blocks += ["## " + say("Switches", "开关"), "\n".join(f"- {md.code(one)}" for one in gates)]
    risks = [
        f"- {md.code(place_of(one.candidate))}: {md.code(risk.code)}: {of(risk.message)}"
        for one in found.adopt
        if one.candidate
        for risk in one.candidate.risks
        if risk.severity is not Severity.INFO
    ]
    if risks:
        blocks += ["## " + say("Risks to look at in review", "评审时请关注的风险"), "\n".join(dict.fromkeys(risks))]
    blocks += [
        "## " + say("How it was verified", "验证方式"),
        "- " + say("Baseline: {0}", "基线：{0}", labels.baseline_line(session.baseline)),
    ]
    lines = [
        f"- {of(what)}: {md.code(value.in_language(said)) if code else of(value)}"
        for what, value, code in facts.environment(session)
        if what.en not in ("Session", "Repository", "npufuse", "Environment", "Interpreter", "Launch command")
    ]
    if session.launch:
        lines += [
            say("Command, the same for every run ({0} steps):", "命令，所有运行相同（{0} 步）：", session.launch.steps),
            md.fence(redact.command(session.launch.command), "sh"),
        ]
    blocks[-1] += "\n" + "\n".join(line for line in lines if line.startswith("- "))
    blocks += [line for line in lines if not line.startswith("- ")]
    if found.not_measured:
        blocks += ["## " + say("Not measured", "未测量"), "\n".join(f"- {of(one)}" for one in found.not_measured)]
    if found.reject or found.blocked:
        tried = [
            f"- {md.code(one.title)}: {of(one.word)}: {of(reason_of(one, session))}"
            for one in (*found.reject, *found.blocked)
        ]
        blocks += ["## " + say("Tried and not in this branch", "尝试过但不在本分支"), "\n".join(tried)]
    blocks.append(say("Made with npufuse {0}.", "由 npufuse {0} 生成。", __version__))
    return "\n\n".join(blocks) + "\n"
