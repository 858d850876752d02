"""A new argument where the repo keeps its arguments: the edit of its definition, and the code that asks it.

Only where the configuration is at hand in the function, so that the new argument reaches it: a dataclass or another
configuration class of the repo, an argparse namespace, absl's FLAGS, an omegaconf tree.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator

from npufuse_tui.dataflow.lower import FunctionGraph
from npufuse_tui.dataflow.source import ClassInfo, SourceModule, dotted_name
from npufuse_tui.judgement.gates.existing import fields, holders
from npufuse_tui.judgement.gates.parsers import parsers
from npufuse_tui.judgement.surroundings import surroundings
from npufuse_tui.language import Text
from npufuse_tui.model import FileEdit, Gate, GateKind, Splice

NAME = "npu_fused"
HELP = "use fused NPU operators where they fit"
OFF = "use no fused NPU operators"

_FIELD = Text(
    "the repo keeps its settings in {name} ({place}): a new field {field}, on by default, switches the fused branch",
    "仓库的设置位于 {name}（{place}）：新增字段 {field}（默认开启）控制融合分支",
)
_OPTION = Text(
    "the repo reads its arguments with argparse ({place}): --no-npu-fused turns the fused branch off",
    "仓库用 argparse 读取参数（{place}）：--no-npu-fused 关闭融合分支",
)
_FLAG = Text(
    "the repo reads its arguments with absl ({place}): --nonpu_fused turns the fused branch off",
    "仓库用 absl 读取参数（{place}）：--nonpu_fused 关闭融合分支",
)
_TREE = Text(
    "the configuration is an omegaconf tree: +npu_fused=false on the command line turns the fused branch off",
    "配置为 omegaconf：在命令行加 +npu_fused=false 可关闭融合分支",
)

_PUBLISHED = re.compile(r"Pre[tT]rainedConfig")
_NO_FIELDS = frozenset({"NamedTuple", "TypedDict", "Enum", "IntEnum", "StrEnum", "Protocol"})


def new_arguments(function: FunctionGraph) -> Iterator[tuple[Gate, bool]]:
    """The arguments that could be added, nearest first, and whether it is right to choose one unasked.

    A published model configuration (one that checkpoints are saved with) is only edited when a person chooses it.
    """
    module = function.module
    for expression, config, may_be_none in holders(function):
        annotation = _annotation(function, expression)
        if config is not None:
            gate = _field(expression, config, may_be_none)
            if gate is not None:
                yield gate, not _is_published(config)
        elif annotation is not None and annotation.endswith("DictConfig"):
            asked = f'{expression}.get("{NAME}", True)'
            yield Gate(GateKind.ARGUMENT, asked, _TREE), True
        elif expression.rpartition(".")[2] in ("args", "opts", "opt", "options"):
            gate = _option(expression, module)
            if gate is not None:
                yield gate, annotation is None or annotation.endswith("Namespace")
    gate = _absl(module)
    if gate is not None:
        yield gate, True


def _annotation(function: FunctionGraph, expression: str) -> str | None:
    """How the parameter that a configuration came in as is annotated."""
    name = expression.rpartition(".")[2]
    nodes = [function.scope.node]
    if "." in expression and function.scope.owner is not None:
        nodes = [one for key, one in function.scope.owner.methods.items() if key == "__init__"]
    for node in nodes:
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if one.arg == name and one.annotation is not None:
                return ast.unparse(one.annotation)
    return None


def _is_published(config: ClassInfo) -> bool:
    return any(_PUBLISHED.search(ast.unparse(base)) for one in (config, *config.bases()) for base in one.node.bases)


def _field(expression: str, config: ClassInfo, may_be_none: bool) -> Gate | None:
    """A field at the end of the class's fields."""
    node, module = config.node, config.module
    bases = {(dotted_name(base) or "").rpartition(".")[2] for base in node.bases}
    if bases & _NO_FIELDS or NAME in fields(config) or _has_subclasses(config):
        return None
    place = [one for one in node.body if isinstance(one, (ast.AnnAssign, ast.Assign))]
    if not place or place[-1].lineno == node.lineno:
        return None
    last = place[-1]
    indent = _line(module.source, last.lineno)[: last.col_offset]
    if indent.strip() or any(one.lineno == last.end_lineno for one in node.body if one is not last):
        return None
    described = any(
        isinstance(one.value, ast.Call) and any(keyword.arg == "metadata" for keyword in one.value.keywords)
        for one in place
        if isinstance(one, ast.AnnAssign)
    )
    value = f'field(default=True, metadata={{"help": "{HELP}"}})' if described else "True"
    annotated = any(isinstance(one, ast.AnnAssign) for one in place)
    text = f"{indent}{NAME}: bool = {value}" if annotated else f"{indent}{NAME} = {value}"
    asked = f'getattr({expression}, "{NAME}", True)' if may_be_none else f"{expression}.{NAME}"
    why = _FIELD.format(name=node.name, place=f"{module.file}:{node.lineno}", field=NAME)
    edit = _behind(module.file, module.source, last, text)
    return Gate(GateKind.ARGUMENT, asked, why, (), (edit,))


