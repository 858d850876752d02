"""Another switch in front of a candidate's fused branch; the branch and the fallback stay as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, FileEdit, Gate, Splice


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
    files = tuple(
        sorted(_with_files(_without(candidate, gate), gate.files).values(), key=lambda one: one.file != candidate.file)
    )
    for one in files:
        prove(sources[one.file], compose(sources[one.file], [one]), [one])
    return replace(candidate, gate=gate, edit=edit_of(files), diff=edits_diff(sources, files), check=None)


def _without(candidate: Candidate, gate: Gate) -> dict[str, FileEdit]:
    """The candidate's edits with the new expression, and without what only the gate before needed."""
    assert candidate.edit is not None and candidate.gate is not None
    old = candidate.gate
    gone = {splice for one in old.files for splice in one.splices}
    found: dict[str, FileEdit] = {}
    for one in candidate.edit.files:
        splices = tuple(
            _exchanged(splice, old.expression, gate.expression) for splice in one.splices if splice not in gone
        )
        preludes = one.preludes
        if one.file == candidate.file:
            keys = {prelude.key for prelude in (*old.preludes, *gate.preludes)}
            preludes = (*(prelude for prelude in preludes if prelude.key not in keys), *gate.preludes)
        if splices:
            found[one.file] = replace(one, splices=splices, preludes=preludes)
    return found


def _with_files(edits: dict[str, FileEdit], more: Iterable[FileEdit]) -> dict[str, FileEdit]:
    """The edits with others put in, one edit a file."""
    found = dict(edits)
    for one in more:
        known = found.get(one.file)
        if known is None:
            found[one.file] = one
        else:
            preludes = {prelude.key: prelude for prelude in (*known.preludes, *one.preludes)}
            found[one.file] = replace(known, splices=(*known.splices, *one.splices), preludes=tuple(preludes.values()))
    return found


def _exchanged(splice: Splice, old: str, new: str) -> Splice:
    """The splice with another expression in the guard, which is the first `if` of the text."""
    before, word, rest = splice.text.partition(f"if {old}")
    if splice.start == splice.end or not word or not rest.startswith((" and ", ":")) or before.strip():
        return splice
    return replace(splice, text=f"{before}if {new}{rest}")
