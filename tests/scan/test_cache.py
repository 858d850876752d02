"""A second scan looks only at what changed, and never serves what is stale."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest
from scanned import IMPORTS, MLP, NORM, write

from npufuse_tui.model import ScanResult
from npufuse_tui.scan import cache
from npufuse_tui.scan.scanner import ScanOptions, scan

HELPER = IMPORTS + "\ndef rms_norm(x, eps):\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)\n"
USER = IMPORTS + "from .helper import rms_norm\n\ndef scaled(x, weight, eps):\n    return rms_norm(x, eps) * weight\n"


def look(root: Path, **options: object) -> ScanResult:
    return scan(root, ScanOptions(**{"jobs": 1, **options}))  # type: ignore[arg-type]


def database(folder: Path) -> Path:
    (path,) = folder.glob("*.sqlite3")
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return write(tmp_path / "repo", a=IMPORTS + NORM, b=IMPORTS + MLP, c="x = 1\n", pkg__helper=HELPER, pkg__user=USER)


def test_the_second_scan_answers_the_same_out_of_the_cache(repo: Path) -> None:
    first, second = look(repo), look(repo)
    assert first.candidates and second.candidates == first.candidates
    assert (first.cached, second.cached) == (0, 5)
    assert (second.parsed, second.bytes, second.rules) == (0, first.bytes, first.rules)


def test_without_the_cache_nothing_is_read_or_written(repo: Path, cache_folder: Path) -> None:
    look(repo, use_cache=False)
    assert not cache_folder.exists()
    look(repo)
    assert look(repo, use_cache=False).cached == 0


def test_only_the_file_that_changed_is_looked_at(repo: Path) -> None:
    look(repo)
    write(repo, a=IMPORTS + "\n# moved\n" + NORM)
    again = look(repo)
    assert again.cached == 4
    assert again.candidates == look(repo, use_cache=False).candidates


def test_a_helper_that_changed_makes_its_users_stale(repo: Path) -> None:
    assert ("pkg/user.py", "scaled") in {(one.file, one.qualname) for one in look(repo).candidates}
    write(repo, pkg__helper=HELPER.replace("pow(2)", "pow(3)"))
    again = look(repo)
    assert again.cached == 3
    assert "pkg/user.py" not in {one.file for one in again.candidates}


def test_a_helper_that_appears_or_goes_makes_its_users_stale(repo: Path) -> None:
    (repo / "pkg" / "helper.py").unlink()
    assert "pkg/user.py" not in {one.file for one in look(repo).candidates}
    write(repo, pkg__helper=HELPER)
    assert "pkg/user.py" in {one.file for one in look(repo).candidates}
    (repo / "pkg" / "helper.py").unlink()
    assert "pkg/user.py" not in {one.file for one in look(repo).candidates}


def test_a_base_class_of_a_base_class_counts(tmp_path: Path) -> None:
    head, tail = NORM.split("    def forward")
    write(
        tmp_path,
        base=IMPORTS + "class Root(nn.Module):\n    def squared(self, x):\n        return x.pow(2)\n",
        middle="from .base import Root\n\nclass Middle(Root):\n    pass\n",
        model=IMPORTS
        + "from .middle import Middle\n"
        + head.replace("nn.Module", "Middle")
        + "    def forward"
        + tail.replace("x.pow(2)", "self.squared(x)"),
    )
    assert "model.py" in {one.file for one in look(tmp_path).candidates}
    write(tmp_path, base=IMPORTS + "class Root(nn.Module):\n    def squared(self, x):\n        return x.pow(4)\n")
    again = look(tmp_path)
    assert "model.py" not in {one.file for one in again.candidates}
    assert again.candidates == look(tmp_path, use_cache=False).candidates


def test_a_configuration_that_changed_counts(tmp_path: Path) -> None:
    mlp = (
        IMPORTS + "from transformers.activations import ACT2FN\n\n"
        "class Mlp(nn.Module):\n    def __init__(self, config):\n        super().__init__()\n"
        "        self.act_fn = ACT2FN[config.hidden_act]\n"
        "        self.gate, self.up = nn.Linear(8, 8), nn.Linear(8, 8)\n\n"
        "    def forward(self, x):\n        return self.act_fn(self.gate(x)) * self.up(x)\n"
    )
    write(tmp_path, pkg__model=mlp, pkg__configuration='class Config:\n    hidden_act: str = "silu"\n')
    assert [one.rule for one in look(tmp_path).candidates] == ["swiglu"]
    write(tmp_path, pkg__configuration='class Config:\n    hidden_act: str = "gelu"\n')
    assert [one.rule for one in look(tmp_path).candidates] == ["geglu"]


def test_what_the_repo_says_around_its_files_counts(repo: Path) -> None:
    (repo / "run.sh").write_text("python train.py\n")
    look(repo)
    assert look(repo).cached == 5
    (repo / "run.sh").write_text("python train.py --compile\n")
    assert look(repo).cached == 0


def test_rules_and_target_have_results_of_their_own(repo: Path) -> None:
    look(repo)
    assert look(repo, rules=("swiglu",)).cached == 0
    assert {one.rule for one in look(repo, rules=("swiglu",)).candidates} == {"swiglu"}
    assert look(repo, target="inference").cached == 0
    assert look(repo).cached == 5


def test_an_engine_that_was_edited_serves_nothing_old(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look(repo)
    monkeypatch.setattr(cache, "_engine_digest", lambda: "another")
    assert look(repo).cached == 0


def test_an_extra_rule_that_was_edited_serves_nothing_old(tmp_path: Path) -> None:
    rule = tmp_path / "rule.py"
    rule.write_text("x = 1\n")
    before = cache.context(tmp_path / "repo", ("a",), (str(rule),), "both")
    assert cache.context(tmp_path / "repo", ("a",), (str(rule),), "both") == before
    rule.write_text("x = 2\n")
    assert cache.context(tmp_path / "repo", ("a",), (str(rule),), "both") != before


@pytest.mark.parametrize("damage", [b"", b"no database at all", b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_cache_is_thrown_away(repo: Path, cache_folder: Path, damage: bytes) -> None:
    first = look(repo)
    path = database(cache_folder)
    for name in (f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    path.write_bytes(damage)
    assert look(repo).candidates == first.candidates
    assert look(repo).cached == 5


def test_a_torn_file_is_no_answer(repo: Path, cache_folder: Path) -> None:
    first = look(repo)
    path = database(cache_folder)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert look(repo).candidates == first.candidates
    assert look(repo).candidates == first.candidates


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE kept SET payload = replace(CAST(payload AS TEXT), 'recommended', 'perfect')",
        "UPDATE kept SET payload = CAST('{}' AS BLOB)",
        "UPDATE kept SET payload = CAST('nonsense' AS BLOB), checksum = '0'",
        "UPDATE kept SET checksum = ''",
    ],
)
def test_rows_that_are_not_what_was_written_are_not_served(repo: Path, cache_folder: Path, change: str) -> None:
    first = look(repo)
    with sqlite3.connect(database(cache_folder)) as connection:
        connection.execute(change)
    again = look(repo)
    assert again.candidates == first.candidates
    assert again.cached == 0


def test_a_folder_that_cannot_be_written_costs_nothing(repo: Path, cache_folder: Path) -> None:
    cache_folder.parent.mkdir(parents=True, exist_ok=True)
    cache_folder.write_text("a file where the folder would be")
    result = look(repo)
    assert result.candidates and result.cached == 0
    assert cache_folder.read_text() == "a file where the folder would be"


def test_skipped_files_are_looked_at_again(repo: Path) -> None:
    write(repo, bad="def (:\nF.silu(x) * act_fn(\n")
    assert [one.file for one in look(repo).skipped] == ["bad.py"]
    again = look(repo)
    assert [one.file for one in again.skipped] == ["bad.py"] and again.cached == 5


def test_the_database_stays_small_and_the_oldest_go_first(
    repo: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(repo, rules=("rms_norm",))
    with sqlite3.connect(database(cache_folder)) as connection:
        connection.execute("UPDATE kept SET used = 1")
    monkeypatch.setattr(cache, "LARGEST_CACHE", 60_000)
    filler = "# " + "x" * 70 + "\n"
    for number in range(12):
        write(repo, a=IMPORTS + filler * number + NORM)
        look(repo)
    with sqlite3.connect(database(cache_folder)) as connection:
        assert connection.execute("SELECT count(*) FROM kept WHERE used = 1").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM kept").fetchone()[0] > 0
        assert cache._size(connection) <= 60_000


def _scan_in_a_child(root: str, folder: str, answers: multiprocessing.Queue[int]) -> None:
    cache.folder = lambda: Path(folder)  # type: ignore[assignment]
    answers.put(len(look(Path(root)).candidates))


def test_scans_at_the_same_time_do_not_harm_each_other(repo: Path, cache_folder: Path) -> None:
    expected = len(look(repo, use_cache=False).candidates)
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[int] = context.Queue()
    children = [
        context.Process(target=_scan_in_a_child, args=(str(repo), str(cache_folder), answers)) for _ in range(3)
    ]
    for child in children:
        child.start()
    assert [answers.get(timeout=120) for _ in children] == [expected] * 3
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert look(repo).cached == 5
