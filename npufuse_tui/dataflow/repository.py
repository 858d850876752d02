"""The files of a scan's root that an import may lead to, and the record of what was asked of them.

A result depends on more than its own file: helpers, base classes and configurations of other files. Everything that is
asked here is noted with the file that asked, so that a kept result can be told from a stale one (`dependencies`).
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from npufuse_tui.dataflow.source import LARGEST_IMPORTED, SourceModule, read_module

MOST_CONFIGURATIONS = 8
"""Configuration files of one folder that are searched for a default."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a file's result rests on besides the file itself.

    `contents`: file → digest of its bytes ("" where it was not read). `imports`: (folder, level, module) → the files
    that it may mean. `configurations`: folder → its configuration files. `files`: file → whether it is there.
    """

    contents: tuple[tuple[str, str], ...] = ()
    imports: tuple[tuple[str, int, str, tuple[str, ...]], ...] = ()
    configurations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    files: tuple[tuple[str, bool], ...] = ()


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


class Repository:
    """The files below a root; each is read and parsed once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._listings: dict[str, tuple[str, dict[str, bool]] | None] = {}
        self._digests: dict[str, str] = {}
        self._asked: dict[str, set[tuple[str, int, str]]] = {}
        self._configured: set[str] = set()
        self._looked_for: dict[str, set[str]] = {}
        self._places = lru_cache(maxsize=8192)(self._files)
        self._bytes = lru_cache(maxsize=512)(self._read)
        self._load = lru_cache(maxsize=64)(self._parse)
        self._defaults = lru_cache(maxsize=4096)(self._default_in)
        self._configurations = lru_cache(maxsize=1024)(self._configuration_files)

    def resolve(self, file: str, level: int, module: str, definition: bytes) -> SourceModule | None:
        """The file that `from <module> import` of `file` means, when it holds the words of the definition.

        A file without them is not parsed: looking at bytes is a hundred times as quick.
        """
        asked = (posixpath.dirname(file) or ".", level, module)
        self._asked.setdefault(file, set()).add(asked)
        for path in self._places(*asked):
            source = self._bytes(path)
            if source is not None and definition in source:
                return self._load(path)
        return None

    def default_of(self, file: str, field: str) -> str | None:
        """The string that a configuration beside the file (or the file itself) gives to a field by default."""
        self._configured.add(file)
        return self._defaults(posixpath.dirname(file) or ".", file, field)

    def configurations(self, file: str) -> tuple[tuple[str, bytes], ...]:
        """The configuration files beside a file, then the file itself, as bytes; what cannot be read is left out."""
        self._configured.add(file)
        names = (*self._configurations(posixpath.dirname(file) or "."), file)
        read = ((name, self._bytes(name)) for name in dict.fromkeys(names))
        return tuple((name, data) for name, data in read if data is not None)

    def source(self, file: str) -> bytes | None:
        """The bytes of a file of the root; None for one that is not opened."""
        return self._bytes(file)

    def has_file(self, asking: str, file: str) -> bool:
        """Whether a file of the root is there; `asking` is the file whose result rests on the answer."""
        self._looked_for.setdefault(asking, set()).add(file)
        return self.is_file(file)

    def is_file(self, file: str) -> bool:
        folder, name = posixpath.split(posixpath.normpath(file))
        listing = self._listing(folder or ".")
        return listing is not None and name in listing[1]

    def dependencies(self, file: str) -> Dependencies:
        """What was asked for the sake of a file, by itself and by the files that it led to."""
        contents: set[str] = set()
        imports: set[tuple[str, int, str]] = set()
        folders: set[str] = set()
        files: set[str] = set()
        todo, seen = [file], {file}
        while todo:
            asking = todo.pop()
            files |= self._looked_for.get(asking, set())
            if asking in self._configured:
                folder = posixpath.dirname(asking) or "."
                folders.add(folder)
                contents.update((*self._configurations(folder), asking))
            for asked in self._asked.get(asking, ()):
                imports.add(asked)
                for place in self._places(*asked):
                    contents.add(place)
                    if place not in seen:
                        seen.add(place)
                        todo.append(place)
        contents.discard(file)
        return Dependencies(
            tuple((one, self.digest(one)) for one in sorted(contents)),
            tuple((*one, self._places(*one)) for one in sorted(imports)),
            tuple((one, self._configurations(one)) for one in sorted(folders)),
            tuple((one, self.is_file(one)) for one in sorted(files)),
        )

    def still_holds(self, known: Dependencies) -> bool:
        """Whether everything that a result rests on is as it was."""
        return (
            all(self._places(folder, level, module) == places for folder, level, module, places in known.imports)
            and all(self._configurations(folder) == files for folder, files in known.configurations)
            and all(self.is_file(file) == there for file, there in known.files)
            and all(self.digest(file) == digest for file, digest in known.contents)
        )

    def note(self, file: str, data: bytes) -> None:
        """Tell the bytes of a file that were read elsewhere, so that it is not opened again for its digest."""
        self._digests.setdefault(file, digest_of(data) if len(data) <= LARGEST_IMPORTED else "")

    def digest(self, file: str) -> str:
        """The digest of a file's bytes as they were first read; "" for a file that is not opened."""
        known = self._digests.get(file)
        if known is None:
            self._bytes(file)
            known = self._digests[file]
        return known

    def _default_in(self, folder: str, file: str, field: str) -> str | None:
        if not field.isidentifier():
            return None
        words = re.compile(rb"\b" + field.encode() + rb"""\s*(?::[^=\n]+)?=\s*["']([\w.-]+)["']""")
        for path in (*self._configurations(folder), file):
            source = self._bytes(path)
            said = set(words.findall(source)) if source is not None else set()
            if said:
                # two configurations in one file that differ (a text and a vision model) settle nothing
                return said.pop().decode() if len(said) == 1 else None
        return None

    def _configuration_files(self, folder: str) -> tuple[str, ...]:
        listing = self._listing(folder)
        names = sorted(name for name in listing[1] if "config" in name and name.endswith(".py")) if listing else []
        return tuple(_joined(folder, name) for name in names[:MOST_CONFIGURATIONS])

    def _files(self, folder: str, level: int, module: str) -> tuple[str, ...]:
        parts = module.split(".") if module else []
        if level:
            tops: Iterable[str] = [posixpath.join(folder, *[".."] * (level - 1))]
        else:
            tops = dict.fromkeys([".", "src", folder, *_parents(folder)])
        found: list[str] = []
        for top in tops:
            place = posixpath.normpath(posixpath.join(top, *parts))
            if place.startswith(".."):
                continue
            names = [f"{place}.py"] if place != "." else []
            for name in (*names, _joined(place, "__init__.py")):
                real = self._real(name)
                if real is not None:
                    found.append(real)
        return tuple(found)

    def _real(self, file: str) -> str | None:
        """The file as it is called without symbolic links; None when it is not there, or outside of the root."""
        folder, name = posixpath.split(file)
        listing = self._listing(folder or ".")
        if listing is None or name not in listing[1]:
            return None
        if not listing[1][name]:
            return _joined(listing[0], name)
        real = (self.root / file).resolve()
        return real.relative_to(self.root).as_posix() if self.root in real.parents else None

    def _listing(self, folder: str) -> tuple[str, dict[str, bool]] | None:
        """The real name of a folder, and its files: name → whether it is a symbolic link. None when it is outside."""
        if folder not in self._listings:
            self._listings[folder] = self._listed(folder)
        return self._listings[folder]

    def _listed(self, folder: str) -> tuple[str, dict[str, bool]] | None:
        try:
            real = (self.root / folder).resolve()
            if real != self.root and self.root not in real.parents:
                return None
            with os.scandir(real) as entries:
                names = {entry.name: entry.is_symlink() for entry in entries if entry.is_file()}
        except (OSError, ValueError, RuntimeError):
            return None
        return real.relative_to(self.root).as_posix(), names

    def _read(self, file: str) -> bytes | None:
        data: bytes | None = None
        try:
            path = self.root / file
            if path.stat().st_size <= LARGEST_IMPORTED:
                data = path.read_bytes()
        except (OSError, ValueError):
            data = None
        self._digests.setdefault(file, digest_of(data) if data is not None else "")
        return data

    def _parse(self, file: str) -> SourceModule | None:
        source = self._bytes(file)
        try:
            return read_module(file, source, self) if source is not None else None
        except (SyntaxError, ValueError, RecursionError):
            return None


def _joined(folder: str, name: str) -> str:
    return name if folder in ("", ".") else f"{folder}/{name}"


def _parents(folder: str) -> list[str]:
    found = []
    while folder not in ("", ".", "/"):
        folder = posixpath.dirname(folder) or "."
        found.append(folder)
    return found
