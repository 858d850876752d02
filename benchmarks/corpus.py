"""Scan public packages and say what is found in them, and how much of what people labelled.

    python benchmarks/corpus.py [--check] [--cache FOLDER] [PACKAGE==VERSION ...]

Without names the packages of tests/labelled/labels.tsv are taken. Each is downloaded with pip into the cache folder
(without what it needs; nothing of it is installed or run), unpacked and scanned. Printed: for each rule what was
found, recommended, cautioned and refused; with --check how many proofs passed, failed or did not run, and why; and
recall and precision on the labels, with every miss and every false find.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from labels import Score, compare, read_labels

from npufuse_tui.model import Candidate, Verdict
from npufuse_tui.proof.check import ProofOptions, check
from npufuse_tui.scan.scanner import ScanOptions, scan


def unpacked(requirement: str, cache: Path) -> Path:
    """The folder that holds the Python files of a package, downloaded when it is not there. Raises SystemExit."""
    name, _, version = requirement.partition("==")
    folder = cache / f"{name}-{version}"
    if folder.is_dir():
        return folder
    downloads = cache / "downloads" / f"{name}-{version}"
    downloads.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(downloads), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    archives = sorted(downloads.glob("*.whl")) + sorted(downloads.glob("*.tar.gz"))
    if not archives:
        last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise SystemExit(f"pip could not download {requirement}: {last}")
    partly = cache / f"{name}-{version}.part"
    for place, data in _python_files(archives[0]):
        target = partly / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    partly.rename(folder)
    return folder


def _python_files(archive: Path) -> list[tuple[PurePosixPath, bytes]]:
    """Name and bytes of each Python file; the top folder of a source archive is left out."""
    found: list[tuple[PurePosixPath, bytes]] = []
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            found = [(PurePosixPath(name), wheel.read(name)) for name in wheel.namelist() if name.endswith(".py")]
    else:
        with tarfile.open(archive) as source:
            for member in source.getmembers():
                stream = source.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
                if stream is not None:
                    found.append((PurePosixPath(*PurePosixPath(member.name).parts[1:]), stream.read()))
    return [(place, data) for place, data in found if ".." not in place.parts and not place.is_absolute()]


def print_rules(candidates: Sequence[Candidate]) -> None:
    """One line a rule: verdicts, and the fate of the proofs."""
    print(f"{'rule':<18}{'found':>7}{'recom.':>8}{'caution':>9}{'refused':>9}{'passed':>8}{'failed':>8}{'not run':>9}")
    for rule in sorted({one.rule for one in candidates}):
        of = [one for one in candidates if one.rule == rule]
        verdicts = Counter(one.verdict for one in of)
        proofs = Counter(one.check.status for one in of if one.check is not None)
        print(
            f"{rule:<18}{len(of):>7}{verdicts[Verdict.RECOMMENDED]:>8}{verdicts[Verdict.CAUTION]:>9}"
            f"{verdicts[Verdict.REFUSED]:>9}{proofs['passed']:>8}{proofs['failed']:>8}{proofs['skipped']:>9}"
        )


def print_reasons(title: str, reasons: Counter[str]) -> None:
    if reasons:
        print(title)
    for reason, count in reasons.most_common(30):
        print(f"  {count:>5}  {reason}")


def print_proofs(before: Sequence[Candidate], after: Sequence[Candidate]) -> None:
    """What the proofs said of the candidates that were offered, with the places of the failures."""
    offered = {one.id for one in before if one.verdict is not Verdict.REFUSED}
    proven = [one for one in after if one.id in offered]
    ran = [one for one in proven if one.check is not None and one.check.status != "skipped"]
    passed = [one for one in ran if one.check is not None and one.check.status == "passed"]
    print(f"proofs: of {len(offered)} offered {len(ran)} ran, {len(passed)} passed")
    skipped: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for one in proven:
        if one.check is None:
            skipped["no proof was planned"] += 1
        elif one.check.status == "skipped":
            skipped[f"{one.rule}: {one.check.reason}"] += 1
        elif one.check.status == "failed":
            failed[f"{one.rule}/{one.variant} {one.file}:{one.start_line}: {one.check.reason}"] += 1
    print_reasons("not run:", skipped)
    print_reasons("failed:", failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE==VERSION")
    parser.add_argument("--check", action="store_true", help="run the executable proofs")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "npufuse-corpus")
    parser.add_argument("--jobs", type=int, default=None)
    options = parser.parse_args()
    labels = read_labels()
    names = options.packages or ["==".join(package.rsplit("-", 1)) for package in sorted(labels)]

    everything: list[Candidate] = []
    score, scores = Score(), {}
    for requirement in names:
        folder = unpacked(requirement, options.cache)
        began = time.perf_counter()
        result = scan(folder, ScanOptions(jobs=options.jobs))
        scanned = time.perf_counter() - began
        candidates = list(result.candidates)
        print(
            f"\n== {folder.name}: {result.files} files, {result.bytes / 1e6:.1f} MB, scanned in {scanned:.1f} s "
            f"({result.cached} files from the cache, {len(result.skipped)} skipped)"
        )
        if options.check:
            began = time.perf_counter()
            before, candidates = candidates, list(check(candidates, ProofOptions(backend="emulated")))
            print(f"proofs took {time.perf_counter() - began:.1f} s")
            print_proofs(before, candidates)
        print_rules(candidates)
        everything += candidates
        compare(labels.get(folder.name, ()), candidates, score)
        for label in labels.get(folder.name, ()):
            one = scores.setdefault(label.rules[0], Score())
            compare([label], candidates, one)

    print("\n== all packages")
    print_rules(everything)
    refusals = Counter(f"{one.rule}: {one.reason.en}" for one in everything if one.verdict is Verdict.REFUSED)
    print_reasons("refused:", refusals)
    print("\n== on the labels")
    for rule, one in [*sorted(scores.items()), ("all", score)]:
        recall, precision = (f"{v:.4f}" if v is not None else "-" for v in (one.recall, one.precision))
        print(f"{rule:<18} recall {recall} ({one.hit} of {one.wanted}), precision {precision} ({len(one.false)} false)")
    for title, lines in (("missed", score.missed), ("false", score.false), ("another verdict", score.other_verdict)):
        print(f"\n{title}: {len(lines)}")
        for line in lines:
            print(f"  {line}")


if __name__ == "__main__":
    main()
