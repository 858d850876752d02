"""Three themes with colours by meaning. Screens name the meaning ($ok, $bad, $added ...), never a colour."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="npufuse-dark",
    primary="#5fb3f0",
    secondary="#7c8aa5",
    accent="#8fc7f5",
    success="#7fd88f",
    warning="#e8c268",
    error="#f4777f",
    foreground="#d9dde4",
    background="#12151a",
    surface="#181c23",
    panel="#222831",
    dark=True,
    variables={
        "ok": "#7fd88f",
        "bad": "#f4777f",
        "warn": "#e8c268",
        "info": "#8fc7f5",
        "quiet": "#8b95a5",
        "added": "#123524",
        "removed": "#3d1c22",
        "added-word": "#1f5a34",
        "removed-word": "#6b2a34",
        "code-keyword": "#c9a1f0",
        "code-string": "#a8d08d",
        "code-comment": "#8b95a5",
        "code-number": "#e8b07a",
        "code-name": "#8fc7f5",
        "cursor-row": "#2b3a4d",
        "marked-row": "#1f2a3a",
        "title-row": "#222831",
        "rule": "#2c333e",
        "input-cursor-background": "#d9dde4",
    },
)

LIGHT = Theme(
    name="npufuse-light",
    primary="#0b62a8",
    secondary="#5b6675",
    accent="#0b62a8",
    success="#1a7a36",
    warning="#8a5a00",
    error="#b4232f",
    foreground="#1d2129",
    background="#fbfbfc",
    surface="#f3f4f6",
    panel="#e6e9ee",
    dark=False,
    variables={
        "ok": "#17702f",
        "bad": "#b4232f",
        "warn": "#855600",
        "info": "#0b62a8",
        "quiet": "#5d6673",
        "added": "#e0f4e4",
        "removed": "#fbe4e5",
        "added-word": "#a9dfb5",
        "removed-word": "#f3b3b7",
        "code-keyword": "#7a3ea8",
        "code-string": "#2f6f1f",
        "code-comment": "#68717e",
        "code-number": "#93500f",
        "code-name": "#0b62a8",
        "cursor-row": "#cfe2f5",
        "marked-row": "#e4eefa",
        "title-row": "#e6e9ee",
        "rule": "#d3d8df",
        "input-cursor-background": "#1d2129",
    },
)

# Okabe and Ito's palette: blue against vermilion, told apart with any of the common kinds of colour blindness.
COLOUR_BLIND = Theme(
    name="npufuse-colour-blind",
    primary="#56b4e9",
    secondary="#8b95a5",
    accent="#56b4e9",
    success="#56b4e9",
    warning="#f0e442",
    error="#ff8c42",
    foreground="#e4e7ec",
    background="#101215",
    surface="#171a1f",
    panel="#23282f",
    dark=True,
    variables={
        "ok": "#6cc0f2",
        "bad": "#ff8c42",
        "warn": "#f0e442",
        "info": "#cfd6df",
        "quiet": "#959eab",
        "added": "#0d2740",
        "removed": "#3d2410",
        "added-word": "#14507f",
        "removed-word": "#7a4413",
        "code-keyword": "#e0b8f0",
        "code-string": "#d9d2a0",
        "code-comment": "#959eab",
        "code-number": "#f0c489",
        "code-name": "#9ed3f5",
        "cursor-row": "#2f3a47",
        "marked-row": "#212a34",
        "title-row": "#23282f",
        "rule": "#2f363f",
        "input-cursor-background": "#e4e7ec",
    },
)

THEMES = (DARK, LIGHT, COLOUR_BLIND)
MEANINGS = dict(DARK.variables)
"""Fallbacks for a theme that does not know our meanings."""


def next_theme(name: str) -> str:
    names = [theme.name for theme in THEMES]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
