"""Names of ours that would shadow Textual's own private ones: they break message pumps in ways that are hard to see."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap

from textual.app import App
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.widget import Widget

from npufuse_tui import app, screens

BASES = (App, Screen, ModalScreen, ScrollView, Widget)


def own_classes() -> list[type]:
    modules = [
        importlib.import_module(f"{screens.__name__}.{one.name}") for one in pkgutil.iter_modules(screens.__path__)
    ]
    found = []
    for module in [*modules, app]:
        for one in vars(module).values():
            if inspect.isclass(one) and one.__module__ == module.__name__ and issubclass(one, BASES):
                found.append(one)
    return found


def private_names(cls: type) -> set[str]:
    """Private methods and attributes that the class itself defines or assigns."""
    names = {name for name in vars(cls) if name.startswith("_") and not name.startswith("__")}
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    for node in ast.walk(tree):
        stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if stored and node.attr.startswith("_") and isinstance(node.value, ast.Name) and node.value.id == "self":
            names.add(node.attr)
    return names


def textual_names() -> set[str]:
    """Every private attribute of Textual's classes, those assigned in methods included."""
    names: set[str] = set()
    for base in BASES:
        for one in base.__mro__:
            if not one.__module__.startswith("textual"):
                continue
            names |= {name for name in vars(one) if name.startswith("_") and not name.startswith("__")}
            names |= private_names(one)
    return names


def test_no_private_name_of_textual_is_taken() -> None:
    theirs = textual_names() - {"_css_type_names", "_abc_impl"}
    made = {
        *("_merged_bindings", "_css_bases", "_computes", "_css_type_name", "_css_type_names", "_decorated_handlers"),
        *("_inherit_bindings", "_inherit_css", "_inherit_component_classes", "_reactives", "_default_css", "_abc_impl"),
    }
    clashes = {
        f"{cls.__module__}.{cls.__name__}.{name}"
        for cls in own_classes()
        for name in (private_names(cls) & theirs) - made
    }
    assert not clashes
