"""The unified diff of an edit, as a person reads it and `git apply` takes it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from npufuse_tui.model import FileEdit, Splice
from npufuse_tui.rewrite.compose import compose
from npufuse_tui.rewrite.text import SourceText

CONTEXT = 3


def unified(file: str, before: bytes, after: bytes, context: int = CONTEXT) -> str:
    """The diff of one file; lines end as the file's do."""
    encoding = SourceText(before).encoding
    return "".join(
        _with_end(line)
        for line in difflib.unified_diff(
            before.decode(encoding).splitlines(keepends=True),
            after.decode(encoding).splitlines(keepends=True),
            f"a/{file}",
            f"b/{file}",
            n=context,
        )
    )


def _with_end(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def splices_diff(file: str, text: SourceText, splices: Sequence[Splice], context: int = CONTEXT) -> str:
    """The same diff, made from the splices alone: lines that no splice touches are not compared."""
    before = text.lines
    operations: list[tuple[str, int, int, int, int]] = []
    after: list[bytes] = []
    line = 0
    for first, last, replacement in _changed_lines(text, splices):
        operations.append(("equal", line, first, len(after), len(after) + first - line))
        after.extend(before[line:first])
        matcher = difflib.SequenceMatcher(None, before[first:last], replacement, autojunk=False)
        place = len(after)
        operations += [(tag, a + first, b + first, c + place, d + place) for tag, a, b, c, d in matcher.get_opcodes()]
        after.extend(replacement)
        line = last
    operations.append(("equal", line, len(before), len(after), len(after) + len(before) - line))
    after.extend(before[line:])
    grouped: difflib.SequenceMatcher[bytes] = difflib.SequenceMatcher(None, [], [], autojunk=False)
    grouped.opcodes = operations  # type: ignore[attr-defined]
    parts = [f"--- a/{file}\n", f"+++ b/{file}\n"]
    for group in grouped.get_grouped_opcodes(context):
        start_before, end_before = group[0][1], group[-1][2]
        start_after, end_after = group[0][3], group[-1][4]
        parts.append(f"@@ -{_range(start_before, end_before)} +{_range(start_after, end_after)} @@\n")
        for tag, a, b, c, d in group:
            if tag == "equal":
                parts += [_with_end(" " + one.decode(text.encoding)) for one in before[a:b]]
                continue
            parts += [_with_end("-" + one.decode(text.encoding)) for one in before[a:b]]
            parts += [_with_end("+" + one.decode(text.encoding)) for one in after[c:d]]
    return "".join(parts)


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _changed_lines(text: SourceText, splices: Sequence[Splice]) -> list[tuple[int, int, list[bytes]]]:
    """Whole lines that change: (first, end, what stands there afterwards), counted from 0."""
    changed: list[tuple[int, int, list[bytes]]] = []
    for splice in splices:
        first = text.line_at(splice.start)
        last = text.line_at(splice.end)
        whole = splice.end == text.line_start(last) and splice.end > splice.start
        end = last - 1 if whole or (splice.start == splice.end == text.line_start(first)) else last
        head = text.data[text.line_start(first) : splice.start]
        tail = text.data[splice.end : text.line_start(end + 1)] if end >= first else b""
        replacement = (head + text.encode(splice.text) + tail).splitlines(keepends=True)
        changed.append((first - 1, max(end, first - 1), replacement))
    return changed


def edits_diff(sources: Mapping[str, bytes], edits: Sequence[FileEdit], context: int = CONTEXT) -> str:
    """The diff of all the edits; `sources` holds the files' bytes by name."""
    files = sorted({edit.file for edit in edits})
    parts = []
    for file in files:
        before = sources[file]
        parts.append(unified(file, before, compose(before, [edit for edit in edits if edit.file == file]), context))
    return "".join(parts)
