"""The terminal table, the Markdown reports, progress, conclusion and the pull request."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import report_fixtures as fixtures
import report_hostile as hostile
from markdown_it import MarkdownIt

from npufuse_tui.judgement.cells import width
from npufuse_tui.language import Text
from npufuse_tui.model import (
    Backend,
    Candidate,
    Conclusion,
    Launch,
    Priority,
    Risk,
    Session,
    Severity,
    SpeedResult,
    Stage,
    TaskState,
    Verdict,
)
from npufuse_tui.report import labels, redact
from npufuse_tui.report import markdown as md
from npufuse_tui.report.api_lines import facts_of
from npufuse_tui.report.conclusion import conclude, conclusion_markdown, headline, not_measured
from npufuse_tui.report.identification import identification_markdown
from npufuse_tui.report.opportunity import opportunities, suggested_order
from npufuse_tui.report.progress import progress_markdown
from npufuse_tui.report.pull_request import pull_request_text
from npufuse_tui.report.table import scan_table

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


# the table


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [40, 60, 80, 100, 140, 220])
def test_no_line_is_wider_than_the_terminal(language: str, columns: int) -> None:
    text = scan_table(fixtures.scan(), language, columns)
    assert max(width(line) for line in text.splitlines()) <= columns
    for one in fixtures.scan().candidates:
        assert one.id in text
    for rule in ("moe_grouped", "rms_norm", "rotary", "swiglu"):
        assert rule in text
    assert "legacy/py2.py" in text


def test_columns_stand_under_their_heads_with_wide_characters() -> None:
    lines = scan_table(fixtures.scan(), "zh", 160).splitlines()
    head, rows = lines[0], lines[1:6]
    for word, cells in (
        ("规则", {"rms_norm", "swiglu", "moe_grouped"}),
        ("编号", {one.id for one in fixtures.scan().candidates}),
    ):
        at = width(head[: head.index(word)])
        for row in rows:
            place = next(row.index(cell) for cell in cells if cell in row)
            assert width(row[:place]) == at


def test_a_path_keeps_its_end_and_a_hostile_one_does_not_steer() -> None:
    long = fixtures.norm(file="a/" * 80 + "modeling_x.py")
    assert "modeling_x.py:59-63" in scan_table(fixtures.scan(long), "en", 90)
    text = scan_table(fixtures.scan(fixtures.norm(file=hostile.ALL, qualname=hostile.ALL)), "en", 120)
    assert "\x1b" not in text and "\u202e" not in text and "\u2028" not in text
    assert max(width(line) for line in text.split("\n")) <= 120


def test_many_skipped_files_are_counted_and_nothing_found_is_said() -> None:
    result = fixtures.scan()
    many = replace(result, skipped=result.skipped * 20, candidates=())
    text = scan_table(many, "en", 80)
    assert "and 20 more" in text and "No candidate was found." in text and "40 skipped" in text


# Markdown that holds


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


OWN_TAGS = {
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "ol",
    "li",
    "code",
    "pre",
    "strong",
    "details",
    "summary",
}


def seen(markdown: str) -> _Seen:
    """What a renderer with HTML allowed makes of it: the worst case."""
    found = _Seen()
    found.feed(MARKDOWN.render(markdown))
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_strings_stay_text_in_every_markdown_report(tmp_path: Path, language: str) -> None:
    session = hostile.session(tmp_path)
    assert session.scan is not None
    for text in (
        identification_markdown(session.scan, language),
        progress_markdown(session, language),
        conclusion_markdown(session, language),
        pull_request_text(session, language),
    ):
        found = seen(text)
        assert found.tags <= OWN_TAGS, found.tags - OWN_TAGS
        assert found.attributes <= {"class", "style"}
        assert "\x1b" not in text and "\u202e" not in text
        text.encode("utf-8")


@pytest.mark.parametrize("text", hostile.STRINGS)
def test_cells_and_spans_say_the_text_itself(text: str) -> None:
    plain = " ".join(md.visible(text).split())
    for cell in (md.sentence(text), md.code(text)):
        html = MARKDOWN.render(md.table(("a", "b"), [(cell, "end")]))
        cells = re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)
        assert len(cells) == 2 and cells[1] == "end"
        reader = _Text()
        reader.feed(cells[0])
        assert " ".join(reader.text.split()) == plain


class _Text(HTMLParser):
    text = ""

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("code", ["a\n```\nb", "````", "`````\n# x\n```", "no newline", "tail\n"])
def test_a_fence_holds_any_backticks(code: str) -> None:
    tokens = MARKDOWN.parse(f"before\n\n{md.fence(code, 'python')}\n\nafter")
    fences = [one for one in tokens if one.type == "fence"]
    assert [one.content.rstrip("\n") for one in fences] == [code.rstrip("\n")]
    assert tokens[-2].content == "after"


def test_names_stay_readable() -> None:
    assert md.sentence("torch_npu 2.13.0 of models/qwen3_moe.py") == "torch_npu 2.13.0 of models/qwen3_moe.py"


# identification


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_rule_every_place_every_reason(language: str) -> None:
    result = fixtures.scan()
    text = identification_markdown(result, language, facts_of(result.candidates))
    summary = text.split("\n## ")[1]
    for rule in result.rules:
        assert f"`{rule.id}`" in summary
    for one in result.candidates:
        assert f"`{one.id}`" in text
        for risk in one.risks:
            assert risk.message.in_language(language) in text
            assert f"{one.file}:{risk.line}" in text or f"`{risk.code}` ({risk.line})" in row_of(one, text)
    assert "is_torch_npu_available" in text and "utils/import_utils.py:812" in text
    assert "npu_rms_norm(Tensor input, Tensor gamma, float epsilon=1e-06)" in text
    for one in result.skipped:
        assert one.file in text
    assert text.count(fixtures.NORM.strip().splitlines()[0]) == 3  # the code once, its diff twice (old and new side)
    assert ("estimated" if language == "en" else "估计") in text


def row_of(one: Candidate, text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| `{one.id}` | `{one.file}"))


def test_a_risk_of_another_place_of_the_group_is_said_in_full() -> None:
    extra = Risk("non_contiguous", Severity.DANGER, Text("the input is a slice", "输入是切片"), 57)
    other = fixtures.norm(1, risks=(*fixtures.norm(1).risks, extra))
    text = identification_markdown(fixtures.scan(fixtures.norm(), other), "en")
    assert f"the input is a slice (`{other.file}:57`)" in text
    assert "danger" in suggested_order((fixtures.norm(), other))[0].reason.en


def test_equal_blocks_are_shown_once_and_differing_verdicts_are_not_mixed() -> None:
    odd = fixtures.norm(3, verdict=Verdict.CAUTION)
    groups = opportunities((*fixtures.scan().candidates, odd))
    norms = [one for one in groups if one.first.rule == "rms_norm"]
    assert [(one.first.verdict, len(one.places)) for one in norms] == [(Verdict.RECOMMENDED, 3), (Verdict.CAUTION, 1)]
    assert norms[0].launches_saved == 21


def test_the_order_takes_the_safe_and_large_first_and_says_why() -> None:
    broken = fixtures.norm(5, group="g-broken", check=fixtures.check("failed"))
    dangerous = fixtures.norm(
        6, group="g-danger", risks=(Risk("x", Severity.DANGER, Text("x", "x")),), priority=Priority.HIGH
    )
    turns = suggested_order((fixtures.mlp(), dangerous, fixtures.moe(), broken, fixtures.norm(), fixtures.norm(1)))
    assert [(one.opportunity.first.id, len(one.opportunity.places)) for one in turns] == [
        (fixtures.norm().id, 2),
        (dangerous.id, 1),
        (fixtures.mlp().id, 1),
    ]
    assert "launches -14 and passes over device memory -26" in turns[0].reason.en
    assert "estimated, counted from the graph" in turns[0].reason.en
    assert "launches +0 and passes over device memory +1" in turns[2].reason.en
    assert "danger" in turns[1].reason.en


def test_nothing_found_still_has_a_row_for_each_rule() -> None:
    text = identification_markdown(replace(fixtures.scan(), candidates=()), "en")
    assert "No candidate was found." in text and "`rotary`" in text


# conclusion, progress, pull request


def test_the_conclusion_sorts_and_says_what_was_not_measured(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    found = conclude(session)
    assert [len(part) for part in (found.adopt, found.reject, found.blocked, found.unfinished)] == [1, 2, 1, 0]
    text = conclusion_markdown(session, "en")
    assert "not measured: emulated" in text and "no step time here says anything about an NPU" in text
    assert "7 launches fewer" in text and "estimated" in text
    assert "speed was not measured" in headline(session).en and "性能未测量" in headline(session).zh


def test_on_an_npu_the_measured_speed_is_said_and_nothing_of_emulation(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, Backend.NPU)
    text = conclusion_markdown(session, "en") + pull_request_text(session, "en")
    assert "median step time 2.952 s → 2.588 s" in text and "0.8702 to 0.8836" in text
    assert "emulat" not in text


def test_what_is_missing_is_listed(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, Backend.NPU)
    first = session.tasks[0]
    assert first.loss is not None and session.baseline is not None
    unjudged = replace(first, loss=replace(first.loss, passed=None, reason=Text("baseline noise 3%", "基线波动 3%")))
    slow = replace(first, id="other", speed=SpeedResult("not measured", Text("too few steps", "步数太少")), op=None)
    changed = replace(session, tasks=(unjudged, slow), baseline=replace(session.baseline, noise_max_rel_diff=None))
    said = "\n".join(one.en for one in not_measured(changed))
    assert "baseline noise 3%" in said and "too few steps" in said and "operator check not run" in said
    assert "not run twice" in said and "Approved and not verified" in said


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("stage", list(Stage))
def test_progress_at_every_stage(tmp_path: Path, language: str, stage: Stage) -> None:
    whole = replace(fixtures.session(tmp_path), stage=stage)
    bare = Session("s1", "2026-11-30T09:00:00Z", "/r", None, None, None, stage)
    for session in (whole, bare, replace(whole, launch=None, tasks=()), replace(whole, approvals=())):
        text = progress_markdown(session, language)
        assert session.id in text and f"npufuse --resume {session.id}" in text
        assert labels.STAGE[stage].in_language(language) in text


@pytest.mark.parametrize("state", list(TaskState))
def test_progress_says_every_state(tmp_path: Path, state: TaskState) -> None:
    session = fixtures.session(tmp_path)
    changed = replace(session, tasks=(replace(session.tasks[0], state=state, conclusion=None, reason=None),))
    assert labels.STATE[state].en in progress_markdown(changed, "en")


def test_a_pull_request_holds_only_what_passed(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    text = pull_request_text(session, "en")
    title, body = text.split("\n\n", 1)
    assert title == "Use fused NPU operators: torch_npu.npu_rms_norm"
    changes = body.split("## ")[1]
    assert "modeling_qwen3.py:59-63" in changes and "swiglu" not in changes
    assert "Tried and not in this branch" in body and "swiglu" in body
    assert "not measured: emulated" in body and "train.py --steps 60" in body
    nothing = replace(session, tasks=tuple(replace(one, conclusion=Conclusion.REJECT) for one in session.tasks))
    assert "nothing to merge" in pull_request_text(nothing, "en")


# secrets


@pytest.mark.parametrize(
    ("shown", "secret"),
    [
        ("HF_TOKEN=abc123def python train.py", "abc123def"),
        ("train.py --api-key sk_live_xyz --steps 5", "sk_live_xyz"),
        ("train.py --hub_token=hf_ABCDEFGHIJKLMNOPQRST", "hf_ABCDEFGHIJKLMNOPQRST"),
        ("WANDB_API_KEY='a b c' run", "a b c"),
        ("git clone https://me:pass9@host/x", "pass9"),
        ("log: using ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_abcdefghijklmnopqrstuvwxyz0123"),
        ("password: hunter2x", "hunter2x"),
    ],
)
def test_secrets_are_hidden(shown: str, secret: str) -> None:
    assert secret not in redact.command(shown) and redact.HIDDEN in redact.command(shown)


@pytest.mark.parametrize(
    "shown",
    [
        "train.py --max_tokens 512 --steps 60",
        "tokens: 8192",
        "num_tokens=12k",
        "--tokenizer path/to/tok",
        "step 3 loss 2.1",
        "tokens_per_second=1834.2",
    ],
)
def test_what_is_no_secret_stays(shown: str) -> None:
    assert redact.command(shown) == shown


def test_no_report_shows_a_secret(tmp_path: Path) -> None:
    session = replace(
        fixtures.session(tmp_path),
        launch=Launch("HF_TOKEN=s3cr3t run --token=t0psecret", environment=(("X_SECRET", "q9q9"),)),
    )
    text = progress_markdown(session, "en") + pull_request_text(session, "en") + conclusion_markdown(session, "en")
    for secret in ("s3cr3t", "t0psecret", "q9q9"):
        assert secret not in text
