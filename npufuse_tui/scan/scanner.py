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
from typing import TYPE_CHECKING

from npufuse_tui.errors import WrongInput
from npufuse_tui.events import CandidateFound, FileSkipped, Listener, ScanFinished, ScanProgress, ignore
from npufuse_tui.language import Text
from npufuse_tui.model import Candidate, RuleSummary, ScanResult, SkippedFile, Verdict
from npufuse_tui.rules import Rule, load_rules
from npufuse_tui.scan.discover import Found, discover
from npufuse_tui.scan.result import FileResult

if TYPE_CHECKING:
    from npufuse_tui.scan.work import Work

CHUNK = 24
"""Files that a worker takes at a time."""

SMALL = 40
"""Files up to which a scan starts no processes."""

KILLED = Text(
    "the process that looked at it was ended by the system, for memory or for time; scan without it (--exclude)",
    "查看该文件的进程被系统终止（内存或时间）；请用 --exclude 排除后再扫描",
)


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


def _results(top: Path, files: Sequence[Found], options: ScanOptions, rules: Sequence[Rule]) -> Iterator[FileResult]:
    """What each file gave: first those that the cache has, then the others as they come back from the workers."""
    from npufuse_tui.scan.work import Work

    ids = tuple(rule.id for rule in rules)
    if not options.use_cache:
        yield from _looked_at(Work.of(top, ids, options.extra_rules), files, options.jobs)
        return
    from npufuse_tui.judgement import surroundings
    from npufuse_tui.scan import cache

    context = cache.context(top, ids, options.extra_rules, f"{options.target} {surroundings.digest(top)}")
    kept = cache.lookup(context, top, files)
    yield from kept.values()
    others = [found for found in files if found.name not in kept]
    made: list[FileResult] = []
    try:
        for result in _looked_at(Work.of(top, ids, options.extra_rules), others, options.jobs):
            made.append(result)
            yield result
    finally:
        cache.keep(context, made)


def _looked_at(work: Work, files: Sequence[Found], wanted_jobs: int | None) -> Iterator[FileResult]:
    """What each file gives, in as many processes as it is worth."""
    from npufuse_tui.scan.work import run_chunk

    jobs = wanted_jobs or os.cpu_count() or 1
    chunks = [files[place : place + CHUNK] for place in range(0, len(files), CHUNK)]
    if jobs == 1 or len(files) <= SMALL:
        for chunk in chunks:
            yield from run_chunk(work, chunk)
        return
    done: set[int] = set()
    try:
        with _pool(jobs) as pool:
            futures = {place: pool.submit(run_chunk, work, chunk) for place, chunk in enumerate(chunks)}
            for place, future in futures.items():
                results = future.result()
                done.add(place)
                yield from results
    except BrokenProcessPool:
        for place, chunk in enumerate(chunks):
            if place not in done:
                yield from _one_by_one(work, chunk)


def _one_by_one(work: Work, files: Sequence[Found]) -> Iterator[FileResult]:
    """Files of which one may have killed its worker (memory): each gets a process that may die without harm."""
    from npufuse_tui.scan.work import run_chunk

    remaining = list(files)
    while remaining:
        with _pool(1) as pool:
            while remaining:
                found = remaining.pop(0)
                try:
                    yield from pool.submit(run_chunk, work, [found]).result()
                except BrokenProcessPool:
                    yield FileResult(found.name, 0, False, skipped=SkippedFile(found.name, KILLED))
                    break


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("fork" if _can_fork() else "spawn"))


def _can_fork() -> bool:
    """Forking is quick, and safe only while this process has a single thread."""
    import threading

    return hasattr(os, "fork") and threading.active_count() == 1


def _ordered(results: Iterator[FileResult], files: Sequence[Found], listen: Listener) -> list[FileResult]:
    gathered: list[FileResult] = []
    found = 0
    for done, result in enumerate(results, 1):
        gathered.append(result)
        for one in result.candidates:
            found += 1
            listen(CandidateFound(one))
        if result.skipped is not None:
            listen(FileSkipped(result.skipped))
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
