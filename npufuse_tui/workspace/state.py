"""A session as files: `state.json`, small and written on every change, and the scan, which is large and is not.

Both are JSON that a person can read. The scan's file is named by its content, so that a state file always finds the
scan that it was written with.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npufuse_tui.durable import write_durably
from npufuse_tui.errors import KeptSafe, WrongInput
from npufuse_tui.language import Text
from npufuse_tui.model import Approval, ScanResult, Session
from npufuse_tui.workspace.places import STATE_FILE

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = 1
PREVIOUS = "state.previous.json"


@dataclass(frozen=True, slots=True)
class Decided:
    """What one decision changed: the approval of each candidate before it (None: it had none)."""

    candidate: str
    before: Approval | None


@dataclass(frozen=True, slots=True)
class State:
    """Everything that is saved. `history` holds the decisions that can be taken back, the last one last."""

    session: Session
    history: tuple[tuple[Decided, ...], ...] = ()


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _json(document: Any) -> bytes:
    """JSON as a person reads it.

    Escaped throughout where a file name is no UTF-8, because JSON has no other way to say it.
    """
    try:
        return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(document, indent=1).encode() + b"\n"


def scan_bytes(scan: ScanResult) -> bytes:
    return _json(_adapter(ScanResult).dump_python(scan, mode="json"))


def scan_file(data: bytes) -> str:
    return f"scan-{hashlib.sha256(data).hexdigest()[:16]}.json"


def write(folder: Path, state: State, scan_name: str | None) -> None:
    """Replace the state file at once; the one before stays beside it."""
    document = {
        "schema": SCHEMA,
        "session": _adapter(Session).dump_python(replace(state.session, scan=None), mode="json"),
        "scan": scan_name,
        "history": _adapter(tuple[tuple[Decided, ...], ...]).dump_python(state.history, mode="json"),
    }
    write_durably(folder / STATE_FILE, _json(document), keep_previous=folder / PREVIOUS)


def read(folder: Path, *, with_scan: bool = True) -> tuple[State, str | None]:
    """The state and the name of its scan file.

    Raises WrongInput when neither the state file nor the one before can be read, KeptSafe when a newer npufuse wrote
    it.
    """
    problems: list[str] = []
    for name in (STATE_FILE, PREVIOUS):
        try:
            return _read(folder, name, with_scan)
        except KeptSafe:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    raise WrongInput(
        Text(
            "session {id} cannot be read ({why}): its folder {folder} is left as it is; start a new session",
            "无法读取会话 {id}（{why}）：其文件夹 {folder} 保持原样；请新建会话",
        ).format(id=folder.name, why=problems[0], folder=folder)
    )


def _read(folder: Path, name: str, with_scan: bool) -> tuple[State, str | None]:
    document = json.loads((folder / name).read_bytes())
    if document["schema"] > SCHEMA:
        raise KeptSafe(
            Text(
                "session {id} was written by a newer npufuse (format {found}, this one knows {known}): update npufuse",
                "会话 {id} 由更新版本的 npufuse 写入（格式 {found}，当前支持 {known}）：请升级 npufuse",
            ).format(id=folder.name, found=document["schema"], known=SCHEMA)
        )
    session: Session = _adapter(Session).validate_python(document["session"])
    history = _adapter(tuple[tuple[Decided, ...], ...]).validate_python(document["history"])
    scan_name: str | None = document["scan"]
    if scan_name is not None and with_scan:
        session = replace(session, scan=read_scan(folder / scan_name))
    return State(session, history), scan_name


def read_scan(path: Path) -> ScanResult:
    scan: ScanResult = _adapter(ScanResult).validate_python(json.loads(path.read_bytes()))
    return scan
