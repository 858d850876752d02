"""`--compare FILE`: what the script saves, of the unmodified code and of the candidate, put side by side.

Files: .npy, .safetensors, .json, .txt, and .pt, which only a child with torch reads (weights only, no pickled code).
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text

KINDS = (".pt", ".pth", ".npy", ".safetensors", ".json", ".txt")
_CHILD = """
import json, sys, torch
def flat(value, name=""):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from flat(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for key, one in enumerate(value):
            yield from flat(one, f"{name}[{key}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, torch.tensor(float(value), dtype=torch.float64)
base, other = (dict(flat(torch.load(p, map_location="cpu", weights_only=True))) for p in sys.argv[1:3])
rows = []
for name in sorted(set(base) | set(other)):
    if name not in base or name not in other:
        rows.append([name, None, None, "only in one"]); continue
    a, b = base[name], other[name]
    if a.shape != b.shape or a.dtype != b.dtype:
        rows.append([name, None, None, f"{tuple(a.shape)} {a.dtype} / {tuple(b.shape)} {b.dtype}"]); continue
    a, b = a.double().flatten(), b.double().flatten()
    if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
        rows.append([name, None, None, "not finite"]); continue
    a, b = a.nan_to_num(), b.nan_to_num()
    d = float((a - b).abs().max()) if a.numel() else 0.0
    n = float(a.norm() * b.norm())
    rows.append([name, float(a @ b) / n if n else (1.0 if d == 0 else 0.0), d, None])
print("\\n" + json.dumps(rows))
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """One file: passed when of each array the cosine > 0.999 or max |Δ| < 1e-4, and text is the same."""

    passed: bool
    reason: Text


def compare(base: Path, other: Path, python: Path, environ: Mapping[str, str], name: str) -> Compared:
    """Compare the file as both runs saved it. Raises WrongInput for a kind of file that is not known."""
    for path, whose in ((base, Text("the unmodified code", "未修改的代码")), (other, Text("the candidate", "该候选"))):
        if not path.is_file():
            return Compared(
                False, Text("{whose} did not write {name}", "{whose}没有写出 {name}").format(whose=whose, name=name)
            )
    kind = base.suffix.lower()
    if kind not in KINDS:
        raise WrongInput(
            Text("{name} cannot be compared: give one of {kinds}", "无法比较 {name}：请给出 {kinds} 之一").format(
                name=name, kinds=", ".join(KINDS)
            )
        )
    try:
        if kind == ".txt":
            return _text(base, other, name)
        if kind in (".pt", ".pth"):
            rows = _by_child(base, other, python, environ)
        else:
            rows = list(_rows(dict(_arrays(base)), dict(_arrays(other))))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, subprocess.SubprocessError) as error:
        return Compared(
            False,
            Text("{name} cannot be read: {why}", "无法读取 {name}：{why}").format(name=name, why=str(error)[:300]),
        )
    if not rows:
        return Compared(False, Text("{name} holds no numbers", "{name} 中没有数值").format(name=name))
    for part, cosine, difference, why in rows:
        if why is not None or not (cosine > 0.999 or difference < 1e-4):
            said = why or f"cosine {cosine:.6f}, max |Δ| {difference:.3g}"
            return Compared(
                False,
                Text("{name} differs at {part}: {said}", "{name} 在 {part} 处不同：{said}").format(
                    name=name, part=part or "-", said=said
                ),
            )
    return Compared(
        True,
        Text(
            "{name}: {count} arrays, cosine at least {cosine:.6f}, max |Δ| {difference:.3g}",
            "{name}：{count} 个数组，余弦至少 {cosine:.6f}，最大 |Δ| {difference:.3g}",
        ).format(
            name=name,
            count=len(rows),
            cosine=min(row[1] for row in rows),
            difference=max(row[2] for row in rows),
        ),
    )


def _text(base: Path, other: Path, name: str) -> Compared:
    ours, theirs = (path.read_text(encoding="utf-8", errors="replace").splitlines() for path in (base, other))
    if ours == theirs:
        return Compared(True, Text("{name}: the text is the same", "{name}：文本相同").format(name=name))
    line = next(
        (number for number, pair in enumerate(zip(ours, theirs, strict=False), 1) if pair[0] != pair[1]),
        min(len(ours), len(theirs)) + 1,
    )
    return Compared(
        False, Text("{name} differs from line {line} on", "{name} 从第 {line} 行起不同").format(name=name, line=line)
    )


def _by_child(base: Path, other: Path, python: Path, environ: Mapping[str, str]) -> list[list[Any]]:
    done = subprocess.run(
        [str(python), "-c", _CHILD, str(base), str(other)],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["?"]
        raise ValueError(lines[-1])
    rows: list[list[Any]] = json.loads(done.stdout.decode("utf-8", "replace").strip().splitlines()[-1])
    return rows


def _rows(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[list[Any]]:
    import numpy as np

    for name in sorted({*base, *other}):
        if name not in base or name not in other:
            yield [name, None, None, "only in one"]
            continue
        a, b = base[name], other[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            yield [name, None, None, f"{a.shape} {a.dtype} / {b.shape} {b.dtype}"]
            continue
        a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            yield [name, None, None, "not finite"]
            continue
        a, b = np.nan_to_num(a), np.nan_to_num(b)
        difference = float(np.abs(a - b).max()) if a.size else 0.0
        norm = float(np.linalg.norm(a) * np.linalg.norm(b))
        yield [name, float(a @ b) / norm if norm else float(difference == 0), difference, None]


def _arrays(path: Path) -> Iterator[tuple[str, Any]]:
    import numpy as np

    if path.suffix.lower() == ".npy":
        yield "", np.load(path, allow_pickle=False)
    elif path.suffix.lower() == ".json":
        yield from ((name, np.asarray(value)) for name, value in _numbers(json.loads(path.read_text("utf-8")), ""))
    else:
        yield from _safetensors(path)


def _numbers(value: object, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _numbers(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _numbers(one, f"{name}[{index}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, float(value) if abs(value) < 1e300 else math.inf


_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}


def _safetensors(path: Path) -> Iterator[tuple[str, Any]]:
    """The tensors of a file: 8 bytes of header length, a JSON header, the data (the format's own documentation)."""
    import numpy as np

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    for name, one in header.items():
        if name == "__metadata__":
            continue
        begin, end = one["data_offsets"]
        raw = data[8 + length + begin : 8 + length + end]
        if one["dtype"] == "BF16":
            array = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        elif one["dtype"] == "BOOL":
            array = np.frombuffer(raw, "u1")
        elif one["dtype"] in _DTYPES:
            array = np.frombuffer(raw, _DTYPES[one["dtype"]])
        else:
            raise ValueError(f"dtype {one['dtype']}")
        yield name, array.reshape(one["shape"])
