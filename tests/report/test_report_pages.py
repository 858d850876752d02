"""The pages and the files of a session, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import report_fixtures as fixtures
import report_hostile as hostile

from npufuse_tui.events import Event, ReportWritten
from npufuse_tui.language import Text
from npufuse_tui.model import Approval, Backend, Decision, Edit, FileEdit, Session, SpeedResult, Splice, Stage
from npufuse_tui.report.identification_page import identification_page
from npufuse_tui.report.metrics import (
    Comparison,
    Series,
    columns,
    comparison,
    read_series,
    relative_difference,
    thinned,
)
from npufuse_tui.report.session_report import write_reports
from npufuse_tui.report.validation import candidate_page, index_page, page_name


class Page(HTMLParser):
    """The elements, attributes, and the content of style and script elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem and self.inside:
            tag, attributes, before = self.inside[-1]
            self.inside[-1] = (tag, attributes, before + data)
        else:
            self.text += data


def every_page(session: Session, folder: Path) -> list[str]:
    assert session.scan is not None
    pages = [candidate_page(session, task, folder, "en") for task in session.tasks]
    return [*pages, index_page(session, {}, "en"), identification_page(session.scan, "en")]


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_every_script_and_style_is_in_the_policy_and_nothing_is_loaded(tmp_path: Path) -> None:
    for session in (fixtures.session(tmp_path), hostile.session(tmp_path)):
        for text in every_page(session, tmp_path):
            page = Page(text)
            policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
            assert policy is not None and policy.startswith("default-src 'none'") and "unsafe" not in policy
            for tag, attributes, content in page.inside:
                if attributes.get("type") == "application/json":
                    json.loads(content)
                else:
                    assert f"{tag}-src" in policy and digest(content) in policy
            assert len([one for one in page.inside if one[0] == "script"]) == 4
            for tag, attributes in page.elements:
                assert tag not in ("img", "iframe", "object", "embed", "base", "link", "form", "audio", "video")
                assert "style" not in attributes and "src" not in attributes
                assert not any(name.startswith("on") for name in attributes)
                target = attributes.get("href") or ""
                assert target.startswith("#") or re.fullmatch(r"[\w./-]*", target), target


def test_hostile_strings_are_text_and_nothing_else(tmp_path: Path) -> None:
    for text in every_page(hostile.session(tmp_path), tmp_path):
        assert "<script>window.owned" not in text and "<img" not in text
        assert "\x1b" not in text and "\u202e" not in text
        text.encode("utf-8")
    page = Page(every_page(hostile.session(tmp_path), tmp_path)[0])
    assert "</script><script>window.owned=1</script>" in page.text and "{{ 7*7 }}" in page.text


