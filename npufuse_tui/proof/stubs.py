"""Stand-ins for the objects that a region reads from: `self`, its sub-modules, its config. Runs in the child.

A region is cut out of its class, so no instance is there. A stub gives what the plan says and, for anything else, a
module that hands its input through: both the original and the fused code then see the same, and what stands around the
region (a down projection, a dropout) adds nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any


class Identity:
    """A module that gives back its first argument unchanged."""

    training = False

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if arguments:
            return arguments[0]
        return next(iter(keywords.values()), None)

    def __repr__(self) -> str:
        return f"Identity({self._name!r})"


class Returns:
    """A callable that ignores its arguments and gives back `value`; of several values, one a call, in turn.

    `attributes` can be read from it (`self.gate_proj.weight`).
    """

    training = False

    def __init__(self, value: Any, *more: Any, **attributes: Any) -> None:
        self._values = (value, *more)
        self._calls = 0
        for name, attribute in attributes.items():
            setattr(self, name, attribute)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        value = self._values[self._calls % len(self._values)]
        self._calls += 1
        return value

    forward = __call__


class HeldNorm:
    """A held torch.nn.RMSNorm of the given weight and epsilon."""

    def __init__(self, weight: Any, eps: float) -> None:
        self.weight = weight
        self.eps = eps

    def __call__(self, value: Any) -> Any:
        from torch.nn.functional import rms_norm

        return rms_norm(value, self.weight.shape, self.weight, self.eps)


class Everywhere:
    """A holder that gives back `value` whatever it is indexed with (`self.bias[:, :, :T, :T]`)."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, index: Any) -> Any:
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)


class Stub:
    """An object with the given attributes; any other attribute is an identity module, `training` is False.

    `_methods` holds functions whose first parameter is self; they are bound to the stub.
    """

    training = False

    def __init__(self, *, _methods: Mapping[str, Callable[..., Any]] | None = None, **attributes: Any) -> None:
        for name, attribute in attributes.items():
            object.__setattr__(self, name, attribute)
        for name, function in (_methods or {}).items():
            object.__setattr__(self, name, MethodType(function, self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        module = Identity(name)
        object.__setattr__(self, name, module)
        return module

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return Identity()(*arguments, **keywords)
