"""What is known about an operator of torch_npu, for one version of it, and whether a call of it is valid there.

Three sources are merged: the schemas (which decide), the documentation inside the package, and `knowledge/`. Where
the documentation and the schema disagree, that is said. torch_npu is never imported.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npufuse_tui.errors import WrongInput
from npufuse_tui.judgement.api_call import check_replacement
from npufuse_tui.judgement.api_documentation import Documentation, products_of
from npufuse_tui.judgement.api_knowledge import deprecated, known, text_of, texts_of
from npufuse_tui.judgement.api_registry import Catalogue, Gradient, catalogue, first_trains, known_versions
from npufuse_tui.judgement.api_schema import Schema, same_default, signature
from npufuse_tui.language import Text

if TYPE_CHECKING:
    from npufuse_tui.rules import Rule


@dataclass(frozen=True)
class ApiFacts:
    """All that is known of one operator in one version.

    `since` names the first recorded release train that has it; `trains` all that do. `products_from` says where the
    products are from: "documentation", "knowledge", "rule", or "" when nobody names any.
    """

    name: str
    version: str
    origin: str
    schemas: tuple[Schema, ...]
    gradient: Gradient
    trains: tuple[str, ...]
    products: tuple[str, ...]
    products_from: str
    dtypes: tuple[str, ...]
    returns: Text | None
    limits: tuple[Text, ...]
    limits_from: str
    replaced_by: str | None
    disagreements: tuple[Text, ...]
    documentation: Documentation | None
    rules: tuple[str, ...]
    note: Text | None = None

    @property
    def since(self) -> str | None:
        return self.trains[0] if self.trains else None

    @property
    def signatures(self) -> tuple[str, ...]:
        return tuple(signature(one) for one in self.schemas)


@dataclass(frozen=True, slots=True)
class Hit:
    """One operator that a search found; `where` is "name", "knowledge" or "documentation", `line` the words around."""

    name: str
    where: str
    line: str


def bare_name(name: str) -> str:
    """`torch_npu.npu_rms_norm`, `torch.ops.npu.npu_rms_norm.default` and `npu::npu_rms_norm` → `npu_rms_norm`."""
    name = name.strip().removesuffix("()").rpartition("::")[2]
    for prefix in ("torch.ops.npu.", "ops.npu.", "torch_npu.npu.", "torch_npu."):
        name = name.removeprefix(prefix)
    return name.split(".")[0]


def lookup(name: str, source: str | Path | None = None, python: str | None = None) -> ApiFacts:
    """The facts about the operator `name` (with or without `torch_npu.`) in the version that `source` names.

    `source`: a version, a wheel, a folder, or None for the torch_npu of the interpreter `python`.
    Raises WrongInput for an operator that the version does not have, with what is near to it and where it exists.
    """
    return facts(bare_name(name), catalogue(source, python))


def facts(name: str, versions: Catalogue) -> ApiFacts:
    """As `lookup`, with the catalogue at hand."""
    operator = versions.operators.get(name)
    documentation = versions.documentation.get(name)
    entry = known(name)
    if operator is None and documentation is None:
        raise _unknown(name, versions)
    schemas = operator.schemas if operator else ()
    rule = next((one for one in _rules() if bare_name(one.api) == name), None)
    products, products_from = _products(documentation, entry, rule)
    return ApiFacts(
        name=name,
        version=versions.version,
        origin=versions.origin,
        schemas=schemas,
        gradient=operator.gradient if operator else Gradient.UNKNOWN,
        trains=first_trains(name),
        products=products,
        products_from=products_from,
        dtypes=tuple(entry.get("dtypes", rule.dtypes if rule else ())),
        returns=text_of(entry.get("returns")),
        limits=texts_of(entry.get("limits")),
        limits_from=str(entry.get("source", "")),
        replaced_by=deprecated().get(name),
        disagreements=(
            *_disagreements(schemas, documentation),
            *(texts_of(entry.get("disputes")) if documentation else ()),
        ),
        documentation=documentation,
        rules=tuple(one.id for one in _rules() if bare_name(one.api) == name),
        note=versions.note,
    )


def search(word: str, source: str | Path | None = None, python: str | None = None) -> tuple[Hit, ...]:
    """The operators that `word` names or describes, those whose name holds it first. Case does not matter.

    Several words must all be found. Raises WrongInput when there is no word.
    """
    words = word.casefold().split()
    if not words:
        raise WrongInput(
            Text(
                "give a word to search for, for example: npufuse api search norm",
                "请给出搜索词，例如：npufuse api search norm",
            )
        )
    versions = catalogue(source, python)
    hits: list[Hit] = []
    for name in sorted(set(versions.operators) | set(versions.documentation)):
        lowered = name.casefold()
        if all(one in lowered or one in lowered.replace("_", "") for one in words):
            hits.append(Hit(name, "name", _purpose(versions, name)))
            continue
        said = [text for text in (text_of(known(name).get("returns")), *texts_of(known(name).get("limits"))) if text]
        line = next(
            (str(text) for text in said if all(one in f"{text.en} {text.zh}".casefold() for one in words)), None
        )
        if line is not None:
            hits.append(Hit(name, "knowledge", line))
            continue
        text = versions.documentation.text(name)
        if text and all(one in text.casefold() for one in words):
            lines = [one.strip() for one in text.splitlines() if words[0] in one.casefold()]
            hits.append(Hit(name, "documentation", lines[0] if lines else ""))
    order = {"name": 0, "knowledge": 1, "documentation": 2}
    return tuple(sorted(hits, key=lambda one: (order[one.where], one.name)))


def list_apis(source: str | Path | None = None, python: str | None = None) -> tuple[ApiFacts, ...]:
    """The operators that a person may call (no leading underscore, no backward halves), in the order of their names."""
    versions = catalogue(source, python)
    names = [one for one in versions.operators if not one.startswith("_") and not one.endswith(("_backward", "_grad"))]
    return tuple(facts(name, versions) for name in sorted(names))


def _purpose(versions: Catalogue, name: str) -> str:
    operator = versions.operators.get(name)
    if operator is not None and operator.schemas:
        return signature(operator.schemas[0])
    entry = versions.documentation.get(name)
    return entry.sections.get("description", "").partition("\n")[0] if entry else ""


def _products(
    documentation: Documentation | None, entry: Mapping[str, Any], rule: Rule | None
) -> tuple[tuple[str, ...], str]:
    if documentation is not None:
        named = products_of(documentation.sections.get("products", ""))
        if named:
            more = tuple(one for one in entry.get("products", ()) if one not in named)
            return named + more, "documentation, knowledge" if more else "documentation"
    if entry.get("products"):
        return tuple(entry["products"]), "knowledge"
    if rule is not None and rule.products:
        return tuple(rule.products), "rule"
    if documentation is not None and (named := products_of(documentation.text)):
        return named, "documentation"
    return (), ""


def _disagreements(schemas: tuple[Schema, ...], documentation: Documentation | None) -> tuple[Text, ...]:
    """Where the documented prototype differs from every overload, told against the nearest one."""
    prototype = documentation.prototype if documentation else None
    if prototype is None or not schemas:
        return ()
    told = min((_against(prototype, schema) for schema in schemas), key=len)
    renamed = re_named_self(prototype)
    return (*renamed, *told)


def re_named_self(prototype: Schema) -> tuple[Text, ...]:
    """The documentation's ``self`` is no name that Python knows."""
    if "(Tensor self" not in prototype.text and "(self" not in prototype.text:
        return ()
    return (
        Text(
            "documentation calls the first argument self; by keyword it is input, so give it by position",
            "文档把第一个参数写作 self；按关键字传参时它叫 input，因此请按位置传入",
        ),
    )


