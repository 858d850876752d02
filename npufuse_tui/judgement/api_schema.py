"""Operator schemas: the one-line declarations in which torch_npu registers its operators, read into data.

The grammar is PyTorch's (`aten/src/ATen/native/README.md`): ``name.overload(Type name=default, *, …) -> returns``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operator; `default` is None when the caller must give a value."""

    name: str
    type: str
    default: str | None
    keyword_only: bool


@dataclass(frozen=True)
class Schema:
    """One overload of an operator. `text` is the declaration as it was written, without a namespace."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    text: str

    @cached_property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments that a call may give by position."""
        return tuple(one for one in self.arguments if not one.keyword_only)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(one.name for one in self.arguments)


_HEAD = re.compile(r"\s*(?:(?P<space>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*\(")
_ARGUMENT = re.compile(r"(?:(?P<type>[\w.]+(?:\([a-z!|> *-]+\))?(?:\[\d*\])?\??(?:\[\d*\])?\??)\s+)?(?P<name>\w+)\s*$")
# The library prints defaults as C doubles, the declarations as a person typed them.
_LONG_NUMBER = re.compile(r"^-?\d+\.\d{8,}(?:e[+-]?\d+)?$|^-?\d(?:\.\d+)?e[+-]?\d+$")


def parse_schema(text: str) -> Schema:
    """Read one declaration. Raises ValueError for text that is none.

    A first argument called ``self`` is named ``input``: that is its name when it is given by keyword in Python.
    """
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"not an operator schema: {text[:80]!r}")
    end = _closing(text, head.end() - 1)
    arguments: list[Argument] = []
    keyword_only = False
    for piece in _split(text[head.end() : end]):
        if piece == "*":
            keyword_only = True
            continue
        declared, equals, default = _cut_default(piece)
        match = _ARGUMENT.match(declared.strip())
        if match is None:
            raise ValueError(f"not an argument of an operator schema: {piece!r} in {text[:80]!r}")
        name = match["name"]
        if name == "self" and not arguments:
            name = "input"
        arguments.append(
            Argument(name, match["type"] or "", _tidy(default.strip()) if equals else None, keyword_only=keyword_only)
        )
    after = text[end + 1 :].strip()
    returns = after[2:].strip().rstrip(".") if after.startswith("->") else ""
    return Schema(
        name=head["name"],
        overload=head["overload"] or "",
        arguments=tuple(arguments),
        returns=_returns(returns),
        text=text[head.start("name") :].strip(),
    )


def signature(schema: Schema) -> str:
    """The declaration as a person would write it: the names that Python knows, short numbers."""
    pieces: list[str] = []
    for argument in schema.arguments:
        if argument.keyword_only and "*" not in pieces:
            pieces.append("*")
        default = "" if argument.default is None else f"={argument.default}"
        pieces.append(f"{argument.type} {argument.name}{default}".strip())
    overload = f".{schema.overload}" if schema.overload else ""
    returns = schema.returns[0] if len(schema.returns) == 1 else f"({', '.join(schema.returns)})"
    return f"{schema.name}{overload}({', '.join(pieces)}) -> {returns}"


def _closing(text: str, opening: int) -> int:
    depth = 0
    quote = ""
    for place in range(opening, len(text)):
        character = text[place]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            if depth == 0:
                return place
    raise ValueError(f"the parenthesis is not closed: {text[:80]!r}")


def _split(inside: str) -> list[str]:
    pieces: list[str] = []
    depth, start, quote = 0, 0, ""
    for place, character in enumerate(inside):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character in ",，" and depth == 0:
            pieces.append(inside[start:place].strip())
            start = place + 1
    pieces.append(inside[start:].strip())
    return [piece for piece in pieces if piece]


def _cut_default(piece: str) -> tuple[str, str, str]:
    # An alias annotation holds no "=", so the first one starts the default.
    return piece.partition("=")


def _returns(text: str) -> tuple[str, ...]:
    if not text or text == "()":
        return ()
    if text.startswith("(") and _closing(text, 0) == len(text) - 1:
        return tuple(_split(text[1:-1]))
    return (text,)


def _tidy(default: str) -> str:
    if _LONG_NUMBER.match(default):
        return f"{float(default):.6g}"
    if default.endswith(".") and default[:-1].lstrip("-").isdigit():
        return f"{default}0"
    return default


def same_default(left: str | None, right: str | None) -> bool:
    """Whether two written defaults are one value: ``1.``, ``1.0`` and ``1`` are, and so are the two kinds of quotes."""
    if left is None or right is None:
        return left is right
    left, right = left.strip("\"'"), right.strip("\"'")
    if left == right:
        return True
    try:
        return abs(float(left) - float(right)) <= 1e-9 * max(abs(float(left)), abs(float(right)))
    except ValueError:
        return False
