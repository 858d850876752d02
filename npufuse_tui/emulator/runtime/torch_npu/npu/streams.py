"""Streams and events. The CPU runs everything in order, so waiting is done when it is asked for."""

from __future__ import annotations

import time
from typing import Any

import torch

from .. import current


class Stream:
    """A stream in name."""

    _made = 0

    def __init__(self, device: object = None, priority: int = 0, **kwargs: object) -> None:
        Stream._made += 1
        self.device = torch.device("npu", current.number_of(device))
        self.device_index = self.device.index
        self.priority = priority
        self.stream_id = kwargs.get("stream_id", Stream._made)
        self.npu_stream = self.stream_id

    def wait_event(self, event: object) -> None:
        """Everything before has been done."""

    wait_stream = wait_event

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Everything before has been done."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch_npu.npu.Stream emulated device={self.device} id={self.stream_id}>"


class Event:
    """A point in time: of the CPU's clock, when it was recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._timing = enable_timing
        self._at: float | None = None

    def record(self, stream: object = None) -> None:
        self._at = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """It has happened."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """It has happened."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of the CPU between the two. Not the time that an NPU would take."""
        if not self._timing or not end_event._timing:
            raise RuntimeError("both events must be made with enable_timing=True to measure the time between them")
        if self._at is None or end_event._at is None:
            raise RuntimeError("both events must be recorded before the time between them is measured")
        return (end_event._at - self._at) * 1000.0


_default = Stream(0, stream_id=0)
_current = _default


def current_stream(device: object = None) -> Stream:
    return _current


def default_stream(device: object = None) -> Stream:
    return _default


def set_stream(stream: Stream | None) -> None:
    global _current
    _current = stream or _default


class StreamContext:
    """A context in which another stream is the current one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: Stream | None = None

    def __enter__(self) -> None:
        self._before = _current
        if self.stream is not None:
            set_stream(self.stream)

    def __exit__(self, *exception: Any) -> None:
        set_stream(self._before)


def stream(stream: Stream | None) -> StreamContext:
    return StreamContext(stream)
