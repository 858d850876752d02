"""The labelled blocks of public packages (tests/labelled/labels.tsv), and what a scan made of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from npufuse_tui.model import Candidate, Verdict

LABELS = Path(__file__).parent.parent / "tests" / "labelled" / "labels.tsv"

OFFERED = {"recommended", "caution", "offered"}


@dataclass(frozen=True)
class Label:
    """What should be said of the lines start to end of a function. `rules`: any of them is right."""

    package: str
    file: str
    qualname: str
    start: int
    end: int
    rules: tuple[str, ...]
    verdict: str  # "recommended", "caution", "offered" (either), "refused", "silent"
    note: str


@dataclass
class Score:
    """Labels compared with candidates; recall of what should be offered, precision of what is offered."""

    wanted: int = 0
    hit: int = 0
    offered: int = 0
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    other_verdict: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float | None:
        return self.hit / self.wanted if self.wanted else None

    @property
    def precision(self) -> float | None:
        """Of the offers that lie on a label: how many should have been made."""
        return 1 - len(self.false) / self.offered if self.offered else None


def read_labels(path: Path = LABELS) -> dict[str, list[Label]]:
    """The labels of each package, by "name-version"."""
    found: dict[str, list[Label]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            package = f"{row['package']}-{row['version']}"
            label = Label(
                package,
                row["file"],
                row["qualname"],
                int(row["start"]),
                int(row["end"]),
                tuple(row["rule"].split(",")),
                row["verdict"],
                row["note"],
            )
            found.setdefault(package, []).append(label)
    return found


def compare(labels: Iterable[Label], candidates: Iterable[Candidate], score: Score) -> None:
    """Add to the score what a package's candidates say of its labels; rule and lines tell which belong together."""
    by_file: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_file.setdefault(one.file, []).append(one)
    for label in labels:
        met = [
            one
            for one in by_file.get(label.file, ())
            if one.rule in label.rules and one.start_line <= label.end and label.start <= one.end_line
        ]
        offered = [one for one in met if one.verdict is not Verdict.REFUSED]
        said = ", ".join(sorted({one.verdict.value for one in met})) or "silent"
        place = f"{label.package} {label.file}:{label.start} {label.qualname} {'/'.join(label.rules)}"
        told = f"{place}: {label.verdict} wanted, {said}"
        told += f" ({met[0].reason.en})" if met else f" ({label.note})"
        score.offered += bool(offered)
        if label.verdict in OFFERED:
            score.wanted += 1
            if not offered:
                score.missed.append(told)
                continue
            score.hit += 1
            if label.verdict != "offered" and label.verdict not in {one.verdict.value for one in offered}:
                score.other_verdict.append(told)
        elif offered:
            score.false.append(told)
        elif said != label.verdict:
            score.other_verdict.append(told)
