"""The scan: files → candidates, in several processes, with a cache. Nothing is written in the user's tree."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from npufuse_tui.errors import WrongInput
from npufuse_tui.events import CandidateFound, FileSkipped, Listener, ScanFinished, ScanProgress, ignore
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, RuleSummary, ScanResult, SkippedFile, Verdict
from npufuse_tui.rules import Rule, load_rules
from npufuse_tui.scan.discover import Found, discover

CHUNK = 24
"""Files that a worker takes at a time."""

SMALL = 40
"""Files up to which a scan starts no processes."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What to look for and where.

    `rules`: ids, empty for all. `include`, `exclude`: globs of names relative to the root. `jobs`: processes, None for
    one a core. `target`: "training", "inference" or "both", which operator is proposed where two could serve.
    `extra_rules`: files or folders with rules of the repo's own; they are run, so name only what you trust.
    """

    rules: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    jobs: int | None = None
    use_cache: bool = True
    target: str = "both"
    extra_rules: tuple[str, ...] = ()


def scan(root: Path, options: ScanOptions | None = None, listen: Listener = ignore) -> ScanResult:
    """Find the candidates below a folder, or in one file. Raises WrongInput for a path or a rule that is not there."""
    options = options or ScanOptions()
    began = time.monotonic()
    top, files = discover(root.resolve(), options.include, options.exclude)
    rules = _chosen(options)
    results = _ordered(_results(top, files, options, rules), files, listen)
    candidates = [one for result in results for one in result.candidates]
    skipped = tuple(result.skipped for result in results if result.skipped is not None)
    commit, dirty = _commit(top)
    result = ScanResult(
        root=str(top),
        commit=commit,
        dirty=dirty,
        files=len(files),
        parsed=sum(result.parsed for result in results),
        bytes=sum(result.bytes for result in results),
        seconds=round(time.monotonic() - began, 3),
        cached=sum(result.cached for result in results),
        skipped=skipped,
        rules=tuple(summary(rule, candidates) for rule in rules),
        candidates=tuple(candidates),
        target=options.target,
    )
    listen(ScanFinished(result))
    return result


def _chosen(options: ScanOptions) -> tuple[Rule, ...]:
    known = load_rules(Path(one) for one in options.extra_rules)
    ids = {rule.id for rule in known}
    unknown = [one for one in options.rules if one not in ids]
    if unknown:
        raise WrongInput(
            Text("there is no rule {rule}; the rules are {known}", "没有规则 {rule}；可用规则：{known}").format(
                rule=unknown[0], known=", ".join(sorted(ids))
            )
        )
    if options.target not in ("training", "inference", "both"):
        raise WrongInput(
            Text(
                "the target must be training, inference or both, not {target}",
                "target 只能是 training、inference 或 both，而不是 {target}",
            ).format(target=options.target)
        )
    return tuple(
        rule for rule in known if (not options.rules or rule.id in options.rules) and _serves(rule, options.target)
    )


def _serves(rule: Rule, target: str) -> bool:
    """Whether the rule fits what the model is for; where a training and an inference operator could both serve, one does."""
    if target == "inference":
        return rule.inference
    return rule.training or (target == "both" and rule.sibling is None)


def _results(top: Path, files: Sequence[Found], options: ScanOptions, rules: Sequence[Rule]) -> Iterator[object]:
    """What each chunk of files gave, as the chunks come back."""
    from npufuse_tui.scan.work import Work, run_chunk

    work = Work(str(top), tuple(rule.id for rule in rules), options.extra_rules, options.use_cache, options.target)
    chunks = [files[place : place + CHUNK] for place in range(0, len(files), CHUNK)]
    jobs = options.jobs or os.cpu_count() or 1
    if jobs == 1 or len(files) <= SMALL:
        for chunk in chunks:
            yield from run_chunk(work, chunk)
        return
    done: set[int] = set()
    try:
        with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("fork" if _can_fork() else "spawn")) as pool:
            futures = {place: pool.submit(run_chunk, work, chunk) for place, chunk in enumerate(chunks)}
            for place, future in futures.items():
                for result in future.result():
                    yield result
                done.add(place)
    except BrokenProcessPool:
        # a worker was killed (memory): what it held is read here, one file at a time
        for place, chunk in enumerate(chunks):
            if place not in done:
                yield from run_chunk(work, chunk)


def _can_fork() -> bool:
    """Forking is quick, and safe only while this process has a single thread."""
    import threading

    return hasattr(os, "fork") and threading.active_count() == 1


def _ordered(results: Iterator[object], files: Sequence[Found], listen: Listener) -> list:  # type: ignore[type-arg]
    gathered = []
    found = 0
    for done, result in enumerate(results, 1):
        gathered.append(result)
        for one in result.candidates:  # type: ignore[attr-defined]
            found += 1
            listen(CandidateFound(one))
        if result.skipped is not None:  # type: ignore[attr-defined]
            listen(FileSkipped(result.skipped))  # type: ignore[attr-defined]
        if done % 8 == 0 or done == len(files):
            listen(ScanProgress(done, len(files), found))
    return sorted(gathered, key=lambda one: one.file)


def summary(rule: Rule, candidates: Sequence[Candidate]) -> RuleSummary:
    """One row for a rule, found or not."""
    own = [one for one in candidates if one.rule == rule.id]
    count = {verdict: sum(one.verdict is verdict for one in own) for verdict in Verdict}
    if not own:
        reason = Text("no code of this kind was found", "未发现此类代码")
    elif count[Verdict.RECOMMENDED]:
        reason = Text("{count} can be replaced", "{count} 处可以替换").format(count=count[Verdict.RECOMMENDED])
    elif count[Verdict.CAUTION]:
        reason = Text("{count} need a second look", "{count} 处需要再确认").format(count=count[Verdict.CAUTION])
    else:
        reason = Text("found, none is to be replaced", "已发现，但均不可替换")
    return RuleSummary(
        rule.id,
        rule.api,
        len(own),
        count[Verdict.RECOMMENDED],
        count[Verdict.CAUTION],
        count[Verdict.REFUSED],
        reason,
    )


def _commit(top: Path) -> tuple[str | None, bool]:
    """The commit at HEAD and whether tracked files differ from it; (None, False) without git."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-c", "core.fsmonitor=false", "-C", str(top), *arguments],
                capture_output=True,
                env=environment,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None

    commit = git("rev-parse", "--verify", "HEAD")
    if commit is None:
        return None, False
    status = git("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    return commit, bool(status)


__all__ = ["ScanOptions", "SkippedFile", "scan", "summary"]
