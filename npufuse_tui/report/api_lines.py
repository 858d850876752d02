"""What a report says about a fused operator: the facts of `npufuse_tui.judgement.api`, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from npufuse_tui.errors import NpufuseError
from npufuse_tui.language import Text, same
from npufuse_tui.model import Candidate

if TYPE_CHECKING:
    from npufuse_tui.judgement.api import ApiFacts

NO_FACTS = Text("no facts are known about this operator", "没有该算子的资料")


def facts_of(candidates: Iterable[Candidate], source: str | None = None) -> dict[str, ApiFacts]:
    """The facts of each operator that the candidates name, by the name that they give it; unknown ones are left out."""
    from npufuse_tui.judgement.api import lookup

    known: dict[str, ApiFacts] = {}
    for name in sorted({one.api for one in candidates}):
        try:
            known[name] = lookup(name, source)
        except NpufuseError:
            continue
    return known


def rows(name: str, facts: Mapping[str, ApiFacts]) -> list[tuple[Text, Text, bool]]:
    """(what, value, whether the value is code) for one operator."""
    found = facts.get(name)
    if found is None:
        return [(Text("facts", "资料"), NO_FACTS, False)]
    lines: list[tuple[Text, Text, bool]] = [(Text("signature", "签名"), same(one), True) for one in found.signatures]
    if found.returns:
        lines.append((Text("returns", "返回"), found.returns, False))
    lines.append((Text("backward", "反向"), _gradient(found), False))
    if found.dtypes:
        lines.append((Text("dtypes", "数据类型"), same(", ".join(found.dtypes)), False))
    products = Text("{0} (from: {1})", "{0}（来源：{1}）").format(", ".join(found.products), found.products_from)
    lines.append(
        (Text("products", "产品"), products if found.products else Text("not said anywhere", "没有资料说明"), False)
    )
    if found.since:
        lines.append((Text("first recorded in", "最早有记录的版本"), same(found.since), False))
    lines.append((Text("facts are of", "资料所属版本"), same(f"torch_npu {found.version}"), False))
    if found.replaced_by:
        lines.append((Text("deprecated", "已废弃"), Text("use {0}", "请改用 {0}").format(found.replaced_by), False))
    limits = Text("limit", "限制")
    lines += [(limits, one, False) for one in found.limits]
    lines += [
        (Text("documentation and schema disagree", "文档与接口不一致"), one, False) for one in found.disagreements
    ]
    return lines


def _gradient(found: ApiFacts) -> Text:
    return {
        "formula": Text("yes: gradients flow", "有：梯度可以回传"),
        "raises": Text("no: backward raises an error", "没有：反向会报错"),
        "silent": Text("no: outputs carry no gradient", "没有：输出不带梯度"),
        "likely": Text("likely: a backward operator is registered", "很可能有：已注册反向算子"),
    }.get(found.gradient.value, Text("not known for this version", "该版本未知"))
