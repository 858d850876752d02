"""Another switch in front of a candidate's fused branch; the branch and the fallback stay as they are."""

from __future__ import annotations

from dataclasses import replace

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, Gate, Splice


def with_gate(candidate: Candidate, gate: Gate, sources: dict[str, bytes]) -> Candidate:
    """The candidate with `gate` as its switch; its check is void. `sources`: the bytes of its files by name.

    Raises WrongInput for a gate that the candidate does not offer, KeptSafe when the edit could not be proven to keep
    the original.
    """
    from npufuse_tui.rewrite.compose import compose
    from npufuse_tui.rewrite.diff import edits_diff
    from npufuse_tui.rewrite.edit import edit_of
    from npufuse_tui.rewrite.fallback import prove

    if candidate.edit is None or candidate.gate is None or gate not in candidate.gates:
        raise WrongInput(
            Text("{id} does not offer the switch {gate}", "{id} 不提供开关 {gate}").format(
                id=candidate.id, gate=gate.expression
            )
        )
    old = candidate.gate.expression
    files = tuple(
        replace(one, splices=tuple(_exchanged(splice, old, gate.expression) for splice in one.splices))
        for one in candidate.edit.files
    )
    for one in files:
        prove(sources[one.file], compose(sources[one.file], [one]), [one])
    return replace(candidate, gate=gate, edit=edit_of(files), diff=edits_diff(sources, files), check=None)


def _exchanged(splice: Splice, old: str, new: str) -> Splice:
    """The splice with another expression in the guard, which is the first `if` of the text."""
    before, word, rest = splice.text.partition(f"if {old}")
    if splice.start == splice.end or not word or not rest.startswith((" and ", ":")) or before.strip():
        return splice
    return replace(splice, text=f"{before}if {new}{rest}")
