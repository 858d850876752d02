"""Matches of a function → candidates: verdict, edit, risks, estimate and the plan of the proof."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from npufuse_tui.dataflow.graph import Node
from npufuse_tui.dataflow.match import Match
from npufuse_tui.dataflow.source import SourceModule
from npufuse_tui.judgement.gates.choose import Offer, offer
from npufuse_tui.judgement.risks.already_fused import Fused, already_fused
from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.judgement.risks.registry import FORBIDDING, risks_of
from npufuse_tui.language import Text
from npufuse_tui.model import (
    Binding,
    Candidate,
    Edit,
    Estimate,
    FileEdit,
    Gate,
    Prelude,
    Priority,
    ProofPlan,
    Risk,
    Severity,
    Splice,
    Verdict,
)
from npufuse_tui.rewrite.compose import all_splices
from npufuse_tui.rewrite.diff import splices_diff
from npufuse_tui.rewrite.edit import Guarded, edit_of, file_edit, guarded_block
from npufuse_tui.rewrite.fallback import tokens
from npufuse_tui.rewrite.fused_branch import FusedBranch, build, expand
from npufuse_tui.rewrite.gate import environment_gate, imported, torch_npu_import, torch_npu_may_lack
from npufuse_tui.rewrite.region import CannotRewrite, Region, find_region, shortened, site_of
from npufuse_tui.rewrite.render import render, render_input
from npufuse_tui.rewrite.text import SourceText, dedented
from npufuse_tui.rules import Rule
from npufuse_tui.scan.chain import chain, estimate
from npufuse_tui.scan.plan_proof import plan
from npufuse_tui.scan.select import outermost
from npufuse_tui.scan.view import View

FITS = {
    Verdict.RECOMMENDED: Text("the code computes what {api} computes", "该代码与 {api} 的计算一致"),
    Verdict.CAUTION: Text("replaceable, with a second look", "可以替换，但需要再确认"),
    Verdict.REFUSED: Text("not to be replaced", "不可替换"),
}

ACTIVATION_TESTS = {
    ("silu",): "_is_silu",
    ("gelu", "none"): "_is_gelu",
    ("gelu", "tanh"): "_is_gelu_tanh",
}
"""The helper that tells whether an activation that is chosen at run time is the one of the pattern."""

_IS_ACTIVATION = '''\
def {name}(activation):
    """Whether an activation that is chosen at run time is {what}, as a function or as a module."""
    return getattr(activation, "__name__", type(activation).__name__) in {names}
'''

HELPERS = {
    "_is_silu": _IS_ACTIVATION.format(name="_is_silu", what="SiLU", names='("silu", "SiLU", "SiLUActivation")'),
    "_is_gelu": _IS_ACTIVATION.format(name="_is_gelu", what="the exact GELU", names='("gelu", "GELUActivation")'),
    "_is_gelu_tanh": _IS_ACTIVATION.format(
        name="_is_gelu_tanh",
        what="the tanh form of GELU",
        names='("GELUTanh", "PytorchGELUTanh", "NewGELUActivation", "FastGELUActivation", "gelu_new")',
    ),
    "_weights_asked_for": '''\
def _weights_asked_for(options, module):
    """Whether attention weights are wanted, which a fused operator never forms."""
    wanted = options.get("output_attentions")
    if wanted is None:
        wanted = getattr(getattr(module, "config", None), "output_attentions", False)
    return bool(wanted)
''',
}
"""What guards call, whatever the rule."""

ORDER = (Verdict.RECOMMENDED, Verdict.CAUTION, Verdict.REFUSED)


@dataclass(eq=False, slots=True)
class Block:
    """One block of a function: the matches that one edit replaces together."""

    matches: list[Match]
    region: Region | None
    refusal: Text | None


def blocks(rule: Rule, matches: Sequence[Match], text: SourceText) -> list[Block]:
    """Matches of one rule in one function, put together where they must be (they overlap) or should be (`rule.merge`)."""
    found: list[Block] = []
    for match in matches:
        try:
            region = find_region(match.function, text, outermost(match), match.inside)
        except CannotRewrite as reason:
            found.append(Block([match], None, reason.text))
            continue
        found.append(Block([match], region, None))
    found.sort(key=lambda one: one.region.start_line if one.region else 0)
    merged: list[Block] = []
    for block in found:
        last = merged[-1] if merged else None
        if last is not None and last.region is not None and block.region is not None and _together(rule, last, block):
            last.matches.extend(block.matches)
            last.region.last = max(last.region.last, block.region.last)
            last.region.first = min(last.region.first, block.region.first)
            last.region.roots.extend(block.region.roots)
        else:
            merged.append(block)
    return merged


def _together(rule: Rule, one: Block, other: Block) -> bool:
    assert one.region is not None and other.region is not None
    if one.region.suite is not other.region.suite:
        return False
    gap = other.region.first - one.region.last
    return gap <= 0 or (rule.merge and gap <= 1)


def candidate(rule: Rule, block: Block, text: SourceText, occurrence: int) -> Candidate | None:
    """The candidate of a block, or None when a condition of the rule says that it is none."""
    match = block.matches[0]
    verdict, reason = match.pattern.pattern.verdict, match.pattern.pattern.reason
    inputs = {name: _code(match, name, text) for name in match.values}
    view = View(match, inputs)
    for variants, condition in rule.conditions:
        if variants and match.variant not in variants:
            continue
        refusal = condition(view)
        if refusal is None:
            continue
        if refusal.verdict is None:
            return None
        if ORDER.index(refusal.verdict) > ORDER.index(verdict):
            verdict, reason = refusal.verdict, refusal.reason
    if block.refusal is not None:
        verdict, reason = Verdict.REFUSED, block.refusal
    if _is_scripted(match):
        verdict, reason = Verdict.REFUSED, _SCRIPTED
    fused = _already_fused(rule, match)
    if fused is not None:
        verdict, reason = Verdict.REFUSED, fused.text
    edited = None
    if verdict is not Verdict.REFUSED and block.region is not None:
        try:
            edited = _edited(rule, block, text)
        except CannotRewrite as refusal:
            verdict, reason = Verdict.REFUSED, refusal.text
    risks = _risks(rule, block, edited, view) if fused is None else (fused.risk,)
    forbidding = next((risk for risk in risks if risk.code in FORBIDDING), None)
    if forbidding is not None:
        verdict, reason, edited = Verdict.REFUSED, forbidding.message, None
    if verdict is Verdict.RECOMMENDED and any(risk.severity is Severity.DANGER for risk in risks):
        worst = next(risk for risk in risks if risk.severity is Severity.DANGER)
        verdict, reason = Verdict.CAUTION, worst.message
    return _described(rule, block, text, verdict, reason, risks, edited, inputs, occurrence)


def _risks(rule: Rule, block: Block, edited: _Edited | None, view: View) -> tuple[Risk, ...]:
    """What the rule and the general checks find around a match."""
    own = [risk for check in rule.risks if (risk := check.function(view)) is not None]
    region = block.region
    around = Around(
        rule,
        block.matches,
        tuple(region.statements) if region else (),
        tuple(region.layout.path(region.statements[0])[1:]) if region else (),
        edited.guarded.replacement if edited else "",
        edited.guarded.guard if edited else "",
        edited.branch.calls[0].inputs if edited else None,
        _left_as_none(edited.branch) if edited else (),
    )
    return risks_of(around, own)


def _left_as_none(branch: FusedBranch) -> list[str]:
    """The names that the fused branch gives None: values that the operator never forms."""
    return [line.removesuffix(" = None") for line in branch.statements if line.endswith(" = None")]


def _weights_asked_for(matches: Sequence[Match], branch: FusedBranch) -> list[str]:
    """Where the function can be asked for values that the operator never forms, the guard asks whether it is."""
    scope = matches[0].function.scope
    if not _left_as_none(branch):
        return []
    given = [one.arg for one in (*scope.node.args.posonlyargs, *scope.node.args.args, *scope.node.args.kwonlyargs)]
    if "output_attentions" in given:
        return ["not output_attentions"]
    if scope.node.args.kwarg is None:
        return []
    holder = next((name for name in given[:1] if name in ("self", "module")), None)
    return [f"not _weights_asked_for({scope.node.args.kwarg.arg}, {holder})"]


def _already_fused(rule: Rule, match: Match) -> Fused | None:
    """The fused call that runs in the place of the match on an NPU, when the code has one already."""
    function = match.function
    site = site_of(outermost(match), None) or site_of(match.root, None)
    if site is None:
        return None
    aliases = [name for name, module in function.module.imports.items() if module == "torch_npu"]
    return already_fused(function.scope.node, site.statement, site.expression, rule.api, aliases)


_SCRIPTED = Text(
    "torch.jit.script compiles this function, and it cannot compile what the guard asks",
    "该函数由 torch.jit.script 编译，守卫条件无法被编译",
)


def _is_scripted(match: Match) -> bool:
    decorators = match.function.scope.node.decorator_list
    return any("jit.script" in ast.unparse(one) or ast.unparse(one) == "script" for one in decorators)


@dataclass(frozen=True, slots=True)
class _Edited:
    edit: Edit
    diff: str
    guarded: Guarded
    branch: FusedBranch
    offered: Offer
    proof: ProofPlan


def _edited(rule: Rule, block: Block, text: SourceText) -> _Edited:
    region = block.region
    assert region is not None
    function = block.matches[0].function
    module = function.module
    branch = build(function, text, region, block.matches)
    try:
        _conditions(rule, block.matches, branch)
    except CannotRewrite:
        # what the guard asks for is made within the block's first lines, which only cast: the block begins behind them
        if not shortened(region, block.matches):
            raise
        branch = build(function, text, region, block.matches)
    offered = offer(function, rule, environment_gate(rule, module), torch_npu_may_lack(module))
    gate = offered.gates[0]
    guarded = guarded_block(region, branch, gate, _conditions(rule, block.matches, branch))
    preludes = [*torch_npu_import(module), *gate.preludes, *_needed_preludes(rule, guarded, module)]
    change = file_edit(module.file, text.data, guarded, preludes)
    change = replace(change, splices=(*change.splices, *_splices_in(module.file, gate)))
    others = [one for one in gate.files if one.file != module.file]
    splices = all_splices(text, [change], module.tree)
    try:
        for splice in splices:
            _compile(splice.text)
    except SyntaxError as error:
        raise CannotRewrite(
            Text("the edit would not compile: {why}", "修改后无法编译：{why}").format(why=error.msg)
        ) from error
    return _Edited(
        edit_of([change, *others]),
        splices_diff(module.file, text, splices) + "".join(_diff_of(one, module) for one in others),
        guarded,
        branch,
        offered,
        plan(rule, region, branch, guarded),
    )


def _splices_in(file: str, gate: Gate) -> list[Splice]:
    """What the gate changes in the file of the guard itself."""
    return [splice for one in gate.files if one.file == file for splice in one.splices]


def _diff_of(edit: FileEdit, module: SourceModule) -> str:
    """The diff of the file where the repo keeps its arguments. Raises CannotRewrite when it cannot be read."""
    source = module.repository.source(edit.file) if module.repository is not None else None
    if source is None:
        raise CannotRewrite(Text("{file} cannot be read", "无法读取 {file}").format(file=edit.file))
    text = SourceText(source)
    return splices_diff(edit.file, text, all_splices(text, [edit]))


@lru_cache(maxsize=1024)
def _compile(code: str) -> None:
    """Raises SyntaxError when the new lines do not compile."""
    ast.parse(_as_block(code))


def _as_block(code: str) -> str:
    """The new lines as the body of a function, whatever their indentation (the edited file is compiled before it is written)."""
    return "def _():\n" + textwrap.indent(dedented(code.strip("\n")), " ")


def _activation_conditions(matches: Sequence[Match], branch: FusedBranch) -> list[str]:
    """What must hold of activations that are looked up at run time."""
    conditions: dict[str, None] = {}
    for match in matches:
        for node, op, attrs in match.activations:
            code = render(node, branch.entry)
            if code is None:
                raise CannotRewrite(Text("the activation has no name here", "此处无法引用激活函数"))
            conditions[f"{ACTIVATION_TESTS[(op, *map(str, attrs))]}({code})"] = None
    return list(conditions)


def _conditions(rule: Rule, matches: Sequence[Match], branch: FusedBranch) -> list[str]:
    """What else the guard asks: the activations, and the rule's own limits."""
    conditions = dict.fromkeys(_activation_conditions(matches, branch))
    for match in matches:
        for variants, guard in rule.guards:
            if variants and match.variant not in variants:
                continue
            inputs: dict[str, str] = {}
            for name in inspect.signature(guard.function).parameters:
                code = render_input(match.values[name], branch.entry)
                if code is None:
                    raise CannotRewrite(
                        Text(
                            "{name} has no name where the block begins, so its limits cannot be asked for",
                            "{name} 在代码块起点没有名称，无法检查其限制",
                        ).format(name=name)
                    )
                inputs[name] = code
            _, expression, *_ = expand(guard, inputs, set())
            conditions[expression] = None
    return [*conditions, *_weights_asked_for(matches, branch)]


