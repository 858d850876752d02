"""What is known around a candidate: facts of the fused operator's API, and the timeline of the cost model."""

from __future__ import annotations

from npufuse_tui.screens.chain import Timeline
from npufuse_tui.screens.details import Body

from npufuse_tui.model import Candidate


def api(one: Candidate) -> Body:
    return []


def timeline(one: Candidate) -> Timeline | None:
    return None
