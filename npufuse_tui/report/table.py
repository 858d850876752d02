"""`scan --format table`: candidates, rules and skipped files for a terminal of any width, without colour."""

from __future__ import annotations

import shutil
from collections import Counter

from npufuse_tui.judgement.cells import pad, shorten, width
from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Candidate, RuleSummary, ScanResult, Severity, SkippedFile, Verdict
from npufuse_tui.report import labels
from npufuse_tui.report.contract_json import in_order

NARROWEST = 40
_SKIPPED_SHOWN = 20
_GAP = "  "


def scan_table(result: ScanResult, language: str | None = None, columns: int | None = None) -> str:
    """The result of a scan as text, no line of it wider than `columns` cells (by default the terminal's width)."""
    said = language or current_language()
    room = max(columns or shutil.get_terminal_size((100, 24)).columns, NARROWEST)
    parts = [
        _candidates(in_order(result.candidates), said, room),
        _rules(result.rules, said, room),
        _skipped(result.skipped, said, room),
        [shorten(line, room) for line in _summary(result, said)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Text that cannot steer a terminal: control, format and surrogate characters are written as escapes."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _candidates(found: list[Candidate], language: str, room: int) -> list[str]:
    if not found:
        return [shorten(Text("No candidate was found.", "没有找到候选。").in_language(language), room)]
    head = [
        text.in_language(language)
        for text in (
            Text("VERDICT", "结论"),
            Text("ID", "编号"),
            Text("RULE", "规则"),
            Text("PRIORITY", "优先级"),
            Text("PLACE", "位置"),
            Text("FUNCTION", "函数"),
            Text("CHECK", "校验"),
            Text("RISKS", "风险"),
        )
    ]
    rows = [_cells(one, language) for one in found]
    return _fit([head, *rows], room)


def _cells(one: Candidate, language: str) -> list[str]:
    lines = f"{one.start_line}-{one.end_line}" if one.end_line != one.start_line else f"{one.start_line}"
    return [
        labels.VERDICT[one.verdict].in_language(language),
        plain(one.id),
        plain(one.rule),
        labels.PRIORITY[one.priority].in_language(language),
        f"{plain(one.file)}:{lines}",
        plain(one.qualname),
        labels.status(one.check.status).in_language(language) if one.check else "-",
        _notes(one, language),
    ]


def _notes(one: Candidate, language: str) -> str:
    """What a person must not miss: the reason where it is refused, else the risks above the level of information."""
    if one.verdict is Verdict.REFUSED:
        return plain(one.reason.in_language(language))
    return ", ".join(dict.fromkeys(plain(risk.code) for risk in one.risks if risk.severity is not Severity.INFO)) or "-"


def _fit(rows: list[list[str]], room: int) -> list[str]:
    """Rows as aligned lines. Where they do not fit, places are cut on the left and notes on the right; where even that
    does not do, each row becomes a small block of its own, so that nothing that decides is lost."""
    kept = _without_empty_check(rows)
    natural = [max(width(row[place]) for row in kept) for place in range(len(kept[0]))]
    places, functions, notes = 4, 5, len(natural) - 1
    fixed = sum(size for place, size in enumerate(natural) if place not in (places, functions, notes))
    free = room - fixed - len(_GAP) * (len(natural) - 1)
    wanted = {place: natural[place] for place in (places, functions, notes)}
    least = {places: min(wanted[places], 26), functions: min(wanted[functions], 14), notes: min(wanted[notes], 16)}
    if free < sum(least.values()):
        return _blocks(kept, room)
    spare = free - sum(least.values())
    sizes = natural.copy()
    for place in (places, functions, notes):
        more = min(spare, wanted[place] - least[place])
        sizes[place] = least[place] + more
        spare -= more
    return [
        _GAP.join(
            pad(_end_of(cell, size) if place == places else shorten(cell, size), size)
            for place, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ).rstrip()
        for row in kept
    ]


def _without_empty_check(rows: list[list[str]]) -> list[list[str]]:
    """No column for a check that nobody asked for."""
    return rows if any(row[6] != "-" for row in rows[1:]) else [[*row[:6], row[7]] for row in rows]


def _blocks(rows: list[list[str]], room: int) -> list[str]:
    lines: list[str] = []
    for row in rows[1:]:
        lines.append(shorten(_GAP.join((row[1], row[2], row[0], *(row[6:-1]))), room))
        lines.append("  " + _end_of(row[4], room - 2))
        lines.append("  " + shorten(f"{row[5]}{_GAP}{'' if row[-1] == '-' else row[-1]}".rstrip(), room - 2))
    return lines


def _end_of(text: str, cells: int) -> str:
    """`text` cut on its left, where paths are alike."""
    if width(text) <= cells:
        return text
    kept, used = "", 3
    for one in reversed(text):
        used += width(one)
        if used > cells:
            break
        kept = one + kept
    return "..." + kept


def _rules(rules: tuple[RuleSummary, ...], language: str, room: int) -> list[str]:
    if not rules:
        return []
    head = [
        text.in_language(language)
        for text in (
            Text("RULE", "规则"),
            Text("FOUND", "找到"),
            Text("RECOMMENDED", "推荐"),
            Text("CAUTION", "谨慎"),
            Text("REFUSED", "不替换"),
            Text("NOTE", "说明"),
        )
    ]
    rows = [
        [
            plain(one.id),
            *(str(n) for n in (one.found, one.recommended, one.caution, one.refused)),
            plain(one.reason.in_language(language)),
        ]
        for one in sorted(rules, key=lambda one: one.id)
    ]
    sizes = [max(width(row[place]) for row in [head, *rows]) for place in range(len(head))]
    used = sum(sizes[:-1]) + len(_GAP) * (len(sizes) - 1)
    if room - used < 12:  # the note goes under its row
        lines = []
        for row in [head, *rows]:
            cells = (
                pad(cell, size, place > 0) for place, (cell, size) in enumerate(zip(row[:-1], sizes[:-1], strict=True))
            )
            lines.append(shorten(_GAP.join(cells), room))
            if row is not head and row[-1]:
                lines.append("  " + shorten(row[-1], room - 2))
        return lines
    return [
        (
            _GAP.join(
                pad(cell, size, place > 0) for place, (cell, size) in enumerate(zip(row[:-1], sizes[:-1], strict=True))
            )
            + _GAP
            + shorten(row[-1], room - used)
        ).rstrip()
        for row in [head, *rows]
    ]


def _skipped(skipped: tuple[SkippedFile, ...], language: str, room: int) -> list[str]:
    if not skipped:
        return []
    lines = [Text("Skipped files:", "跳过的文件：").in_language(language)]
    shown = sorted(skipped, key=lambda one: (one.file, one.reason.en))
    for one in shown[:_SKIPPED_SHOWN]:
        lines.append("  " + shorten(f"{plain(one.file)}: {plain(one.reason.in_language(language))}", room - 2))
    rest = Counter(plain(one.reason.in_language(language)) for one in shown[_SKIPPED_SHOWN:])
    if rest:
        more = Text(
            "... and {0} more (all of them with --format md or json)", "……另有 {0} 个（全部见 --format md 或 json）"
        )
        lines.append("  " + shorten(more.format(sum(rest.values())).in_language(language), room - 2))
    return lines


def _summary(result: ScanResult, language: str) -> list[str]:
    by = Counter(one.verdict for one in result.candidates)
    first = Text(
        "{0} candidates: {1} recommended, {2} caution, {3} refused.",
        "共 {0} 个候选：推荐 {1}，需谨慎 {2}，不替换 {3}。",
    ).format(len(result.candidates), by[Verdict.RECOMMENDED], by[Verdict.CAUTION], by[Verdict.REFUSED])
    second = Text(
        "{0} files looked at, {1} parsed, {2} from the cache, {3} skipped, in {4}.",
        "查看 {0} 个文件，解析 {1} 个，取自缓存 {2} 个，跳过 {3} 个，用时 {4}。",
    ).format(result.files, result.parsed, result.cached, len(result.skipped), labels.seconds(result.seconds))
    return [first.in_language(language), second.in_language(language)]
