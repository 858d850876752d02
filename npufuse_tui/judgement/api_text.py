"""API facts as text for a terminal and as data for scripts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from npufuse_tui.judgement.api import ApiFacts, Hit
from npufuse_tui.judgement.api_registry import Gradient
from npufuse_tui.judgement.cells import pad, shorten, width, wrap
from npufuse_tui.language import Text

_GRADIENT = {
    Gradient.FORMULA: Text("yes: gradients flow", "有：梯度可以回传"),
    Gradient.RAISES: Text("no: backward raises an error", "没有：反向会报错"),
    Gradient.SILENT: Text(
        "no: outputs carry no gradient, with a warning at most", "没有：输出不带梯度，至多有一条警告"
    ),
    Gradient.LIKELY: Text("likely: a backward operator is registered", "很可能有：已注册反向算子"),
    Gradient.UNKNOWN: Text("not known for this version", "该版本未知"),
}
_SECTIONS = {
    "description": Text("Description", "功能描述"),
    "arguments": Text("Arguments", "参数说明"),
    "returns": Text("Returns", "输出说明"),
    "constraints": Text("Constraints", "约束说明"),
    "products": Text("Products", "支持的型号"),
    "versions": Text("Versions", "支持版本"),
    "example": Text("Example", "示例"),
}


def show(facts: ApiFacts, columns: int = 100, full: bool = False) -> str:
    """The facts as lines of at most `columns` cells where words allow; `full` adds the whole documentation."""
    lines = [f"torch_npu.{facts.name}  ({facts.version})"]
    if facts.note:
        lines.append(f"  {facts.note}")
    lines += [""]
    for text in facts.signatures or (str(Text("not a registered operator", "不是已注册的算子")),):
        lines += textwrap.wrap(text, columns - 2, initial_indent="  ", subsequent_indent="      ") or [""]
    lines += [""]
    if facts.replaced_by:
        lines.append(_row(Text("deprecated", "已废弃"), Text("use {0}", "请改用 {0}").format(facts.replaced_by)))
    lines.append(_row(Text("backward", "反向"), _GRADIENT[facts.gradient]))
    if facts.returns:
        lines.append(_row(Text("returns", "返回"), facts.returns))
    if facts.dtypes:
        lines.append(_row(Text("dtypes", "数据类型"), ", ".join(facts.dtypes)))
    lines.append(
        _row(
            Text("products", "产品"),
            f"{', '.join(facts.products)}  [{facts.products_from}]"
            if facts.products
            else Text("not said anywhere", "没有资料说明"),
        )
    )
    lines.append(
        _row(Text("recorded in", "有记录的版本"), ", ".join(facts.trains) or Text("no recorded version", "没有"))
    )
    if facts.rules:
        lines.append(_row(Text("rules", "规则"), ", ".join(facts.rules)))
    if facts.limits:
        lines += ["", str(Text("Limits [{0}]", "限制 [{0}]").format(facts.limits_from))]
        lines += [line for one in facts.limits for line in wrap(str(one), columns, "  - ", "    ")]
    if facts.disagreements:
        lines += [
            "",
            str(Text("Documentation and schema disagree (the schema decides)", "文档与接口不一致（以接口为准）")),
        ]
        lines += [line for one in facts.disagreements for line in wrap(str(one), columns, "  ! ", "    ")]
    lines += _documentation(facts, full)
    return "\n".join(lines) + "\n"


def _documentation(facts: ApiFacts, full: bool) -> list[str]:
    entry = facts.documentation
    if entry is None:
        return ["", str(Text("No documentation entry in this package.", "该安装包里没有此算子的文档。"))]
    wanted = _SECTIONS if full else {key: _SECTIONS[key] for key in ("description", "constraints") if key in _SECTIONS}
    lines = ["", str(Text("From the package's documentation (Chinese, verbatim)", "安装包自带文档（原文）"))]
    for key, title in wanted.items():
        text = entry.sections.get(key)
        if text:
            body = text.splitlines()
            cut = len(body) > 14 and not full
            lines += ["", f"  {title}", *(f"    {line}" for line in (body[:14] if cut else body))]
            if cut:
                lines.append(
                    str(Text("    … {0} more lines: --full", "    …… 另有 {0} 行：--full").format(len(body) - 14))
                )
    return lines


def _row(title: Text, value: object) -> str:
    return f"  {pad(str(title), 14)}{value}"


def show_hits(hits: Sequence[Hit], columns: int = 100) -> str:
    """One line for each hit: the name, and the words that were found."""
    if not hits:
        return str(Text("Nothing found.", "没有找到。")) + "\n"
    left = min(max(width(one.name) for one in hits), 48) + 2
    return "".join(f"{pad(one.name, left)}{shorten(one.line.strip(), max(columns - left, 20))}\n" for one in hits)


def show_list(entries: Sequence[ApiFacts], columns: int = 100) -> str:
    """One line for each operator: name, backward, products."""
    head = (
        str(Text("operator", "算子")),
        str(Text("backward", "反向")),
        str(Text("since", "始于")),
        str(Text("products", "产品")),
    )
    short = {
        Gradient.FORMULA: Text("yes", "有"),
        Gradient.LIKELY: Text("likely", "很可能"),
        Gradient.UNKNOWN: Text("?", "?"),
    }
    no = Text("no", "无")
    rows = [
        (one.name, str(short.get(one.gradient, no)), one.since or "-", " ".join(one.products) or "-") for one in entries
    ]
    widths = [max(width(row[place]) for row in (head, *rows)) for place in range(4)]
    return "".join(
        shorten("  ".join(pad(cell, size) for cell, size in zip(row, widths, strict=True)), columns).rstrip() + "\n"
        for row in (head, *rows)
    ) + (f"\n{entries[0].note}\n" if entries and entries[0].note else "")


def facts_json(facts: ApiFacts) -> dict[str, object]:
    """The facts as data; sentences in both languages."""
    return {
        "schema": 1,
        "name": facts.name,
        "version": facts.version,
        "origin": facts.origin,
        "note": _both(facts.note),
        "signatures": list(facts.signatures),
        "arguments": [
            [
                {"name": one.name, "type": one.type, "default": one.default, "keyword_only": one.keyword_only}
                for one in schema.arguments
            ]
            for schema in facts.schemas
        ],
        "backward": facts.gradient.value,
        "returns": _both(facts.returns),
        "dtypes": list(facts.dtypes),
        "products": list(facts.products),
        "products_from": facts.products_from,
        "since": facts.since,
        "recorded_in": list(facts.trains),
        "replaced_by": facts.replaced_by,
        "limits": [_both(one) for one in facts.limits],
        "limits_from": facts.limits_from,
        "disagreements": [_both(one) for one in facts.disagreements],
        "rules": list(facts.rules),
        "documentation": facts.documentation.sections if facts.documentation else None,
    }


def hits_json(hits: Sequence[Hit]) -> dict[str, object]:
    return {"schema": 1, "hits": [{"name": one.name, "where": one.where, "line": one.line} for one in hits]}


def list_json(entries: Sequence[ApiFacts]) -> dict[str, object]:
    return {
        "schema": 1,
        "version": entries[0].version if entries else None,
        "operators": [
            {
                "name": one.name,
                "signatures": list(one.signatures),
                "backward": one.gradient.value,
                "since": one.since,
                "products": list(one.products),
                "replaced_by": one.replaced_by,
            }
            for one in entries
        ],
    }


def _both(text: Text | None) -> dict[str, str] | None:
    return {"en": text.en, "zh": text.zh} if text is not None else None
