"""`npu-smi info`, read into data.

The table differs by product and version (with or without HBM, Phy-ID, hugepages), so cells are read by the words of
the table's own head, never by place. Every device takes two rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Memory in MB as the tool prints it; None where it prints none (or NA)."""

    npu: int
    chip: int
    name: str
    health: str
    bus: str
    power: float | None
    temperature: float | None
    utilisation: float | None
    memory_used: int | None
    memory_total: int | None

    @property
    def healthy(self) -> bool:
        return self.health.casefold() == "ok"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds memory of a chip, in MB."""

    npu: int
    chip: int
    pid: int
    name: str
    memory: int | None


@dataclass(frozen=True, slots=True)
class Smi:
    """What the tool said. `version` is the driver's; `trouble` is its own message when there is no table."""

    version: str | None
    chips: tuple[Chip, ...]
    processes: tuple[Process, ...]
    trouble: str | None = None


_VERSION = re.compile(r"npu-smi\s+(\S+)(?:\s+Version:\s*(\S+))?")
_SLASHED = re.compile(r"(\d+)\s*/\s*(\d+)")


def parse_smi(text: str) -> Smi:
    """Read the output of `npu-smi info`. Never raises: what cannot be read is left out."""
    version: str | None = None
    heads: list[list[str]] = []
    rows: list[dict[str, str]] = []
    processes: list[Process] = []
    in_processes = False
    for line in text.splitlines():
        bare = line.strip()
        found = _VERSION.search(bare)
        if found and version is None:
            version = (found[2] or found[1]).rstrip("|")
        if not bare.startswith("|"):
            continue
        cells = [one.strip() for one in bare.strip("|").split("|")]
        if "Process id" in bare:
            in_processes = True
        elif in_processes:
            processes += _process(cells)
        elif cells[0].startswith(("NPU ", "Chip")) and len(cells) >= 3:
            # The two rows of the head; a page may repeat them.
            words = [word for cell in cells for word in cell.split()]
            heads = [words] if cells[0].startswith("NPU ") else [*heads[:1], words]
        elif len(heads) == 2 and len(cells) >= 3:
            rows.append(_row(cells, heads[len(rows) % 2]))
    chips = tuple(one for upper, lower in zip(rows[::2], rows[1::2], strict=False) if (one := _chip(upper, lower)))
    return Smi(version, chips, tuple(processes), None if chips else _trouble(text))


def _row(cells: list[str], head: list[str]) -> dict[str, str]:
    words = [word for cell in cells for word in _SLASHED.sub(r"\1/\2", cell).split()]
    if "Name" in head and len(words) > len(head):
        # A name of several words: the first word is the NPU's number, the surplus belongs to the name.
        surplus = len(words) - len(head)
        words = [words[0], " ".join(words[1 : 2 + surplus]), *words[2 + surplus :]]
    return dict(zip(head, words, strict=False))


def _chip(upper: dict[str, str], lower: dict[str, str]) -> Chip | None:
    npu, chip = _whole(upper.get("NPU")), _whole(lower.get("Chip"))
    if npu is None or "Name" not in upper or "Health" not in upper:
        return None
    own, high = lower.get("Memory-Usage(MB)", ""), lower.get("HBM-Usage(MB)", "")
    used, total = _pair(high)
    if not total:  # cards without HBM show their memory in the other column
        used, total = _pair(own)
    return Chip(
        npu=npu,
        chip=chip if chip is not None else 0,
        name=upper["Name"],
        health=upper["Health"],
        bus=lower.get("Bus-Id", ""),
        power=_number(upper.get("Power(W)")),
        temperature=_number(upper.get("Temp(C)")),
        utilisation=_number(lower.get("AICore(%)")),
        memory_used=used,
        memory_total=total,
    )


def _process(cells: list[str]) -> list[Process]:
    if len(cells) < 4:
        return []
    place, pid = cells[0].split(), _whole(cells[1])
    if pid is None or not place or not place[0].isdigit():
        return []
    chip = int(place[1]) if len(place) > 1 and place[1].isdigit() else 0
    return [Process(int(place[0]), chip, pid, cells[2], _whole(cells[3]))]


def _trouble(text: str) -> str | None:
    lines = [one.strip() for one in text.splitlines() if one.strip() and one.strip()[0] not in "+|"]
    return lines[0][:200] if lines else None


def _pair(text: str) -> tuple[int | None, int | None]:
    found = _SLASHED.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found else (None, None)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None


def board_values(text: str) -> dict[str, str]:
    """The lines `key : value` of `npu-smi info -t board -i N`."""
    found = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in found if colon and value.strip()}
