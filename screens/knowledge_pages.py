"""What is known around a candidate, found out in a thread: facts of the fused operator, and the explanation."""

from __future__ import annotations

from npufuse_tui.screens.clean import plain
from npufuse_tui.screens.details import Body
from npufuse_tui.screens.page import Paragraph
from textual.content import Content

from npufuse_tui.model import Candidate


def facts(one: Candidate) -> object:
    """What is recorded of the fused operator. Raises WrongInput for one that is not known."""
    from npufuse_tui.judgement.api import lookup

    return lookup(one.api)


def facts_body(found: object, room: int) -> Body:
    """The API tab, from what `facts` gave."""
    from npufuse_tui.judgement.api import ApiFacts
    from npufuse_tui.judgement.api_text import show

    assert isinstance(found, ApiFacts)
    body: Body = []
    for number, line in enumerate(show(found, room).splitlines()):
        style = "bold $accent" if number == 0 or (line and not line.startswith(" ")) else ""
        body.append(Paragraph(plain(line, style) if style else Content(plain(line).plain), hang=4))
    return body


def explanation(one: Candidate) -> object:
    """Chain, stages, cost model."""
    from npufuse_tui.judgement.explain import captured, explain

    seen = captured(one.check) if one.check is not None else None
    return explain(one, shape=seen[0], dtype=seen[1]) if seen else explain(one)
