"""All the reports of a session, written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from npufuse_tui.durable import write_durably
from npufuse_tui.events import Listener, ReportWritten, ignore
from npufuse_tui.language import Text, current_language
from npufuse_tui.model import Session
from npufuse_tui.report import api_lines, validation
from npufuse_tui.report.conclusion import conclusion_markdown
from npufuse_tui.report.contract_json import as_json, scan_document, verify_document
from npufuse_tui.report.identification import identification_markdown
from npufuse_tui.report.identification_page import identification_page
from npufuse_tui.report.metrics import comparison, metrics_document
from npufuse_tui.report.progress import progress_markdown
from npufuse_tui.report.pull_request import pull_request_text
from npufuse_tui.report.sarif import sarif_document


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where everything was written. What a session does not have yet (a scan, tasks) is None or empty."""

    folder: Path
    index: Path
    progress: Path
    conclusion: Path
    pull_request: Path
    verification: Path
    identification_markdown: Path | None = None
    identification_html: Path | None = None
    scan: Path | None = None
    sarif: Path | None = None
    validation: tuple[tuple[str, Path], ...] = ()
    metrics: tuple[tuple[str, Path], ...] = ()

    @property
    def all(self) -> tuple[Path, ...]:
        named = (self.index, self.progress, self.conclusion, self.pull_request, self.verification)
        found = (self.identification_markdown, self.identification_html, self.scan, self.sarif)
        pages = tuple(path for _, path in self.validation + self.metrics)
        return named + tuple(path for path in found if path is not None) + pages


def write_reports(
    session: Session,
    folder: Path,
    language: str | None = None,
    output: Path | None = None,
    listen: Listener = ignore,
    torch_npu: str | None = None,
) -> ReportPaths:
    """Write every report and say where.

    `folder`: the session's own, where its metrics are and `progress.md` goes. `output`: where the rest goes, by default
    `reports/` in it. `torch_npu`: the version, wheel or folder that the facts about operators are of. Each file is
    replaced as a whole. Raises OSError when a folder cannot be written.
    """
    said = language or current_language()
    place = output or folder / "reports"

    def put(path: Path, text: str) -> Path:
        write_whole(path, text)
        listen(ReportWritten(str(path)))
        return path

    identification = page = scan = sarif = None
    others = [
        (Text("Conclusion", "结论"), "conclusion.md"),
        (Text("Text for a pull request", "合并请求文本"), "pull_request.md"),
        (Text("Results for scripts", "供脚本使用的结果"), "verification.json"),
    ]
    if session.scan:
        facts = api_lines.facts_of(session.scan.candidates, torch_npu)
        identification = put(place / "identification.md", identification_markdown(session.scan, said, facts))
        page = put(place / "identification.html", identification_page(session.scan, said, facts, index="index.html"))
        scan = put(place / "scan.json", as_json(scan_document(session.scan, said)))
        sarif = put(place / "scan.sarif", as_json(sarif_document(session.scan, said)))
        others = [
            (Text("Identification report", "识别报告"), "identification.html"),
            (Text("The same as Markdown", "Markdown 版本"), "identification.md"),
            (Text("The scan for scripts", "供脚本使用的扫描结果"), "scan.json"),
            (Text("The scan for code-scanning viewers", "供代码扫描工具使用"), "scan.sarif"),
            *others,
        ]
    pages: list[tuple[str, Path]] = []
    metrics: list[tuple[str, Path]] = []
    for task in session.tasks:
        name = validation.page_name(task)
        data = f"metrics/{Path(name).stem}.json"
        compared = comparison(session, task, folder)
        page_text = validation.candidate_page(session, task, folder, said, metrics=data)
        pages.append((task.id, put(place / name, page_text)))
        metrics.append((task.id, put(place / data, as_json(metrics_document(session, task, compared, said)))))
    return ReportPaths(
        folder=place,
        index=put(
            place / "index.html",
            validation.index_page(session, {task: path.name for task, path in pages}, said, others),
        ),
        progress=put(folder / "progress.md", progress_markdown(session, said)),
        conclusion=put(place / "conclusion.md", conclusion_markdown(session, said)),
        pull_request=put(place / "pull_request.md", pull_request_text(session, said)),
        verification=put(place / "verification.json", as_json(verify_document(session, said))),
        identification_markdown=identification,
        identification_html=page,
        scan=scan,
        sarif=sarif,
        validation=tuple(pages),
        metrics=tuple(metrics),
    )


def write_whole(path: Path, text: str) -> None:
    """Replace a file as a whole: whoever reads it finds the old text or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, text.encode("utf-8"))
    path.chmod(0o644)  # a report is made to be passed on; secrets are taken out of it
