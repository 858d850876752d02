"""Reads what an input file says that a scan should find in it.

An input is a Python file, or a folder of them. Marks stand in comments at the ends of lines:

    #> rule verdict   the block begins on this line
    #<                the block that began last ends on this line; #<< ends every one
    #= rule verdict   the block is this line

A file without marks must be silent. Files are scanned without their marks, so that a word in a mark cannot help the
scan. A first line `#: crlf`, `#: bom`, `#: latin-1` (several may stand there) says how the bytes are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

INPUTS = Path(__file__).parent / "inputs"

_MARK = re.compile(r"[ \t]*#(>|=|<<?)(?: (\w+) (recommended|caution|refused))?[ \t]*$")


@dataclass(frozen=True, order=True)
class Expected:
    """One block: where it is and what is said of it."""

    file: str
    start: int
    end: int
    rule: str
    verdict: str


def same(found: list[Expected], expected: list[Expected]) -> bool:
    """Equal, where the lines of a refused block, which nobody edits, need only to meet."""
    if len(found) != len(expected):
        return False
    return all(
        one == other
        or (
            one.verdict == other.verdict == "refused"
            and (one.file, one.rule) == (other.file, other.rule)
            and one.start <= other.end
            and other.start <= one.end
        )
        for one, other in zip(found, expected, strict=True)
    )


GAPS: dict[str, str] = {
    "m01_modules_in_a_loop": "a loop over a ModuleList is not offered",
}
"""Inputs that the scan does not read as the table wants, and what is missing. A repaired one is taken out."""


def cases(family: str) -> list[object]:
    """The inputs of one family as parameters of a test, those of `GAPS` as expected failures."""
    import pytest

    return [
        pytest.param(
            path,
            id=path.stem,
            marks=[pytest.mark.xfail(reason=GAPS[path.stem], strict=True)] if path.stem in GAPS else [],
        )
        for path in inputs(family)
    ]


def inputs(family: str) -> list[Path]:
    """The inputs of one family, in the order of their names."""
    return sorted(path for path in (INPUTS / family).iterdir() if path.suffix == ".py" or path.is_dir())


def lay_out(source: Path, into: Path) -> list[Expected]:
    """Write the input without its marks into a folder, and give what is expected of it."""
    files = [source] if source.is_file() else sorted(source.rglob("*.py"))
    top = source.parent if source.is_file() else source
    expected: list[Expected] = []
    for path in files:
        name = path.relative_to(top).as_posix()
        plain, blocks = _read(name, path.read_text(encoding="utf-8"))
        expected += blocks
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_encoded(plain))
    return sorted(expected)


def _read(name: str, text: str) -> tuple[str, list[Expected]]:
    lines: list[str] = []
    blocks: list[Expected] = []
    begun: list[tuple[int, str, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        mark = _MARK.search(line)
        if mark is not None:
            line = line[: mark.start()]
            sign, rule, verdict = mark.groups()
            if sign == ">":
                begun.append((number, rule, verdict))
            elif sign == "=":
                blocks.append(Expected(name, number, number, rule, verdict))
            else:
                assert begun, f"{name}:{number}: no block has begun"
                ended = [begun.pop() for _ in range(len(begun) if sign == "<<" else 1)]
                blocks += [Expected(name, start, number, rule, verdict) for start, rule, verdict in ended]
        lines.append(line)
    assert not begun, f"{name}: a block does not end: {begun}"
    return "\n".join(lines), blocks


def _encoded(text: str) -> bytes:
    first = text.split("\n", 1)[0]
    how = set(first[2:].split()) if first.startswith("#:") else set()
    if "crlf" in how:
        text = text.replace("\n", "\r\n")
    data = text.encode("latin-1" if "latin-1" in how else "utf-8")
    return b"\xef\xbb\xbf" + data if "bom" in how else data
