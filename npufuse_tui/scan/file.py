"""One file → its candidates. This runs in the scan's worker processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import npufuse_tui.dataflow.expressions  # noqa: F401  (lowering and expressions import each other)
from npufuse_tui.dataflow.lower import FunctionGraph, lower_function
from npufuse_tui.dataflow.match import Match, find
from npufuse_tui.dataflow.pattern import CompiledPattern, compile_pattern
from npufuse_tui.dataflow.repository import Repository, digest_of
from npufuse_tui.dataflow.source import Scope, SourceModule, read_module, scopes
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, SkippedFile
from npufuse_tui.rewrite.text import SourceText
from npufuse_tui.rules import Rule, load_rules
from npufuse_tui.scan.candidates import blocks, candidate
from npufuse_tui.scan.discover import LARGEST
from npufuse_tui.scan.prefilter import FunctionFilter, can_match
from npufuse_tui.scan.result import FileResult
from npufuse_tui.scan.roots import writes
from npufuse_tui.scan.select import largest


def scan_file(
    repository: Repository, file: str, path: Path, rules: Sequence[Rule], source: bytes | None = None
) -> FileResult:
    """Look at one file. What is wrong with it is said in the result; nothing is raised for a bad file."""
    try:
        if source is None:
            if path.stat().st_size > LARGEST:
                return _skipped(file, 0, Text("larger than {size} bytes", "大于 {size} 字节").format(size=LARGEST))
            source = path.read_bytes()
    except OSError as error:
        return _skipped(file, 0, Text("cannot be read: {why}", "无法读取：{why}").format(why=error.strerror))
    fitting = can_match(source, rules)
    if not fitting:
        return FileResult(file, len(source), False, digest=digest_of(source))
    try:
        module = read_module(file, source, repository)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        why = Text("does not parse: line {line}: {why}", "无法解析：第 {line} 行：{why}")
        return _skipped(file, len(source), why.format(line=line or "?", why=getattr(error, "msg", str(error))))
    except (RecursionError, MemoryError):
        return _skipped(file, len(source), Text("an expression is nested too deeply", "表达式嵌套过深"))
    try:
        found = tuple(_candidates(module, fitting))
    except RecursionError:
        return _skipped(file, len(source), Text("an expression is nested too deeply", "表达式嵌套过深"))
    origin = generated_from(module, repository)
    if origin is not None:
        found = tuple(replace(one, generated_from=origin) for one in found)
    return FileResult(
        file, len(source), True, found, digest=digest_of(source), dependencies=repository.dependencies(file)
    )


def _skipped(file: str, size: int, reason: Text) -> FileResult:
    return FileResult(file, size, False, (), SkippedFile(file, reason))


def _roots(rule: Rule) -> frozenset[str]:
    """The operations that the rule's patterns end in."""
    return frozenset(pattern.root.op for pattern in compiled(rule))


def compiled(rule: Rule) -> tuple[CompiledPattern, ...]:
    """The rule's patterns as graphs, compiled once a process."""
    known = _compiled.get(id(rule))
    if known is None:
        known = _compiled[id(rule)] = tuple(compile_pattern(rule, pattern) for pattern in rule.patterns)
    return known


_compiled: dict[int, tuple[CompiledPattern, ...]] = {}


def _candidates(module: SourceModule, rules: Sequence[Rule]) -> list[Candidate]:
    text = SourceText(module.source)
    every = [scope for scope in scopes(module) if scope.node.name != "__init__"]
    texts = {scope: module.lines(scope.node) for scope in every}
    by_name: dict[str, list[bytes]] = {}
    for scope, body in texts.items():
        by_name.setdefault(scope.node.name, []).append(body)
    worth = FunctionFilter(rules, by_name, module.relative)
    matched: list[tuple[Rule, Scope, list[Match]]] = []
    absorbed: dict[str, set[int]] = {rule.id: set() for rule in rules}
    for scope in every:
        wanted = [rule for rule in worth(texts[scope]) if writes(scope.node, _roots(rule), module.source)]
        if not wanted:
            continue
        function = lower_function(module, scope)
        for rule in wanted:
            matches = largest([match for pattern in compiled(rule) for match in find(pattern, function)])
            if matches:
                matched.append((rule, scope, matches))
                absorbed[rule.id] |= _helpers_inside(function, matches)
    found: list[Candidate] = []
    seen: dict[tuple[str, str], int] = {}
    for rule, scope, matches in matched:
        if id(scope.node) in absorbed[rule.id]:
            continue
        for block in blocks(rule, matches, text):
            key = (rule.id, scope.qualname)
            one = candidate(rule, block, text, seen.get(key, 0))
            if one is not None:
                seen[key] = seen.get(key, 0) + 1
                found.append(one)
    return sorted(found, key=lambda one: (one.start_line, one.end_line, one.rule))


def _helpers_inside(function: FunctionGraph, matches: Sequence[Match]) -> set[int]:
    """Helpers whose own match is a part of a larger one here."""
    return {
        id(helper)
        for match in matches
        for node in match.inside
        if (helper := function.helpers.get(node.id)) is not None
    }


_GENERATED = re.compile(rb"automatically generated from\s+(?:#\s*)?(\S+\.py)")


def generated_from(module: SourceModule, repository: Repository) -> str | None:
    """The file that this one says it was generated from: relative to the root when it is there, else as it is said."""
    found = _GENERATED.search(module.source[:3000])
    if found is None:
        return None
    said = found.group(1).decode(errors="replace")
    beside = Path(module.file).with_name(Path(said).name).as_posix()
    return beside if repository.has_file(module.file, beside) else said


@lru_cache(maxsize=1)
def worker_rules(ids: tuple[str, ...], extra: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules that a worker process applies."""
    return tuple(rule for rule in load_rules(Path(one) for one in extra) if not ids or rule.id in ids)