def test_both_languages_are_in_the_page(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    for language in ("en", "zh"):
        text = candidate_page(session, session.tasks[0], tmp_path, language)
        assert f'data-lang="{language}"' in text
        for said in ("all checks that could run here passed", "此处能运行的校验全部通过"):
            assert said in text


def test_every_sentence_has_its_twin(tmp_path: Path) -> None:
    """As many English as Chinese elements, and none of them empty."""
    for session in (fixtures.session(tmp_path), fixtures.session(tmp_path, Backend.NPU)):
        for text in every_page(session, tmp_path):
            english = re.findall(r'<span lang="en">(.*?)</span><span lang="zh">(.*?)</span>', text, re.DOTALL)
            assert len(english) == text.count('<span lang="en">') == text.count('<span lang="zh">') > 10
            assert all(en.strip() and zh.strip() for en, zh in english)
            assert all(not re.search(r"[\u4e00-\u9fff]", en) for en, _ in english)


def test_emulated_times_are_veiled_and_never_a_speed(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    wrong = SpeedResult("faster", Text("wrong", "错"), 2.9, 1.0, 0.34, 0.33, 0.35)
    task = replace(session.tasks[0], speed=wrong)
    session = replace(session, tasks=(task,))
    text = Page(candidate_page(session, task, tmp_path, "en")).text
    assert "not measured: emulated" in text and "CPU emulation" in text
    assert "0.34" not in text and "faster" not in text
    index = Page(index_page(session, {}, "en")).text
    assert "0.34" not in index and "faster" not in index and "not measured: emulated" in index


def test_a_measured_speed_is_not_veiled(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, Backend.NPU)
    text = candidate_page(session, session.tasks[0], tmp_path, "en")
    assert 'class="veil' not in text and 'data-ratio="0.8767"' in text
    assert "emulat" not in Page(text).text
    blind = replace(session.tasks[0], speed=SpeedResult("not measured", Text("too few steps", "步数太少")))
    assert "not measured: too few steps" in Page(candidate_page(session, blind, tmp_path, "en")).text


def test_facts_are_in_the_page_and_secrets_are_not(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    text = Page(candidate_page(session, session.tasks[0], tmp_path, "en")).text
    for fact in (
        "4f0c1c2f2a6be0b7f0c3f5e1a8de90cbd1a2b3c4",
        "torchrun --nproc_per_node 1 train.py",
        "hf_trainer",
        "2.13.0 (emulated)",
        "Lin Wei <lin@example.com>",
        "sha256:5d41402abc4b2a76",
        "runs/baseline/baseline-2.log",
        "PYTHONHASHSEED=0",
        "npu_rms_norm(Tensor input, Tensor gamma, float epsilon=1e-06)",
        "x(2, 8, 64) weight(64)",
    ):
        assert fact in text, fact
    assert "hf_abcdefghijklmnopqrstuv" not in text and "w4ndb5ecret" not in text


def test_a_replacement_made_by_hand_is_said(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    edit = Edit((FileEdit("m.py", "0" * 64, (Splice(1, 2, "my_own_call(x)"),)),), "sha256:hand")
    approval = Approval(session.tasks[0].id, Decision.APPROVED, "me", "2026", edit.digest, edit=edit)
    changed = replace(session, approvals=(approval,))
    text = Page(candidate_page(changed, session.tasks[0], tmp_path, "en")).text
    assert "my_own_call(x)" in text and "npufuse's own proposal" in text
    assert session.scan is not None
    own = replace(session.scan.candidates[0], edit=edit)
    changed = replace(changed, scan=replace(session.scan, candidates=(own,)))
    assert "is what was approved" in Page(candidate_page(changed, session.tasks[0], tmp_path, "en")).text


@pytest.mark.parametrize("backend", [*Backend, None])
def test_pages_stand_whatever_is_missing(tmp_path: Path, backend: Backend | None) -> None:
    whole = replace(fixtures.session(tmp_path), backend=backend)
    assert whole.scan is not None
    bare = Session("s", "2026", "/r", None, None, None, Stage.VERIFY, tasks=whole.tasks)
    no_candidate = replace(whole, scan=replace(whole.scan, candidates=()))
    early = replace(whole, baseline=None, launch=None, approvals=(), notes={})
    for session in (bare, no_candidate, early, replace(whole, tasks=())):
        for task in session.tasks:
            assert "</html>" in candidate_page(session, task, tmp_path / "nowhere")
        assert "</html>" in index_page(session, {})


# metrics


def test_lines_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    lines = [
        '{"step": 0, "loss": 1.5, "step_time": 2.0, "phase": "warmup"}',
        "",
        "not json",
        "[1]",
        '{"loss": 1}',
        '{"step": 1, "loss": NaN, "step_time": null}',
        '{"step": 2, "loss": "NaN"}',
        '{"step": 3, "loss": true}',
        '{"step": 4, "loss": 1' + "0" * 400 + "}",
        '{"step": 5, "lo',
    ]
    path.write_text("\n".join(lines))
    series = read_series(tmp_path, fixtures.run("candidate", "x", metrics="m.jsonl"))
    assert series.unread == 5 and series.steps == [0, 1, 2, 3]
    assert series.loss[0] == 1.5 and math.isnan(series.loss[1]) and math.isnan(series.loss[2]) and 3 not in series.loss
    assert series.phase == {0: "warmup", 1: "steady", 2: "steady", 3: "steady"}


@pytest.mark.parametrize("name", [None, "gone.jsonl", "../outside.jsonl", "/etc/hostname", "."])
def test_metrics_that_are_not_there(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "outside.jsonl").write_text('{"step": 1, "loss": 1}')
    folder = tmp_path / "session"
    folder.mkdir()
    series = read_series(folder, fixtures.run("candidate", "x", metrics=name))
    assert series.missing and not series.steps


def test_columns_are_equal_long_and_say_what_is_missing() -> None:
    base = Series("b", {0: 2.0, 1: 4.0, 2: math.nan}, {0: 1.0}, {0: "warmup"})
    fused = Series("f", {1: 4.04, 2: math.inf, 7: 1.0}, {1: 0.5}, {})
    table = columns(Comparison(base, fused))
    assert table["step"] == [0, 1, 2, 7] and {len(column) for column in table.values()} == {4}
    assert table["base_loss"] == [2.0, 4.0, "NaN", None] and table["fused_loss"] == [None, 4.04, "Infinity", 1.0]
    assert table["rel_diff"] == [None, pytest.approx(0.01), "Infinity", None]
    json.dumps(table, allow_nan=False)


def test_relative_difference() -> None:
    assert relative_difference(0.0, 0.0) == 0.0
    assert relative_difference(0.0, 1.0) == math.inf
    assert relative_difference(-2.0, -2.1) == pytest.approx(0.05)
    assert relative_difference(None, 1.0) is None


def test_a_long_run_keeps_its_spikes_and_the_page_stays_small(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, steps=60)
    steps = 200_000
    for name in (
        "runs/baseline/baseline-1.jsonl",
        "runs/baseline/baseline-2.jsonl",
        f"runs/{session.tasks[0].id}/candidate.jsonl",
    ):
        with (tmp_path / name).open("w") as out:
            for step in range(steps):
                loss = 99.25 if step == 123_457 and "candidate" in name else 2.5 + (step % 977) * 1.234567e-4
                out.write(f'{{"step": {step}, "loss": {loss}, "step_time": {2.9 + (step % 31) * 0.00123}}}\n')
    compared = comparison(session, session.tasks[0], tmp_path)
    assert compared is not None
    kept = thinned(compared, always=(777, None))
    assert len(kept) < 16_000 and {0, 777, 123_457, steps - 1} <= set(kept)
    text = candidate_page(session, session.tasks[0], tmp_path, "en")
    assert len(text.encode()) < 3_000_000 and f"of {steps} steps are in this page" in text


# files


def test_a_session_is_written_whole(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    told: list[Event] = []
    paths = write_reports(session, tmp_path, "en", listen=told.append)
    assert {one.path for one in told if isinstance(one, ReportWritten)} == {str(one) for one in paths.all}
    assert all(one.stat().st_size for one in paths.all) and len(set(paths.all)) == len(paths.all)
    assert not list(tmp_path.rglob(".*"))
    index = Page(paths.index.read_text())
    for tag, attributes in index.elements:
        target = attributes.get("href") or "#"
        if tag == "a" and not target.startswith("#"):
            assert (paths.index.parent / target).is_file(), target
    for (id, page), (_, path) in zip(paths.validation, paths.metrics, strict=True):
        assert ('id="chart-loss"' in page.read_text()) == (
            f'href="{path.relative_to(paths.folder)}"' in page.read_text()
        )
        document = json.loads(path.read_text())
        assert document["task"]["id"] == id
        assert {"step", "base_loss", "fused_loss", "base_time", "fused_time"} <= set(document["metrics"])
    assert len(json.loads(paths.metrics[0][1].read_text())["metrics"]["step"]) == 60
    assert all(path.stat().st_size < 3_000_000 for _, path in paths.validation)


def test_writing_again_replaces_and_another_folder_is_taken(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    first = write_reports(session, tmp_path, "en")
    before = {path: path.read_bytes() for path in first.all}
    second = write_reports(session, tmp_path, "en")
    assert {path: path.read_bytes() for path in second.all} == before
    other = write_reports(session, tmp_path, "zh", output=tmp_path / "elsewhere" / "deep")
    assert other.index.parent == tmp_path / "elsewhere" / "deep" and other.progress == tmp_path / "progress.md"


def test_hostile_ids_leave_no_folder(tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    for evil in ("../../x", "/etc/passwd", "a\0b", "..", "x" * 500, "中文"):
        name = page_name(replace(session.tasks[0], id=evil))
        assert re.fullmatch(r"[\w-]+\.html", name, re.ASCII) and len(name) < 120
    write_reports(hostile.session(tmp_path), tmp_path, "en", output=tmp_path / "out")


def test_a_session_without_scan_or_tasks(tmp_path: Path) -> None:
    paths = write_reports(Session("s", "2026", "/r", None, None, None, Stage.SCAN), tmp_path)
    assert paths.scan is None and paths.validation == () and paths.index.is_file()


def test_nothing_heavy_is_loaded_before_a_page_is_made() -> None:
    """Startup is everyone's; a page is rare."""
    code = (
        "import sys, npufuse_tui.report.session_report, npufuse_tui.report.table;"
        "print(sorted({'jinja2', 'pygments', 'torch', 'textual', 'libcst', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
