"""The pages in a real Chromium: no error on the console, nothing asked of a network, nothing hostile that runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import report_fixtures as fixtures
import report_hostile as hostile
from report_chromium import Chromium, find

from npufuse_tui.model import Backend
from npufuse_tui.report.session_report import ReportPaths, write_reports

pytestmark = pytest.mark.browser

VISIBLE = "document.body.innerText"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    program = find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    with Chromium(program) as one:
        yield one


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    folder = tmp_path_factory.mktemp("emulated")
    return write_reports(fixtures.session(folder), folder, "en")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    folder = tmp_path_factory.mktemp("measured")
    return write_reports(fixtures.session(folder, Backend.NPU), folder, "zh")


def pages(paths: ReportPaths) -> list[Path]:
    assert paths.identification_html is not None
    return [paths.index, paths.identification_html, *(path for _, path in paths.validation)]


def quiet(browser: Chromium, path: Path) -> None:
    assert browser.errors == []
    assert [one for one in browser.asked if not one.startswith(path.as_uri())] == []


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_every_page_opens_without_a_word_and_fits(
    browser: Chromium, emulated: ReportPaths, measured: ReportPaths, width: int, dark: bool
) -> None:
    for path in pages(emulated) + pages(measured):
        for language in ("en", "zh"):
            browser.open(path, f"?lang={language}", width=width, dark=dark)
            quiet(browser, path)
            assert browser.run("document.documentElement.scrollWidth") <= width, path.name


def test_the_language_is_switched_in_the_page_and_kept(browser: Chromium, emulated: ReportPaths) -> None:
    path = emulated.validation[0][1]
    browser.open(path, "?lang=en")
    assert "Every step" in browser.run(VISIBLE) and "逐步数据" not in browser.run(VISIBLE)
    browser.run("document.querySelector('[data-speak=zh]').click()")
    seen = browser.run(VISIBLE)
    assert "逐步数据" in seen and "Every step" not in seen and "采纳" in seen
    assert browser.run("document.documentElement.lang") == "zh-CN"
    assert browser.run("document.querySelector('#chart-loss svg').getAttribute('aria-label')").startswith("逐步")
    browser.open(emulated.index)
    assert "哪些采纳" in browser.run(VISIBLE)
    browser.run("document.querySelector('[data-speak=en]').click()")
    quiet(browser, emulated.index)


def test_curves_have_their_points_marks_and_band(browser: Chromium, emulated: ReportPaths) -> None:
    path = emulated.validation[1][1]
    browser.open(path, "?lang=en")
    points = "document.querySelector('#chart-loss path.{0}').getAttribute('d').match(/[ML]/g).length"
    assert browser.run(points.format("base")) == 60 and browser.run(points.format("fused")) == 60
    assert browser.run("document.querySelectorAll('#chart-loss .band').length") == 1
    assert browser.run("document.querySelector('#chart-loss .failmark + text').textContent") == "first failing step 12"
    linear = browser.run("document.querySelector('#chart-loss path.base').getAttribute('d')")
    browser.run("document.querySelector('[data-scale-of=chart-loss][data-scale=log]').click()")
    assert browser.run("document.querySelector('#chart-loss path.base').getAttribute('d')") != linear
    quiet(browser, path)


def test_hover_and_keyboard_say_the_step(browser: Chromium, emulated: ReportPaths) -> None:
    path = emulated.validation[1][1]
    browser.open(path, "?lang=en")
    browser.run("document.querySelector('#chart-loss').scrollIntoView({block: 'center'})")
    box = browser.run(
        "(({left, top, width, height}) => [left, top, width, height])"
        "(document.querySelector('#chart-loss').getBoundingClientRect())"
    )
    browser.point(box[0] + box[2] / 2, box[1] + box[3] / 2)
    browser.settle()
    tip = browser.run("document.querySelector('#chart-loss .tip').innerText")
    assert (
        "baseline" in tip
        and "candidate" in tip
        and not browser.run("document.querySelector('#chart-loss .tip').hidden")
    )
    browser.point(2, 2)
    browser.run("document.querySelector('#chart-loss svg').focus()")
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight"):
        browser.press(key)
    said = browser.run("document.querySelector('#chart-loss svg').getAttribute('aria-valuetext')")
    assert said.startswith("step 3") and "difference" in said
    browser.press("End")
    assert browser.run("document.querySelector('#chart-loss svg').getAttribute('aria-valuenow')") == "59"
    quiet(browser, path)


def test_steps_are_searched_sorted_and_filtered(browser: Chromium, emulated: ReportPaths) -> None:
    path = emulated.validation[1][1]
    browser.open(path, "?lang=en")

    def rows(search: str) -> list[str]:
        browser.run(
            f"(() => {{ const box = document.getElementById('steps-search'); box.value = {search!r};"
            "box.dispatchEvent(new Event('input')); })()"
        )
        found: list[str] = browser.run(
            "[...document.querySelectorAll('#steps-body tr')].map((row) => row.cells[0].textContent)"
        )
        return found

    assert len(rows("")) == 60 and rows("12") == ["12"] and rows("10-13") == ["10", "11", "12", "13"]
    over = rows(">1%")
    assert 0 < len(over) < 60 and len(rows("<1%")) == 60 - len(over)
    assert rows("warm-up") == ["0", "1", "2", "3", "4"]
    rows("")
    browser.run("document.getElementById('steps-beyond').click()")
    assert rows("") == over
    assert browser.run("document.querySelectorAll('#steps-body tr.first').length") == 1
    browser.run("document.getElementById('steps-beyond').click()")
    browser.run("document.querySelector('[data-sort=fused_loss]').click()")
    losses = browser.run(
        "[...document.querySelectorAll('#steps-body tr')].map((row) => Number(row.cells[3].textContent))"
    )
    assert losses == sorted(losses)
    assert (
        browser.run("document.querySelector('[data-sort=fused_loss]').closest('th').getAttribute('aria-sort')")
        == "ascending"
    )
    quiet(browser, path)


def test_the_speed_is_veiled_when_emulated_and_open_when_measured(
    browser: Chromium, emulated: ReportPaths, measured: ReportPaths
) -> None:
    browser.open(emulated.validation[0][1], "?lang=en")
    assert browser.run("document.querySelector('#speed .over').innerText").startswith("not measured: emulated")
    assert browser.run("document.querySelector('#chart-time svg').hasAttribute('tabindex')") is False
    browser.open(measured.validation[0][1], "?lang=en")
    assert browser.run("document.querySelector('#speed .over')") is None
    assert "faster" in browser.run("document.querySelector('#speed').innerText")
    assert browser.run("document.querySelectorAll('[data-interval] circle').length") == 1


def test_a_collapse_is_drawn(browser: Chromium, tmp_path: Path) -> None:
    session = fixtures.session(tmp_path)
    task = session.tasks[1]
    fixtures.write_metrics(tmp_path / f"runs/{task.id}/candidate.jsonl", 30, seed=3, nan_at=25)
    paths = write_reports(session, tmp_path, "en")
    path = dict(paths.validation)[task.id]
    browser.open(path, "?lang=en")
    assert browser.run("document.querySelectorAll('#chart-loss path.fused:not(.line)').length") == 5
    assert "NaN" in browser.run("document.getElementById('steps-body').innerText")
    quiet(browser, path)


def test_nothing_hostile_runs(browser: Chromium, tmp_path: Path) -> None:
    session = hostile.session(tmp_path)
    paths = write_reports(session, tmp_path, "en")
    for path in pages(paths):
        for language in ("en", "zh"):
            browser.open(path, f"?lang={language}")
            quiet(browser, path)
            assert browser.run("window.owned") is None
            assert browser.run("document.querySelectorAll('img, iframe, [onerror], [onmouseover]').length") == 0
    browser.open(dict(paths.validation)[session.tasks[0].id], "?lang=en")
    assert "</script><script>window.owned=1</script>" in browser.run(VISIBLE)


def test_the_policy_is_in_force(browser: Chromium, emulated: ReportPaths, tmp_path: Path) -> None:
    """The same page with one script more: the browser refuses that one and runs the others."""
    text = emulated.validation[0][1].read_text().replace("</main>", "<script>window.owned = 1</script></main>")
    path = tmp_path / "planted.html"
    path.write_text(text)
    browser.open(path)
    assert browser.run("window.owned") is None and browser.run("typeof window.npufuse") == "object"
    assert any("Content Security Policy" in one or "content-security-policy" in one.lower() for one in browser.errors)


def test_the_filter_of_the_identification_page(browser: Chromium, emulated: ReportPaths) -> None:
    assert emulated.identification_html is not None
    browser.open(emulated.identification_html, "?lang=en")
    shown = "[...document.querySelectorAll('[data-words]')].filter((one) => !one.hidden).length"
    assert browser.run(shown) == 3
    browser.run(
        "(() => { const one = document.querySelector('[data-filter]'); one.value = 'MLP swiglu';"
        "one.dispatchEvent(new Event('input')); })()"
    )
    assert browser.run(shown) == 1 and browser.run("document.querySelector('[data-count]').textContent") == "1 / 3"


def test_labels_and_headings(browser: Chromium, emulated: ReportPaths, measured: ReportPaths) -> None:
    """What a screen reader needs: a name for each control, one h1, ids that are unique, links that lead somewhere."""
    for path in pages(emulated) + pages(measured):
        browser.open(path, "?lang=en")
        assert browser.run("document.querySelectorAll('h1').length") == 1
        nameless = browser.run(
            "[...document.querySelectorAll('button, input, select, [role=region], [role=slider], [role=img]')]"
            ".filter((one) => !one.closest('[aria-hidden=true]') && !(one.innerText || one.getAttribute('aria-label')"
            " || (one.labels && one.labels.length))).map((one) => one.outerHTML.slice(0, 80))"
        )
        assert nameless == []
        twice = browser.run(
            "(() => { const all = [...document.querySelectorAll('[id]')].map((one) => one.id);"
            "return all.filter((one, place) => all.indexOf(one) !== place); })()"
        )
        assert twice == []
        nowhere = browser.run(
            "[...document.querySelectorAll('a[href^=\"#\"]')].map((one) => one.hash.slice(1))"
            ".filter((one) => !document.getElementById(decodeURIComponent(one)))"
        )
        assert nowhere == []


def test_colours_can_be_read(browser: Chromium, emulated: ReportPaths) -> None:
    """Contrast of text against its ground, WCAG AA: 4.5 to 1, in both schemes."""
    script = """(() => {
      const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      const rgb = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
      };
      const linear = (part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
      const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
      const ground = (one) => {
        for (let at = one; at; at = at.parentElement) {
          const colour = rgb(getComputedStyle(at).backgroundColor);
          if (colour[3] > 250) return colour;
        }
        return [255, 255, 255, 255];
      };
      const bad = new Set();
      for (const one of document.querySelectorAll('p, td, th, code span, .badge, .word, a, button, h1, h2, li, mark')) {
        if (!one.offsetParent || one.closest('[aria-hidden=true]') || !one.textContent.trim()) continue;
        const [text, under] = [rgb(getComputedStyle(one).color), ground(one)].map(light);
        const ratio = (Math.max(text, under) + 0.05) / (Math.min(text, under) + 0.05);
        if (ratio < 4.5) bad.add(`${one.tagName}.${one.className} ${ratio.toFixed(2)}`);
      }
      return [...bad];
    })()"""
    for dark in (False, True):
        for path in pages(emulated):
            browser.open(path, "?lang=en", dark=dark)
            assert browser.run(script) == [], (path.name, dark)
            browser.run(
                "document.querySelector('h1').style.color = getComputedStyle(document.documentElement).backgroundColor"
            )
            assert any(one.startswith("H1") for one in browser.run(script))  # it does notice


def test_it_prints(browser: Chromium, measured: ReportPaths, tmp_path: Path) -> None:
    browser.open(measured.validation[0][1], "?lang=en", dark=True)
    out = tmp_path / "page.pdf"
    browser.print(out)
    data = out.read_bytes()
    assert (
        data.startswith(b"%PDF")
        and 2 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") + data.count(b"/Type /Page/") <= 15
    )
    quiet(browser, measured.validation[0][1])


def test_without_scripts_the_conclusion_is_read(browser: Chromium, emulated: ReportPaths) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.load(emulated.validation[0][1].as_uri())
        root = browser.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
        word = browser.call("DOM.querySelector", nodeId=root, selector=".word")["nodeId"]
        assert "adopt" in browser.call("DOM.getOuterHTML", nodeId=word)["outerHTML"]
        note = browser.call("DOM.querySelector", nodeId=root, selector="noscript p")["nodeId"]
        assert note
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_huge_run_is_drawn(browser: Chromium, tmp_path: Path) -> None:
    session = fixtures.session(tmp_path, steps=30_000)
    session = replace(session, tasks=session.tasks[:1])
    paths = write_reports(session, tmp_path, "en")
    path = paths.validation[0][1]
    assert path.stat().st_size < 3_000_000
    browser.open(path, "?lang=en")
    assert browser.run("document.querySelectorAll('#steps-body tr').length") == 200
    browser.run("document.getElementById('steps-more').click()")
    assert browser.run("document.querySelectorAll('#steps-body tr').length") == 1200
    quiet(browser, path)
