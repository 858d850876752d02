"""A unified diff as rows to draw: old and new line numbers, word-level changes, pairs for two columns, more context."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_WORD = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. `kind` is "+", "-", " ", "@" (a hunk) or "f" (a file); `words` are spans that changed."""

    kind: str
    old: int | None
    new: int | None
    text: str
    words: tuple[tuple[int, int], ...] = ()
    file: str = ""


def parse(diff: str) -> list[DiffLine]:
    """The lines of a unified diff, with the words that changed inside lines that pair up."""
    lines: list[DiffLine] = []
    file, old, new = "", 0, 0
    left_old = left_new = 0
    for raw in diff.split("\n"):
        raw = raw.rstrip("\r")
        if left_old <= 0 and left_new <= 0:
            if raw.startswith("+++ "):
                file = re.sub(r"^b/", "", raw[4:].split("\t")[0])
                lines.append(DiffLine("f", None, None, file, file=file))
                continue
            if found := _HUNK.match(raw):
                old, new = int(found[1]), int(found[3])
                left_old, left_new = int(found[2] or 1), int(found[4] or 1)
                lines.append(DiffLine("@", old, new, found[5], file=file))
            continue
        kind, text = (raw[:1] or " "), raw[1:]
        if kind == "+":
            lines.append(DiffLine("+", None, new, text, file=file))
            new, left_new = new + 1, left_new - 1
        elif kind == "-":
            lines.append(DiffLine("-", old, None, text, file=file))
            old, left_old = old + 1, left_old - 1
        elif kind == " ":
            lines.append(DiffLine(" ", old, new, text, file=file))
            old, new, left_old, left_new = old + 1, new + 1, left_old - 1, left_new - 1
    return _with_words(lines)


def _blocks(lines: Sequence[DiffLine]) -> list[tuple[int, int, int]]:
    """Runs of removed lines followed by added ones: (first removed, first added, end)."""
    found, index = [], 0
    while index < len(lines):
        if lines[index].kind not in "+-":
            index += 1
            continue
        start = index
        while index < len(lines) and lines[index].kind == "-":
            index += 1
        middle = index
        while index < len(lines) and lines[index].kind == "+":
            index += 1
        found.append((start, middle, index))
    return found


def pair(removed: Sequence[str], added: Sequence[str]) -> list[tuple[int, int]]:
    """Which removed line became which added one, in order: equal but for indentation first, then alike enough.

    The verbatim else branch of an edit is the removed lines, indented: these pair up.
    """
    matcher = SequenceMatcher(None, [one.strip() for one in removed], [one.strip() for one in added], autojunk=False)
    pairs = [
        (i + k, j + k) for i, j, size in matcher.get_matching_blocks() for k in range(size) if removed[i + k].strip()
    ]
    taken_old, taken_new = {i for i, _ in pairs}, {j for _, j in pairs}
    if len(removed) * len(added) <= 400:
        for i, old in enumerate(removed):
            if i in taken_old or not old.strip():
                continue
            low = max((j for k, j in pairs if k < i), default=-1)
            high = min((j for k, j in pairs if k > i), default=len(added))
            best, ratio = None, 0.5
            for j in range(low + 1, high):
                if j not in taken_new and added[j].strip():
                    alike = SequenceMatcher(None, old.strip(), added[j].strip(), autojunk=False).ratio()
                    if alike > ratio:
                        best, ratio = j, alike
            if best is not None:
                pairs.append((i, best))
                taken_new.add(best)
    return sorted(pairs)


def changed_words(old: str, new: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Spans of `old` and of `new` that differ, by words. Nothing when they differ by indentation alone."""
    if old.strip() == new.strip() or len(old) + len(new) > 2000:
        return (), ()
    before, after = _WORD.findall(old), _WORD.findall(new)
    starts_old, starts_new = _starts(before), _starts(after)
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            if i2 > i1:
                gone.append((starts_old[i1], starts_old[i2]))
            if j2 > j1:
                come.append((starts_new[j1], starts_new[j2]))
    return tuple(gone), tuple(come)


def _starts(words: list[str]) -> list[int]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts


def _with_words(lines: list[DiffLine]) -> list[DiffLine]:
    for start, middle, end in _blocks(lines):
        removed, added = lines[start:middle], lines[middle:end]
        for i, j in pair([one.text for one in removed], [one.text for one in added]):
            gone, come = changed_words(removed[i].text, added[j].text)
            lines[start + i] = replace(removed[i], words=gone)
            lines[middle + j] = replace(added[j], words=come)
    return lines


def side_by_side(lines: Sequence[DiffLine]) -> list[tuple[DiffLine | None, DiffLine | None]]:
    """Left and right of each row in two columns; context lines stand on both sides."""
    rows: list[tuple[DiffLine | None, DiffLine | None]] = []
    blocks = {start: (middle, end) for start, middle, end in _blocks(lines)}
    index = 0
    while index < len(lines):
        if index not in blocks:
            rows.append((lines[index], lines[index]))
            index += 1
            continue
        middle, end = blocks[index]
        removed, added = list(lines[index:middle]), list(lines[middle:end])
        at_old = at_new = 0
        for i, j in [*pair([one.text for one in removed], [one.text for one in added]), (len(removed), len(added))]:
            while at_old < i or at_new < j:
                left = removed[at_old] if at_old < i else None
                right = added[at_new] if at_new < j else None
                at_old, at_new = at_old + (left is not None), at_new + (right is not None)
                rows.append((left, right))
            if i < len(removed):
                rows.append((removed[i], added[j]))
                at_old, at_new = i + 1, j + 1
        index = end
    return rows


def with_context(lines: Sequence[DiffLine], sources: Mapping[str, Sequence[str]], extra: int) -> list[DiffLine]:
    """The diff with `extra` more lines of the file around each hunk, as far as neighbours and the file's ends allow.

    `sources` are the lines of each file before the edit.
    """
    if extra <= 0:
        return list(lines)
    out: list[DiffLine] = []
    hunks: list[list[DiffLine]] = []
    for line in lines:
        if line.kind in "f@" or not hunks:
            hunks.append([line])
        else:
            hunks[-1].append(line)
    for number, hunk in enumerate(hunks):
        head, source = hunk[0], sources.get(hunk[0].file)
        body = hunk[1:]
        if head.kind != "@" or source is None or not body or head.old is None or head.new is None:
            out += hunk
            continue
        previous = next((one.old for one in reversed(out) if one.old is not None and one.kind in " -"), 0) or 0
        if out and out[-1].file != head.file:
            previous = 0
        first = max(previous + 1, head.old - extra, 1)
        before = [
            DiffLine(" ", at, head.new - head.old + at, source[at - 1], file=head.file)
            for at in range(first, min(head.old, len(source) + 1))
        ]
        last_old = max((one.old for one in body if one.old is not None), default=head.old - 1)
        last_new = max((one.new for one in body if one.new is not None), default=head.new - 1)
        after_head = hunks[number + 1][0] if number + 1 < len(hunks) else None
        stop = after_head.old - 1 if after_head and after_head.kind == "@" and after_head.old else len(source)
        after = [
            DiffLine(" ", at, last_new - last_old + at, source[at - 1], file=head.file)
            for at in range(last_old + 1, min(last_old + extra, stop, len(source)) + 1)
        ]
        if first > previous + 1 or first == 1:
            out.append(replace(head, old=first, new=first + head.new - head.old))
        out += before + body + after
    return out
