"""The identification report as Markdown: every rule, every candidate by priority, and the order to take them in.

Its twin for a browser is `identification_page`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from npufuse_tui import __version__
from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Candidate, Priority, ScanResult, Severity
from npufuse_tui.report import api_lines, labels
from npufuse_tui.report import markdown as md
from npufuse_tui.report.opportunity import Opportunity, gain, opportunities, place_of, suggested_order

if TYPE_CHECKING:
    from npufuse_tui.judgement.api import ApiFacts

_MARK = {Severity.INFO: "ℹ", Severity.WARNING: "⚠", Severity.DANGER: "✖"}


def identification_markdown(
    result: ScanResult, language: str | None = None, facts: Mapping[str, ApiFacts] | None = None
) -> str:
    """The report in one language. `facts`: what is known of each operator (`api_lines.facts_of`), by its name."""
    return _Report(result, language or current_language(), facts or {}).text()


class _Report:
    """One language, one result; each method is one chapter, as Markdown blocks."""

    def __init__(self, result: ScanResult, language: str, facts: Mapping[str, ApiFacts]) -> None:
        self.result = result
        self.language = language
        self.facts = facts
        self.groups = opportunities(result.candidates)

    def text(self) -> str:
        blocks = [
            *self.head(),
            *self.summary(),
            *self.order(),
            *self.candidates(),
            *self.operators(),
            *self.skipped(),
            *self.how_to_read(),
        ]
        return "\n\n".join(blocks) + "\n"

    def say(self, en: str, zh: str, *values: object) -> str:
        return self.of(Text(en, zh).format(*values))

    def of(self, text: Text) -> str:
        return md.sentence(text.in_language(self.language))

    def head(self) -> list[str]:
        result = self.result
        tree = (
            self.say("with changes that are not committed", "含未提交的改动")
            if result.dirty
            else self.say("clean", "干净")
        )
        rows = [
            (self.say("Folder", "目录"), md.code(result.root)),
            (
                self.say("Commit", "提交"),
                f"{md.code(result.commit)}, {tree}" if result.commit else self.say("none", "无"),
            ),
            (
                self.say("Files", "文件"),
                self.say(
                    "{0} looked at, {1} parsed, {2} skipped",
                    "查看 {0} 个，解析 {1} 个，跳过 {2} 个",
                    result.files,
                    result.parsed,
                    len(result.skipped),
                ),
            ),
            (self.say("Time", "用时"), labels.seconds(result.seconds)),
            (self.say("Target", "目标"), md.sentence(result.target)),
            ("npufuse", __version__),
        ]
        promise = self.say(
            "Nothing was changed. Every gain below is an estimate counted from the code, not a measurement.",
            "本阶段没有改动任何文件。以下收益均为按代码计数的估计，不是实测。",
        )
        return [
            "# " + self.say("Operators that could be fused", "可融合算子识别报告"),
            promise,
            md.table((self.say("What", "项目"), self.say("Value", "内容")), rows),
        ]

    def summary(self) -> list[str]:
        saved: dict[str, int] = {}
        for group in self.groups:
            if group.launches_saved is not None and group.first.verdict.value != "refused":
                saved[group.first.rule] = saved.get(group.first.rule, 0) + group.launches_saved
        rows = [
            (
                md.code(one.id),
                md.code(one.api),
                str(one.found),
                str(one.recommended),
                str(one.caution),
                str(one.refused),
                str(saved[one.id]) if one.id in saved else "-",
                self.of(one.reason) if one.reason.in_language(self.language) else "-",
            )
            for one in sorted(self.result.rules, key=lambda one: one.id)
        ]
        head = (
            self.say("Rule", "规则"),
            self.say("Fused operator", "融合算子"),
            self.say("Found", "找到"),
            self.say("Recommended", "推荐"),
            self.say("Caution", "需谨慎"),
            self.say("Refused", "不替换"),
            self.say("Launches saved (estimated)", "减少的下发（估计）"),
            self.say("Note", "说明"),
        )
        return ["## " + self.say("Summary by operator", "按算子汇总"), md.table(head, rows, right=(2, 3, 4, 5, 6))]

    def order(self) -> list[str]:
        title = "## " + self.say("Suggested order for phase two", "第二阶段建议顺序")
        turns = suggested_order(self.result.candidates)
        if not turns:
            return [title, self.say("There is nothing to replace.", "没有可替换的位置。")]
        rows = [
            (
                str(number),
                md.code(turn.opportunity.first.rule),
                md.code(place_of(turn.opportunity.first)),
                str(len(turn.opportunity.places)),
                self.of(turn.reason),
            )
            for number, turn in enumerate(turns, start=1)
        ]
        head = (
            "#",
            self.say("Rule", "规则"),
            self.say("First place", "首个位置"),
            self.say("Places", "处数"),
            self.say("Why here", "理由"),
        )
        why = self.say(
            "Recommended before caution, then priority, then the larger counted gain, then the fewer risks. "
            "Each is verified alone against the unmodified code.",
            "先推荐、后谨慎；再按优先级、按计数收益从大到小、按风险从少到多。每一项都单独与未修改的代码对比验证。",
        )
        return [title, why, md.table(head, rows, right=(0, 3))]

    def candidates(self) -> list[str]:
        blocks = ["## " + self.say("Candidates", "候选")]
        if not self.groups:
            blocks.append(self.say("No candidate was found.", "没有找到候选。"))
        number = 0
        for priority in Priority:
            groups = [one for one in self.groups if one.first.priority is priority]
            if groups:
                blocks.append("### " + self.say("Priority: {0}", "优先级：{0}", labels.PRIORITY[priority]))
            for group in groups:
                number += 1
                blocks += self.group(number, group)
        return blocks

    def group(self, number: int, group: Opportunity) -> list[str]:
        first = group.first
        name = f"{md.sentence(first.rule)}: {md.sentence(first.qualname)}"
        title = f"#### {number}. {name}, {self.of(labels.VERDICT[first.verdict])}"
        rows = [
            (self.say("Id", "编号"), md.code(first.id)),
            (self.say("Place", "位置"), md.code(place_of(first))),
            (self.say("Fused operator", "融合算子"), md.code(first.api)),
            (self.say("Variant", "写法"), md.code(first.variant)),
            (self.say("Why", "理由"), self.of(first.reason)),
            (self.say("Expected gain", "预期收益"), self.of(gain(first.estimate))),
            (self.say("Executable proof", "可执行证明"), self.of(labels.check_line(first.check))),
        ]
        if first.generated_from:
            rows.append((self.say("Generated from", "生成自"), md.code(first.generated_from)))
        if first.gate:
            rows.append((self.say("Switch", "开关"), f"{md.code(first.gate.expression)}: {self.of(first.gate.why)}"))
        blocks = [title, md.table((self.say("What", "项目"), self.say("Value", "内容")), rows)]
        if len(group.places) > 1:
            blocks += [
                self.say("The same block stands at {0} places:", "相同的代码块共有 {0} 处：", len(group.places)),
                self.places(group),
            ]
        blocks += ["**" + self.say("Original code", "原始代码") + "**", md.fence(first.original, "python")]
        if first.diff:
            blocks += ["**" + self.say("Replacement", "替换") + "**", md.fence(first.diff, "diff")]
        elif first.replacement:
            blocks += ["**" + self.say("Replacement", "替换") + "**", md.fence(first.replacement, "python")]
        else:
            blocks.append(self.say("There is no replacement to show: {0}", "没有可展示的替换：{0}", first.reason))
        blocks += self.risks(group) + self.reuse(first) + self.chain(first)
        blocks += ["**" + self.say("The operator", "算子资料") + "**", self.api(first.api)]
        return blocks

    def places(self, group: Opportunity) -> str:
        rows = [
            (
                md.code(one.id),
                md.code(place_of(one)),
                md.code(one.qualname),
                md.code(one.gate.expression) if one.gate else "-",
                ", ".join(f"{md.code(risk.code)}{f' ({risk.line})' if risk.line else ''}" for risk in one.risks) or "-",
                self.of(labels.status(one.check.status)) if one.check else "-",
            )
            for one in group.places
        ]
        head = (
            self.say("Id", "编号"),
            self.say("Place", "位置"),
            self.say("Function", "函数"),
            self.say("Switch", "开关"),
            self.say("Risks (line)", "风险（行）"),
            self.say("Proof", "证明"),
        )
        return md.table(head, rows)

    def risks(self, group: Opportunity) -> list[str]:
        title = "**" + self.say("Risks", "风险") + "**"
        found = [*((group.first, risk) for risk in group.first.risks), *group.other_risks]
        if not found:
            return [title, self.say("None was found.", "未发现。")]
        items = []
        for one, risk in found:
            where = f"{risk.file or one.file}:{risk.line}" if risk.line else risk.file
            items.append(
                f"- {_MARK[risk.severity]} {self.of(labels.SEVERITY[risk.severity])}, {md.code(risk.code)}: "
                f"{self.of(risk.message)}" + (f" ({md.code(where)})" if where else "")
            )
        return [title, "\n".join(items)]

    def reuse(self, one: Candidate) -> list[str]:
        title = "**" + self.say("Already in the repo", "仓库中可复用") + "**"
        if not one.reuse:
            return [title, self.say("Nothing that this edit could use was found.", "未发现可供本次修改使用的代码。")]
        return [title, "\n".join(f"- {md.code(use.what)} ({md.code(f'{use.file}:{use.line}')})" for use in one.reuse)]

    def chain(self, one: Candidate) -> list[str]:
        if not one.chain:
            return []
        head = (
            "#",
            self.say("Operator", "算子"),
            self.say("Code", "代码"),
            self.say("Line", "行"),
            self.say("Launches", "下发"),
            self.say("Reads", "读"),
            self.say("Writes", "写"),
        )
        rows = [
            (
                str(place),
                md.code(step.op),
                md.code(step.source),
                str(step.line),
                str(step.launches),
                str(step.reads),
                str(step.writes),
            )
            for place, step in enumerate(one.chain, start=1)
        ]
        summary = Text("The chain: {0} steps, in the order in which they run", "算子链：{0} 步，按执行顺序").format(
            len(one.chain)
        )
        return [md.details(summary.in_language(self.language), md.table(head, rows, right=(0, 3, 4, 5, 6)))]

    def api(self, name: str) -> str:
        lines = [f"- {md.code(name)}"]
        for what, value, is_code in api_lines.rows(name, self.facts):
            if what.en in ("limit", "documentation and schema disagree"):
                continue  # said once for each operator, below
            said = value.in_language(self.language)
            lines.append(f"- {self.of(what)}: {md.code(said) if is_code else md.sentence(said)}")
        return "\n".join(lines)

    def operators(self) -> list[str]:
        names = sorted({one.api for one in self.result.candidates})
        blocks = []
        for name in names:
            rows = [
                (self.of(what), md.code(value.in_language(self.language)) if is_code else self.of(value))
                for what, value, is_code in api_lines.rows(name, self.facts)
            ]
            blocks += [f"### {md.code(name)}", md.table((self.say("What", "项目"), self.say("Value", "内容")), rows)]
        return ["## " + self.say("What is known of the operators", "算子资料"), *blocks] if blocks else []

    def skipped(self) -> list[str]:
        title = "## " + self.say("Skipped files", "跳过的文件")
        if not self.result.skipped:
            return [title, self.say("No file was skipped.", "没有跳过任何文件。")]
        rows = [
            (md.code(one.file), self.of(one.reason))
            for one in sorted(self.result.skipped, key=lambda one: (one.file, one.reason.en))
        ]
        return [title, md.table((self.say("File", "文件"), self.say("Reason", "原因")), rows)]

    def how_to_read(self) -> list[str]:
        return [
            "## " + self.say("How to read this", "阅读说明"),
            "\n".join(
                "- " + line
                for line in (
                    self.say(
                        "Estimated: counted from the dataflow graph of the code. A launch is one kernel sent to the "
                        "device; a pass is one read or write of a whole tensor in device memory. Neither is a time; "
                        "npufuse explain has a time model, with its constants.",
                        "估计：按代码的数据流图计数。一次下发是向设备发送一个算子；一次显存读写是完整读或写一个张量。"
                        "二者都不是时间；时间模型及其常数见 npufuse explain。",
                    ),
                    self.say(
                        "Executable proof: the block, cut out verbatim, run against its replacement on random tensors. "
                        "On CPU emulation it says that the numbers agree there, and nothing about speed.",
                        "可执行证明：原样取出代码块，与替换代码在随机张量上对比运行。"
                        "在 CPU 仿真上，它只说明数值在仿真中一致，不说明速度。",
                    ),
                    self.say(
                        "Recommended may be approved in bulk, caution one by one, refused is shown only.",
                        "“推荐”可以批量批准，“需谨慎”逐个批准，“不替换”仅供查看。",
                    ),
                )
            ),
        ]
