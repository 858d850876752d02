"""One self-contained page: the template, its style and scripts inside, under a policy that lets nothing else in.

Every value is escaped by the template engine. A sentence is put in in both languages, and the style shows the one that
the reader chose, so that a page needs no script to be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from npufuse_tui import __version__
from npufuse_tui.language import Text
from npufuse_tui.report import labels
from npufuse_tui.report.markdown import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SCRIPTS = ("page.js", "chart.js", "steps.js")


def render(template: str, language: str, **values: Any) -> str:
    """A whole page. `language` is the one that it opens in; both are inside."""
    style = _asset("page.css")
    scripts = [_asset(name) for name in SCRIPTS]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_digest(style)}",
            "script-src " + " ".join(_digest(one) for one in scripts),
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    page = _environment().get_template(template)
    return page.render(
        language="zh" if language == "zh" else "en",
        policy=policy,
        style=_trusted(style),
        scripts=[_trusted(one) for one in scripts],
        version=__version__,
        labels=labels,
        **values,
    )


def both(text: Text | str, zh: str | None = None) -> Markup:
    """A sentence in both languages; one element where both are the same. Called in templates as `t`."""
    from markupsafe import Markup

    if isinstance(text, Text):
        en, chinese = text
    else:
        en, chinese = text, text if zh is None else zh
    if en == chinese:
        return Markup("{}").format(visible(en))
    return Markup('<span lang="en">{}</span><span lang="zh">{}</span>').format(visible(en), visible(chinese))


def data(value: object) -> Markup:
    """A value as JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return _trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _trusted(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - our own files, or JSON whose angle brackets are escaped


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("npufuse_tui.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(t=both, Text=Text, data=data)
    environment.filters.update(
        visible=visible,
        percent=labels.percent,
        seconds=labels.seconds,
        scientific=labels.scientific,
        cosine=labels.cosine,
    )
    return environment


def _asset(name: str) -> str:
    return files("npufuse_tui.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
