"""Runs that are disturbed: two at once on one revision, and ``kill -9`` in the middle. Nothing is corrupt or lost."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest
import yaml

from ragds_pipeline import runs
from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline.config import load_settings
from ragds_pipeline.golden.snapshot import verify
from ragds_pipeline.review.decision_log import DecisionLog
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.integration.running import start
from ragds_pipeline_tests.loopback import LoopbackServer

MAY_DIFFER = ("cost_estimate", "costs", "item_costs", "review_decisions", "golden_ids")
"""Tables of what was paid and what is left to pay, of when a sheet was imported, and of the ids new in the last run."""


class Disturbed:
    """A project that real processes work on, with its own Dagster instance on disk."""

    def __init__(self, root: Path, kb: Path, url: str) -> None:
        self.root, self.config = root, root / "ragds.yaml"
        root.mkdir()
        settings = {
            "kb": {"path": str(kb)},
            "plan": {"questions": 12, "top_up_rounds": 1},
            "review": {"reviewer": "test"},
            "claude": {"base_url": url, "concurrency": 2, "check_models": False, "budget_usd": 500},
        }
        self.config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        self.data = root / "data"
        self.tables_of_run: dict[str, object] = {}
        """The tables as they were after the first job."""

    def must(self, job: str) -> None:
        process = start(self.config, job)
        process.join(240)
        assert process.exitcode == 0

    def kill(self, job: str, when: Callable[[], bool]) -> None:
        """Start a job and kill it as soon as something is so."""
        process = start(self.config, job)
        end = time.monotonic() + 240
        while not when() and process.is_alive():
            assert time.monotonic() < end
            time.sleep(0.002)
        assert process.is_alive(), "it ended before it could be killed"
        process.kill()
        process.join()

    def fill_sheet(self) -> None:
        """Answer every row of the review sheet with yes."""
        (folder,) = (self.data / "review").glob("rev-*")
        rows = list(csv.reader((folder / "review.csv").read_text(encoding="utf-8-sig").splitlines(True)))
        for row in rows[1:]:
            row[rows[0].index("keep")] = "y"
        with (folder / "inbox" / "returned.csv").open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(rows)

    def tables(self) -> dict[str, object]:
        """Return the content of all tables: bytes, and rows where a column says what was paid, and in which run."""
        found: dict[str, object] = {}
        for path in sorted((self.data / "tables").rglob("*")):
            name = str(path.relative_to(self.data / "tables"))
            if path.is_dir() or name.split("/")[0] in MAY_DIFFER:
                continue
            if "_requests" in name:
                found[name] = pq.read_table(path).drop_columns(["replayed", "cost_usd"]).to_pylist()
            else:
                found[name] = path.read_bytes()
        return found

    def replies(self) -> int:
        """Return how many replies were paid for."""
        ledger = Ledger(f"sqlite:///{self.data / 'ledger.sqlite'}")
        count = len(list(ledger.rows()))
        ledger.close()
        return count

    def snapshot(self) -> dict[str, bytes]:
        (path,) = (self.data / "golden").glob("*/snapshot-*")
        verify(path)
        return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}

    def decisions(self) -> set[str]:
        return set(DecisionLog(self.data / "review" / "decisions").latest())

    def runs(self) -> list[dg.DagsterRun]:
        """Return all runs, newest first."""
        with runs.dagster_instance(load_settings(self.config)) as instance:
            return list(instance.get_runs())


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(responder=answer_questions) as running:
        running.latency = 0.05
        yield running


@pytest.fixture(autouse=True)
def own_dagster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAGDS_DAGSTER_STORAGE", "DAGSTER_HOME"):
        monkeypatch.setenv(name, "")  # so that what a project sets is taken back


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    for name in ("alpha", "beta", "gamma"):
        lines = "".join(f"In {name} rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(40))
        (folder / f"{name}.md").write_text(f"# {name}\n\n{lines}", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, kb: Path, server: LoopbackServer) -> Disturbed:
    made = Disturbed(tmp_path_factory.mktemp("undisturbed") / "p", kb, server.url)
    made.must("revision_job")
    made.tables_of_run = made.tables()
    made.fill_sheet()
    made.must("freeze_job")
    return made


def test_two_runs_at_once_on_one_revision(
    tmp_path: Path, kb: Path, server: LoopbackServer, undisturbed: Disturbed
) -> None:
    both = Disturbed(tmp_path / "p", kb, server.url)
    before = server.calls
    processes = [start(both.config, "revision_job") for _ in range(2)]
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0, 0]
    assert both.tables() == undisturbed.tables_of_run
    calls = server.calls - before
    assert calls == both.replies() > 0, "nothing was asked twice"
    both.fill_sheet()
    processes = [start(both.config, "freeze_job") for _ in range(2)]
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0, 0]
    assert both.snapshot() == undisturbed.snapshot() and both.decisions() == undisturbed.decisions() != set()
    assert both.tables() == undisturbed.tables()
    assert {run.status for run in both.runs()} == {dg.DagsterRunStatus.SUCCESS}


def test_a_run_that_was_killed_is_done_again_as_if_nothing_had_been(
    tmp_path: Path, kb: Path, server: LoopbackServer, undisturbed: Disturbed
) -> None:
    killed = Disturbed(tmp_path / "p", kb, server.url)
    tables = killed.data / "tables"
    base = server.calls
    points: list[Callable[[], bool]] = [
        lambda: server.calls > base,
        lambda: any((tables / "first_candidates").glob("*.parquet")),
    ]
    for point in points:
        killed.kill("revision_job", point)
    killed.must("revision_job")
    assert killed.tables() == undisturbed.tables_of_run
    states = [run.status for run in killed.runs()]
    assert states == [dg.DagsterRunStatus.SUCCESS, *[dg.DagsterRunStatus.FAILURE] * 2], "none is in progress for ever"
    killed.fill_sheet()
    decisions, golden = killed.data / "review" / "decisions", killed.data / "golden"
    for point in (
        lambda: any(decisions.glob("*.jsonl")),
        lambda: any(golden.glob("*/.staged-*")) or any(golden.glob("*/snapshot-*")),
    ):
        killed.kill("freeze_job", point)
    assert killed.decisions() == undisturbed.decisions(), "what people decided is never lost"
    killed.must("freeze_job")
    assert killed.snapshot() == undisturbed.snapshot()
    assert killed.tables() == undisturbed.tables()
    assert not [*tables.rglob("*.part"), *golden.glob("*/.staged-*")], "what the killed ones had begun is cleared away"
