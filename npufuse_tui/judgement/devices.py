"""What `knowledge/devices.toml` says of the devices: names, products, and the constants of the time model."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from npufuse_tui import schemas
from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of the time model and where it is from."""

    value: float
    source: Text


@dataclass(frozen=True, slots=True)
class Device:
    """One device as torch sees it (one die). Bandwidth in bytes a second, gap and shortest kernel in seconds."""

    id: str
    product: str
    title: Text
    bandwidth: Constant
    reached: Constant
    launch_gap: Constant
    shortest: Constant
    names: tuple[str, ...] = ()
    soc: tuple[int, ...] = ()
    also: tuple[str, ...] = ()

    def served_by(self, products: Iterable[str]) -> bool:
        """Whether a list of products, as rules and documentation write them, names this device's."""
        return any(one in (self.product, *self.also) for one in products)

    def with_gap(self, seconds: float, source: Text) -> Device:
        """The same device with a launch gap that was measured, or that a case gives."""
        return replace(self, launch_gap=Constant(seconds, source))


DEFAULT = "A2"


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """Every device that is known."""
    text = (schemas.folder().parent / "devices.toml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = tomllib.loads(text)
    defaults = entries.pop("defaults")
    return tuple(_device(name, defaults | entry) for name, entry in entries.items())


def device(name: str = DEFAULT) -> Device:
    """The device called `name`: our id, a product, or what npu-smi or torch call it. Raises WrongInput for another."""
    wanted = name.strip()
    for one in devices():
        if wanted.casefold() == one.id.casefold():
            return one
    found = recognise(wanted) or next((one for one in devices() if one.product.casefold() == wanted.casefold()), None)
    if found is None:
        raise WrongInput(
            Text(
                "{name} is no device that is known; give one of {known}", "未知设备 {name}；请给出以下之一：{known}"
            ).format(name=name, known=", ".join(one.id for one in devices()))
        )
    return found


def recognise(name: str) -> Device | None:
    """The device that npu-smi or `torch.npu.get_device_name()` calls `name`, or None."""
    return next(
        (one for one in devices() if any(re.fullmatch(p, name.strip(), re.IGNORECASE) for p in one.names)), None
    )


def _device(name: str, entry: Mapping[str, Any]) -> Device:
    return Device(
        id=name,
        product=str(entry["product"]),
        title=_text(entry["title"]),
        bandwidth=Constant(float(entry["bandwidth_gb_s"]) * 1e9, _text(entry["bandwidth_source"])),
        reached=Constant(float(entry["reached"]), _text(entry["reached_source"])),
        launch_gap=Constant(float(entry["launch_gap_us"]) * 1e-6, _text(entry["launch_gap_source"])),
        shortest=Constant(float(entry["shortest_kernel_us"]) * 1e-6, _text(entry["shortest_kernel_source"])),
        names=tuple(entry["names"]),
        soc=tuple(entry["soc"]),
        also=tuple(entry.get("also", ())),
    )


def _text(entry: Mapping[str, str]) -> Text:
    return Text(entry["en"], entry["zh"])
