"""Secrets taken out of what is shown: a report is made to be passed on, the command in it may hold a token."""

from __future__ import annotations

import re

_SENSITIVE = r"[\w.-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential|private[_-]?key)[\w.-]*"
_ASSIGNED = re.compile(
    rf"(?i)(?<![\w-])(-{{0,2}}{_SENSITIVE})(\s*[=:]\s*|(?<=\w)\s+(?=[^-\s]))(\"[^\"]*\"|'[^']*'|[^\s\"';&|]+)"
)
_NAMED = re.compile(rf"(?i)^{_SENSITIVE}$")
_KNOWN = re.compile(r"\b(hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16})\b")
_IN_ADDRESS = re.compile(r"(\w+://[^/\s:@]+:)[^@\s/]+@")
HIDDEN = "[hidden]"


def command(text: str) -> str:
    """A command line, or lines of a log, with the values of what is named like a secret hidden."""
    text = _ASSIGNED.sub(_hide_assigned, text)
    return _KNOWN.sub(HIDDEN, _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text))


def environment(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Environment variables, with the values of those that are named like a secret hidden."""
    return tuple((name, HIDDEN if _NAMED.match(name) else command(value)) for name, value in pairs)


def _hide_assigned(found: re.Match[str]) -> str:
    name, between, value = found.groups()
    # "max_tokens 512", "tokens: 8192": counts of tokens are no secret, and a log is full of them.
    if re.fullmatch(r"[\d.,]+\w?", value.strip("\"'")):
        return found.group()
    if between.isspace() and not name.startswith("-"):
        return found.group()
    if re.search(r"(?i)token(?:s|izer)", name) and not re.search(r"(?i)secret|passw|key", name):
        return found.group()
    return f"{name}{between}{HIDDEN}"