def _has_subclasses(config: ClassInfo) -> bool:
    """Whether a class of the repo inherits from it: a field with a default would then stand before fields without."""
    module = config.module
    words = re.compile(rb"^[ \t]*class\s+\w+\s*\([^)]*\b" + config.name.encode() + rb"\b", re.MULTILINE)
    if words.search(module.source):
        return True
    around = surroundings(module.repository) if module.repository is not None else None
    name = config.name.encode()  # looked for as such first: most names are in no other file
    return around is not None and any(name in data for _, data in around.python()) and around.first(words) is not None


def _option(expression: str, module: SourceModule) -> Gate | None:
    """An option of the repo's parser, where there is one parser only, so that it is the one that fills `args`."""
    found = parsers(module.repository) if module.repository is not None else ()
    if len(found) != 1 or any(one.name == NAME for one in found[0].options):
        return None
    parser = found[0]
    indent = _line(parser.source, parser.last.lineno)[: parser.last.col_offset]
    if indent.strip():
        return None
    text = (
        f'{indent}{parser.variable}.add_argument("--no-npu-fused", dest="{NAME}", action="store_false", help="{OFF}")'
    )
    why = _OPTION.format(place=f"{parser.file}:{parser.last.lineno}")
    edit = _behind(parser.file, parser.source, parser.last, text)
    return Gate(GateKind.ARGUMENT, f'getattr({expression}, "{NAME}", True)', why, (), (edit,))


def _absl(module: SourceModule) -> Gate | None:
    """A flag beside the file's other flags."""
    value = module.constants.get("FLAGS")
    if value is None or not (dotted_name(value) or "").endswith("flags.FLAGS"):
        return None
    defined = [
        one
        for one in module.tree.body
        if isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and re.fullmatch(r"(?:absl\.)?flags\.DEFINE_\w+", dotted_name(one.value.func) or "")
    ]
    if not defined or f'"{NAME}"'.encode() in module.source:
        return None
    function = dotted_name(defined[-1].value.func)  # type: ignore[attr-defined]
    assert function is not None
    text = f'{function.rpartition(".")[0]}.DEFINE_bool("{NAME}", True, "{HELP}")'
    why = _FLAG.format(place=f"{module.file}:{defined[-1].lineno}")
    edit = _behind(module.file, module.source, defined[-1], text)
    return Gate(GateKind.ARGUMENT, f"FLAGS.{NAME}", why, (), (edit,))


def _line(source: bytes, number: int) -> str:
    return source.split(b"\n")[number - 1].decode("utf-8", "replace")


def _behind(file: str, source: bytes, statement: ast.stmt, text: str) -> FileEdit:
    """The edit that puts a line behind a statement."""
    lines = source.split(b"\n")
    place = sum(len(line) + 1 for line in lines[: statement.end_lineno or statement.lineno])
    digest = hashlib.sha256(source).hexdigest()
    if place > len(source):  # the last line has no end
        return FileEdit(file, digest, (Splice(len(source), len(source), "\n" + text),))
    return FileEdit(file, digest, (Splice(place, place, text + "\n"),))
