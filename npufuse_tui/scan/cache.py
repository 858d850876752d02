"""Results of earlier scans, kept by what they rest on, so that a second scan looks only at what changed.

A result is kept under the context of the scan (rules, target, npufuse's own code, Python), the file's name and the
digest of its bytes. It is used again only when the other files that it rests on are as they were, too. The cache is one
SQLite database in the user's cache folder, its rows JSON that is checked when it is read. Whatever goes wrong with it
(it is read-only, damaged, or locked by another scan) costs time and nothing else.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from npufuse_tui.dataflow.repository import Repository, digest_of
from npufuse_tui.judgement import surroundings
from npufuse_tui.scan.discover import Found
from npufuse_tui.scan.result import FileResult

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = 1
"""Of the database; another one is thrown away."""

LARGEST_CACHE = 256_000_000
"""Bytes that the database may grow to; what was used longest ago goes first."""

ROOMS = ("dataflow", "rewrite", "scan", "judgement", "knowledge")
WORDS = ("model.py", "rules.py", "language.py")
"""The code that a result depends on: all of these folders, and these files."""

A_DAY = 86_400

_log = logging.getLogger(__name__)


def folder() -> Path:
    """The folder of the database, below the user's cache folder."""
    from platformdirs import user_cache_path

    return Path(user_cache_path("npufuse")) / "scan"


def context(root: Path, rules: Sequence[str], extra_rules: Sequence[str], target: str) -> str:
    """What is the same for every result of a scan: another context never sees them.

    What the repo says around its files (how it is launched and configured) is a part of it: risks and gates rest on it.
    """
    digest = blake2b(_engine_digest().encode(), digest_size=16)
    digest.update(surroundings.digest(root).encode())
    for part in (target, *sorted(rules)):
        digest.update(part.encode() + b"\0")
    for place in extra_rules:
        for path in _rule_files(Path(place)):
            digest.update(path.name.encode("utf-8", "surrogateescape") + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _rule_files(place: Path) -> list[Path]:
    """The extra rules and what stands beside them, which they may import."""
    return sorted((place if place.is_dir() else place.parent).glob("*.py"))


@cache
def _engine_digest() -> str:
    """npufuse's own code, so that an edited engine never serves what the one before found."""
    import npufuse_tui

    top = Path(npufuse_tui.__file__).parent
    digest = blake2b(repr((SCHEMA, npufuse_tui.__version__, sys.version_info[:3])).encode(), digest_size=16)
    for room in ROOMS:
        place = Path(next(iter(import_module(f"npufuse_tui.{room}").__path__)))
        for path in sorted(place.rglob("*.py")):
            digest.update(f"{room}/{path.relative_to(place).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    for name in WORDS:
        digest.update(name.encode() + b"\0" + (top / name).read_bytes() + b"\0")
    return digest.hexdigest()


def lookup(scan: str, root: Path, files: Sequence[Found]) -> dict[str, FileResult]:
    """The results that still hold, by file."""
    names = {found.name: found for found in files if _can_be_said(found.name)}
    try:
        with _database() as database:
            rows = list(_rows(database, scan, list(names)))
    except (sqlite3.Error, OSError) as error:
        _log.info("no results of earlier scans: %s", error)
        return {}
    repository = Repository(root)
    digests = {name: _digest(repository, names[name]) for name in {row[0] for row in rows}}
    kept: dict[str, FileResult] = {}
    used: list[int] = []
    for file, digest, payload, check, row in rows:
        if digests[file] != digest or not isinstance(payload, bytes) or digest_of(payload) != check:
            continue
        try:
            result = _adapter().validate_json(payload)
        except ValueError:
            continue
        if result.file == file and result.digest == digest and repository.still_holds(result.dependencies):
            kept[file] = replace(result, cached=True, parsed=False)
            used.append(row)
    _touch(used)
    return kept


def keep(scan: str, results: Iterable[FileResult]) -> None:
    """Keep what was found, but for files that were skipped: the next scan looks at these again."""
    now = int(time.time())
    rows = []
    for result in results:
        if result.cached or result.skipped is not None or not result.digest or not _can_be_said(result.file):
            continue
        try:
            payload = _adapter().dump_json(result)
        except ValueError:
            continue  # a name that is no UTF-8
        rows.append((scan, result.file, result.digest, payload, digest_of(payload), now))
    if not rows:
        return
    try:
        with _database() as database:
            database.executemany(
                "INSERT OR REPLACE INTO kept (scan, file, digest, payload, checksum, used) VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
            database.commit()
            _shrink(database)
    except (sqlite3.Error, OSError) as error:
        _log.info("the results are not kept: %s", error)


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[FileResult]:
    from pydantic import TypeAdapter

    return TypeAdapter(FileResult)


def _can_be_said(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _digest(repository: Repository, found: Found) -> str:
    try:
        data = found.path.read_bytes()
    except OSError:
        return ""
    repository.note(found.name, data)
    return digest_of(data)


def _rows(database: sqlite3.Connection, scan: str, names: Sequence[str]) -> Iterator[tuple[str, str, bytes, str, int]]:
    yield from database.execute(
        "SELECT file, digest, payload, checksum, id FROM kept "
        "WHERE scan = ? AND file IN (SELECT value FROM json_each(?))",
        (scan, json.dumps(names)),
    )


def _touch(rows: Sequence[int]) -> None:
    """Note that the rows were used, once a day at most."""
    now = int(time.time())
    try:
        with _database() as database:
            database.execute(
                "UPDATE kept SET used = ? WHERE used < ? AND id IN (SELECT value FROM json_each(?))",
                (now, now - A_DAY, json.dumps(rows)),
            )
            database.commit()
    except (sqlite3.Error, OSError) as error:
        _log.info("the cache cannot be written: %s", error)


def _shrink(database: sqlite3.Connection) -> None:
    """Let the rows that were used longest ago go until the database is small enough."""
    while _size(database) > LARGEST_CACHE:
        (count,) = database.execute("SELECT count(*) FROM kept").fetchone()
        if not count:
            return
        database.execute(
            "DELETE FROM kept WHERE id IN (SELECT id FROM kept ORDER BY used, id LIMIT ?)", (max(count // 8, 1),)
        )
        database.commit()
        database.execute("PRAGMA incremental_vacuum").fetchall()
        database.commit()


def _size(database: sqlite3.Connection) -> int:
    values = [
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    ]
    return int((values[0] - values[1]) * values[2])


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    """The database, made when it is not there. A damaged one is thrown away. Raises sqlite3.Error or OSError."""
    path = folder() / f"results-{SCHEMA}.sqlite3"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        database = _opened(path)
    except sqlite3.OperationalError:
        raise  # locked, or read-only: not damaged
    except sqlite3.DatabaseError:
        _throw_away(path)
        database = _opened(path)
    with closing(database):
        try:
            yield database
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            _throw_away(path)
            raise


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=5)
    try:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL").fetchall()
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, scan TEXT NOT NULL, file TEXT NOT NULL, "
            "digest TEXT NOT NULL, payload BLOB NOT NULL, checksum TEXT NOT NULL, used INTEGER NOT NULL, "
            "UNIQUE (scan, file, digest))"
        )
        database.execute("CREATE INDEX IF NOT EXISTS by_use ON kept (used)")
        database.execute("SELECT id, scan, file, digest, payload, checksum, used FROM kept LIMIT 1").fetchall()
    except BaseException:
        database.close()
        raise
    return database


def _throw_away(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        with suppress(OSError):
            path.with_name(name).unlink()