def _against(documented: Schema, real: Schema) -> list[Text]:
    told: list[Text] = []
    missing = [one for one in real.arguments if one.name not in documented.names]
    extra = [one for one in documented.arguments if one.name not in real.names]
    # The first argument may carry another name in prose; position pairs it.
    if missing and extra and missing[0] is real.arguments[0] and extra[0] is documented.arguments[0]:
        first_real, first_documented = missing.pop(0), extra.pop(0)
        told.append(
            Text(
                "documentation calls the first argument {a}, the schema {b}", "第一个参数文档写作 {a}，接口实际为 {b}"
            ).format(a=first_documented.name, b=first_real.name)
        )
    if missing:
        told.append(
            Text("not in the documentation: {names}", "文档中没有的参数：{names}").format(
                names=", ".join(one.name for one in missing)
            )
        )
    if extra:
        told.append(
            Text("documented but not accepted: {names}", "文档有而接口不接受的参数：{names}").format(
                names=", ".join(one.name for one in extra)
            )
        )
    by_name = {one.name: one for one in documented.arguments}
    for argument in real.arguments:
        said = by_name.get(argument.name)
        if said is None:
            continue
        if said.default is not None and not same_default(said.default, argument.default):
            told.append(
                Text(
                    "{name}: documentation says the default is {a}, the schema {b}",
                    "{name}：文档称默认值为 {a}，接口实际为 {b}",
                ).format(
                    name=argument.name,
                    a=said.default,
                    b=argument.default
                    if argument.default is not None
                    else Text("none: it must be given", "无，必须传入"),
                )
            )
        if said.keyword_only != argument.keyword_only:
            told.append(
                Text("{name}: by keyword only, says {who}", "{name}：{who}称只能按关键字传入").format(
                    name=argument.name,
                    who=Text("the schema alone", "只有接口")
                    if argument.keyword_only
                    else Text("the documentation alone", "只有文档"),
                )
            )
    if documented.returns and real.returns and len(documented.returns) != len(real.returns):
        told.append(
            Text("documentation says {a} results, the schema {b}", "文档称返回 {a} 个结果，接口实际返回 {b} 个").format(
                a=len(documented.returns), b=len(real.returns)
            )
        )
    return told


def _unknown(name: str, versions: Catalogue) -> WrongInput:
    elsewhere = first_trains(name)
    near = difflib.get_close_matches(name, [*versions.operators, *versions.documentation], n=3, cutoff=0.6)
    if elsewhere:
        return WrongInput(
            Text(
                "torch_npu {version} has no {name}; these versions have it: {trains}",
                "torch_npu {version} 没有 {name}；有它的版本：{trains}",
            ).format(version=versions.version, name=name, trains=", ".join(elsewhere))
        )
    return WrongInput(
        Text(
            "torch_npu {version} has no {name}; {near}",
            "torch_npu {version} 没有 {name}；{near}",
        ).format(
            version=versions.version,
            name=name,
            near=Text("near to it: {names}", "相近的有：{names}").format(names=", ".join(near))
            if near
            else Text("try: npufuse api search {name}", "可以试试：npufuse api search {name}").format(name=name),
        )
    )


def replacement_of(name: str) -> str | None:
    """What took the place of a deprecated operator, or None for one that is not deprecated."""
    return deprecated().get(bare_name(name))


@lru_cache(maxsize=1)
def _rules() -> tuple[Rule, ...]:
    from npufuse_tui.rules import load_rules

    return load_rules()


__all__ = [
    "ApiFacts",
    "Gradient",
    "Hit",
    "bare_name",
    "catalogue",
    "check_replacement",
    "facts",
    "known_versions",
    "list_apis",
    "lookup",
    "replacement_of",
    "search",
]
