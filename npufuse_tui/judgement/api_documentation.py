"""The documentation inside a torch_npu wheel, read as text.

`torch_npu/_op_plugin_docs.py` holds one call ``_add_torch_npu_docstr("name", "text")`` for each documented operator.
The file is parsed, never run. The text is Chinese; its sections come in several spellings.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npufuse_tui.judgement.api_schema import Schema, parse_schema

SECTIONS = ("prototype", "description", "arguments", "returns", "constraints", "products", "versions", "example")

_HEADINGS = {
    "接口原型": "prototype",
    "函数原型": "prototype",
    "功能描述": "description",
    "功能描述实现": "description",
    "功能实现描述": "description",
    "功能说明": "description",
    "参数说明": "arguments",
    "参数解释": "arguments",
    "参数": "arguments",
    "输入说明": "arguments",
    "关键字参数": "arguments",
    "输出说明": "returns",
    "返回值说明": "returns",
    "返回值": "returns",
    "约束说明": "constraints",
    "约束条件": "constraints",
    "输入约束": "constraints",
    "场景限制": "constraints",
    "支持的型号": "products",
    "支持的芯片型号": "products",
    "支持的NPU产品": "products",
    "产品支持情况": "products",
    "支持版本": "versions",
    "支持的PyTorch版本": "versions",
    "示例": "example",
    "调用示例": "example",
    "单算子调用": "example",
    "单算子模式调用": "example",
    "图模式调用": "example",
}
_NUMBERED_EXAMPLE = re.compile(r"^(?:调用)?示例[一二三四五六七八九\d]+$")
_ADDER = "_add_torch_npu_docstr"
_PRODUCTS = (
    ("A3", re.compile(r"Atlas\s*A3|Atlas\s*900\s*A3|A3\s*(?:训练|推理)")),
    ("A2", re.compile(r"Atlas\s*A2|A2\s*(?:训练|推理)|Atlas\s*800[IT]\s*A2|910B")),
    ("950", re.compile(r"Ascend\s*950|Atlas\s*350|Atlas\s*A5")),
    ("310P", re.compile(r"Atlas\s*推理系列|310P")),
    ("910A", re.compile(r"Atlas\s*训练系列|910A")),
)


@dataclass(frozen=True)
class Documentation:
    """What the wheel says about one operator: its sections by our names for them, verbatim."""

    name: str
    sections: dict[str, str]
    prototype: Schema | None

    @property
    def text(self) -> str:
        return "\n\n".join(self.sections.values())


class Documents(Mapping[str, Documentation]):
    """The entries of one file, each read when it is asked for: there are two hundred, and mostly one is wanted."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._read: dict[str, Documentation] = {}

    def __getitem__(self, name: str) -> Documentation:
        if name not in self._read:
            self._read[name] = _entry(name, self._texts[name])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, name: str) -> str:
        """The whole text of an entry, as it stands in the file."""
        return self._texts.get(name, "")


def read_documentation(source: str) -> Documents:
    """Every entry of the file's text, by operator. Of entries of one name the last counts, as it does on import.

    Raises SyntaxError when the text is no Python.
    """
    entries: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # formulas in the text hold backslashes that Python warns of
        body = ast.parse(source).body
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != _ADDER:
            continue
        values = [one.value for one in call.args if isinstance(one, ast.Constant)]
        if len(values) >= 2 and isinstance(values[0], str) and isinstance(values[1], str):
            entries[values[0]] = values[1]
    return Documents(entries)


def products_of(text: str) -> tuple[str, ...]:
    """The short names of the products that a text speaks of: A2, A3, 950, 310P, 910A."""
    return tuple(short for short, pattern in _PRODUCTS if pattern.search(text))


def _entry(name: str, text: str) -> Documentation:
    parts: dict[str, list[str]] = {}
    current = "prototype"
    for line in text.replace("\u200b", "").strip().splitlines():
        bare = line.strip()
        head, _, rest = bare.partition("：") if "：" in bare else bare.partition(":")
        section = _HEADINGS.get(head.strip())
        if section is None and _NUMBERED_EXAMPLE.match(head.strip()):
            section = "example"
        # A heading stands alone on its line; "参数说明：x" inside prose is rare and reads the same.
        if section is not None and (not rest.strip() or section in ("description", "products")):
            current = section
            if rest.strip():
                parts.setdefault(current, []).append(rest.strip())
            continue
        parts.setdefault(current, []).append(line.rstrip())
    sections = {key: "\n".join(parts[key]).strip() for key in SECTIONS if "\n".join(parts.get(key, [])).strip()}
    return Documentation(name, sections, _prototype(name, sections.get("prototype", "")))


def _prototype(name: str, text: str) -> Schema | None:
    for place in re.finditer(r"(\w[\w.]*)\s*\(", text):
        if place[1] != name and not place[1].endswith(f".{name}"):
            continue
        try:
            return parse_schema(" ".join(text[place.end(1) - len(name) :].split()))
        except ValueError:
            return None
    return None
