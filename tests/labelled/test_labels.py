"""The labelled blocks: well formed, and what the scan says of those in the installed transformers package."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest

from npufuse_tui.rules import load_rules
from npufuse_tui.scan.scanner import ScanOptions, scan

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "benchmarks"))

from labels import OFFERED, Label, Score, compare, read_labels

LABELS = read_labels()
ALL = [label for labels in LABELS.values() for label in labels]


def test_labels_are_of_many_blocks_of_many_packages_and_a_fifth_are_no_offers() -> None:
    assert len(ALL) >= 300
    assert len({label.package.rsplit("-", 1)[0] for label in ALL}) >= 15
    assert sum(label.verdict not in OFFERED for label in ALL) >= len(ALL) / 5


def test_labels_name_rules_that_are_and_lines_in_order() -> None:
    known = {rule.id for rule in load_rules()}
    for label in ALL:
        assert set(label.rules) <= known, label
        assert 1 <= label.start <= label.end, label
        assert label.verdict in OFFERED | {"refused", "silent"}, label
        assert label.note, label


def installed() -> tuple[Path, list[Label]]:
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        pytest.skip("transformers is not installed")
    labels = LABELS.get(f"transformers-{importlib.metadata.version('transformers')}", [])
    if not labels:
        pytest.skip("the installed transformers is not the one that was labelled")
    return Path(spec.origin).parent.parent, labels


@pytest.mark.slow
def test_the_scan_finds_what_people_labelled_in_transformers() -> None:
    root, labels = installed()
    files = tuple(sorted({label.file for label in labels}))
    result = scan(root, ScanOptions(include=files, use_cache=False))
    score = Score()
    compare(labels, result.candidates, score)
    assert score.recall is not None and score.recall >= 0.95, "\n".join(score.missed)
    assert score.precision is not None and score.precision >= 0.98, "\n".join(score.false)