def _needed_preludes(rule: Rule, guarded: Guarded, module: object) -> list[Prelude]:
    """Helpers that the fused branch calls, and imports that the new code needs."""
    assert isinstance(module, SourceModule)
    code = guarded.guard + "\n" + guarded.replacement
    preludes: list[Prelude] = []
    for name, source in {**rule.helpers, **HELPERS}.items():
        if re.search(rf"\b{name}\b", code):
            preludes.append(Prelude(f"helper:{name}", source.rstrip("\n"), 40))
            code += "\n" + source
    for name in ("functools", "torch", "math"):
        if re.search(rf"(?<![\w.]){name}\.", code):
            preludes.extend(imported(module, name))
    return preludes


def _code(match: Match, name: str, text: SourceText) -> str:
    node = match.values[name]
    for site in node.sites:
        if site.depth == 0:
            return text.of(site.expression)
    return str(node.attrs[0]) if node.attrs and node.op == "parameter" else repr(node)


def _described(
    rule: Rule,
    block: Block,
    text: SourceText,
    verdict: Verdict,
    reason: Text | None,
    risks: tuple[Risk, ...],
    edited: _Edited | None,
    inputs: dict[str, str],
    occurrence: int,
) -> Candidate:
    match = block.matches[0]
    function = match.function
    steps = tuple(step for one in block.matches for step in chain(one))
    if block.region is not None:
        start, end = block.region.start_line, block.region.end_line
        code = _region_text(block.region)
    else:
        start, end, code = _span_of(block.matches)
        code = text.between(text.line_start(start), text.line_start(end + 1))
    added = edited.guarded.replacement.count("torch.cat(") if edited else 0
    counted: Estimate = estimate(match, steps, added, 2 * added)
    if len(block.matches) > 1:
        counted = replace(
            counted,
            launches_after=counted.launches_after * len(block.matches),
            memory_passes_after=counted.memory_passes_after * len(block.matches),
        )
    normal = " ".join(tokens(code))
    replacement = edited.guarded.replacement if edited else None
    file = function.module.file
    priority = match.pattern.pattern.priority or rule.priority
    bindings = tuple(
        Binding(
            name,
            (edited.branch.calls[0].inputs.get(name) if edited else None) or inputs[name],
            match.pattern.kinds[name],
            _line(match.values[name]),
        )
        for name in match.values
    )
    return Candidate(
        id=_short_hash(rule.id, file, function.scope.qualname, normal, str(occurrence)),
        rule=rule.id,
        variant=match.variant,
        api=rule.api,
        file=file,
        qualname=function.scope.qualname,
        start_line=start,
        end_line=end,
        group=_short_hash(rule.id, match.variant, normal, replacement or ""),
        verdict=verdict,
        priority=Priority.LOW if verdict is Verdict.REFUSED else priority,
        reason=reason or FITS[verdict].format(api=rule.api),
        original=code,
        replacement=replacement,
        edit=edited.edit if edited else None,
        diff=edited.diff if edited else None,
        risks=risks,
        gate=edited.offered.gates[0] if edited else None,
        gates=edited.offered.gates if edited else (),
        reuse=edited.offered.reuse if edited else (),
        chain=steps,
        estimate=counted,
        bindings=bindings,
        proof=edited.proof if edited else None,
    )


def _region_text(region: Region) -> str:
    text = region.layout.text
    return text.between(text.line_start(region.start_line), text.end(region.statements[-1]))


def _span_of(matches: Sequence[Match]) -> tuple[int, int, str]:
    sites = [site for match in matches for node in (match.root, *match.inside) for site in node.sites[-1:]]
    lines = [site.statement.lineno for site in sites]
    ends = [site.statement.end_lineno or site.statement.lineno for site in sites]
    return min(lines), max(ends), ""


def _line(node: Node) -> int | None:
    return node.sites[0].expression.lineno if node.sites else None


def _short_hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
