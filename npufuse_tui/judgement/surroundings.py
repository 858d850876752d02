"""What a repo says outside of the file at hand: how it is launched, configured and packed.

Read once a worker, lazily, bytes first, and only from files whose names say that they launch, configure or describe;
at most `MOST_FILES` of them. Nothing is run.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from npufuse_tui.dataflow.repository import Repository

MOST_FILES = 240
MOST_ENTRIES = 12_000
LARGEST = 200_000

_PYTHON = re.compile(
    r"(^|[_-])(train|trainer|training|finetune|pretrain|main|run|launch|args|arguments|argument|options|opts|cli|flags"
    r"|config|configs|configuration|settings|params|parser|setup|collator|collate|data|dataset|npu|ascend|device|utils"
    r"|import_utils|env|envs|generate|infer|inference|fused|fusion|ops|kernels|layers|wrap)([_-]|\d|\.py$)",
)
_OTHER = re.compile(
    r"^(requirements[\w.-]*\.txt|pyproject\.toml|setup\.cfg|environment[\w.-]*\.ya?ml|Dockerfile[\w.-]*|README[\w.-]*"
    r"|[\w.-]+\.sh)$"
)
_SKIPPED = frozenset({"node_modules", "build", "dist", "site-packages", "__pycache__", "tests", "test", "docs"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the repo that says something."""

    file: str
    line: int
    text: str


@dataclass(eq=False, slots=True)
class Surroundings:
    """The files of a repo that launch, configure or describe it, by name, with their bytes."""

    files: dict[str, bytes] = field(default_factory=dict)
    _known: dict[tuple[re.Pattern[bytes], bool], Seen | None] = field(default_factory=dict)

    def python(self) -> Iterator[tuple[str, bytes]]:
        return ((name, data) for name, data in self.files.items() if name.endswith(".py"))

    def first(self, pattern: re.Pattern[bytes], python: bool = True) -> Seen | None:
        """The first line of code (of Python files, or of the others) that the pattern is found in, without comments."""
        if (pattern, python) not in self._known:
            self._known[pattern, python] = self._first(pattern, python)
        return self._known[pattern, python]

    def launches(self, call: re.Pattern[bytes]) -> Seen | None:
        """The first call that the pattern finds in a script that launches something; what a docstring says is no call."""
        key = (call, True)
        if key not in self._known:
            self._known[key] = next(
                filter(None, (_call_in(*one, call) for one in self.python() if _launches(*one))), None
            )
        return self._known[key]

    def _first(self, pattern: re.Pattern[bytes], python: bool) -> Seen | None:
        for name, data in self.files.items():
            if name.endswith(".py") is not python:
                continue
            for match in pattern.finditer(data):
                start = data.rfind(b"\n", 0, match.start()) + 1
                if python and b"#" in data[start : match.start()]:
                    continue
                line = data.count(b"\n", 0, match.start()) + 1
                return Seen(name, line, match.group(0).decode(errors="replace"))
        return None


_SCRIPT = re.compile(
    r"(^|[_-])(train|trainer|training|finetune|pretrain|sft|main|run|launch|generate|infer|inference)([_-]|\.py$)"
)


def _launches(name: str, data: bytes) -> bool:
    return _SCRIPT.search(posixpath.basename(name)) is not None or b"__main__" in data


def _call_in(name: str, data: bytes, pattern: re.Pattern[bytes]) -> Seen | None:
    """A call of the file whose line the pattern finds."""
    lines = {data.count(b"\n", 0, match.start()) + 1: match.group(0) for match in pattern.finditer(data)}
    if not lines:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
    called = {node.func.end_lineno for node in ast.walk(tree) if isinstance(node, ast.Call)}
    line = next((line for line in sorted(lines) if line in called), None)
    return Seen(name, line, lines[line].decode(errors="replace")) if line is not None else None


@lru_cache(maxsize=2)
def surroundings(repository: Repository) -> Surroundings:
    """What is around the files of a repository."""
    found = Surroundings()
    for name, path in _chosen(repository.root):
        try:
            if path.stat().st_size <= LARGEST:
                found.files[name] = path.read_bytes()
        except OSError:
            continue
        if len(found.files) >= MOST_FILES:
            break
    return found


def _chosen(root: Path) -> Iterator[tuple[str, Path]]:
    """The files to be read, those nearer to the root first."""
    levels: list[Path] = [root]
    seen = 0
    while levels:
        below: list[Path] = []
        for folder in levels:
            try:
                entries = sorted(os.scandir(folder), key=lambda one: one.name)
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if seen > MOST_ENTRIES:
                    return
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                            below.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False) and _wanted(entry.name):
                        yield Path(entry.path).relative_to(root).as_posix(), Path(entry.path)
                except OSError:
                    continue
        levels = below


def _wanted(name: str) -> bool:
    return bool(_PYTHON.search(name) if name.endswith(".py") else _OTHER.match(name))


_PIN = re.compile(rb"torch[-_]npu\s*(?:==|~=)\s*([0-9][\w.]*)")


@lru_cache(maxsize=2)
def pinned_torch_npu(repository: Repository) -> tuple[str, Seen] | None:
    """The version of torch_npu that the repo asks for, and where it says so."""
    around = surroundings(repository)
    for python in (False, True):
        found = around.first(_PIN, python)
        if found is not None:
            match = _PIN.search(found.text.encode())
            if match is not None:
                return match.group(1).decode().rstrip("."), found
    return None


@lru_cache(maxsize=256)
def number_of(repository: Repository | None, file: str, names: tuple[str, ...]) -> tuple[int, Seen] | None:
    """The whole number that a configuration beside a file (or the file itself) gives one of the fields by default.

    None where a file gives it several (a text and a vision model): that settles nothing.
    """
    for name, source in repository.configurations(file) if repository is not None else ():
        found = list(_number(names).finditer(source))
        values = {int(match.group(1)) for match in found}
        if len(values) > 1:
            return None
        if found:
            line = source.count(b"\n", 0, found[0].start()) + 1
            return values.pop(), Seen(name, line, found[0].group(0).decode(errors="replace"))
    return None


@lru_cache(maxsize=64)
def _number(names: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(
        rb"^[ \t]*(?:self\.)?(?:" + "|".join(names).encode() + rb")\s*(?::[^=\n]+)?=\s*(\d+)\b(?![ \t]*[.*/\w])",
        re.MULTILINE,
    )


def digest(root: Path) -> str:
    """What results of a scan rest on besides the files that they name: another digest, other surroundings."""
    found = blake2b(digest_size=16)
    for name, data in surroundings(Repository(root)).files.items():
        found.update(name.encode("utf-8", "surrogateescape") + b"\0" + blake2b(data, digest_size=16).digest())
    return found.hexdigest()
