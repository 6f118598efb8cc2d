"""Whole projects in a temporary folder, run through Dagster, for integration tests."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sa
import yaml

from ragds_pipeline import runs
from ragds_pipeline.config import Settings, load_settings
from ragds_pipeline.storage.schemas import to_records
from ragds_pipeline.storage.tables import TableFile

REPOSITORY = Path(__file__).resolve().parents[1]


class ProjectRun:
    """One project with its own Dagster instance."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root = root
        self.config = root / "ragds.yaml"
        self.instance = instance
        self.settings: Settings = load_settings(self.config)
        self.version = ""

    def run(self, job: str = "revision_job", **options: Any) -> runs.RunOutcome:
        """Register the KB's present state and run a job for it."""
        self.settings = load_settings(self.config)
        self.version = runs.register_current(self.settings, self.instance)
        return runs.execute(self.config, job, self.version, self.instance, **options)

    def must(self, job: str = "revision_job", **options: Any) -> runs.RunOutcome:
        """Run a job that has to succeed."""
        outcome = self.run(job, **options)
        assert outcome.success and not outcome.failed_checks, (outcome.errors, outcome.failed_checks)
        return outcome

    def rows(self, asset: str, record: type[Any]) -> list[Any]:
        """Return the records of an asset's table."""
        return to_records(record, self.table(asset).read())

    def table(self, asset: str) -> TableFile:
        """Return an asset's table of the current revision."""
        return TableFile(self.settings.data_dir / "tables" / asset / f"{self.version}.parquet")

    @property
    def review(self) -> Path:
        """Folder of the review sheets."""
        return self.settings.data_dir / "review" / self.version

    def answer(self, **answers: str) -> Path:
        """Fill the sheet: every row ``y``, those in ``answers`` (by id) as said; return the filled sheet."""
        rows = list(csv.reader((self.review / "review.csv").read_text(encoding="utf-8-sig").splitlines(True)))
        keep = rows[0].index("keep")
        for row in rows[1:]:
            row[keep] = answers.get(row[0], "y")
        target = self.review / "inbox" / "returned.csv"
        with target.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(rows)
        return target

    def snapshots(self) -> list[Path]:
        """Return the frozen snapshots of the current revision."""
        return sorted((self.settings.data_dir / "golden" / self.version).glob("snapshot-[0-9]*"))

    def golden(self) -> list[dict[str, Any]]:
        """Return the items of the last snapshot as JSON."""
        lines = (self.snapshots()[-1] / "golden_set.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@contextmanager
def ephemeral_instance() -> Iterator[dg.DagsterInstance]:
    """Make a Dagster instance in memory that keeps its connections: a run asks it thousands of times."""
    with dg.DagsterInstance.ephemeral() as instance:
        engines = [_keep_open(instance.event_log_storage, "_connect"), _keep_open(instance.run_storage, "connect")]
        yield instance
        for engine in engines:
            engine.dispose()


def _keep_open(store: Any, name: str) -> sa.Engine:
    engine = sa.create_engine(
        store._engine.url, poolclass=sa.QueuePool, pool_size=1, connect_args={"check_same_thread": False}
    )
    lock = threading.RLock()

    @contextmanager
    def connect() -> Iterator[sa.Connection]:
        with lock, engine.begin() as connection:
            yield connection

    setattr(store, name, connect)
    return engine


@contextmanager
def project(root: Path, kb: Path, **settings: Any) -> Iterator[ProjectRun]:
    """Make a project over the documents in ``kb`` and give its instance up at the end."""
    root.mkdir(parents=True, exist_ok=True)
    given = {"kb": {"path": str(kb)}, "review": {"reviewer": "test"}, **settings}
    (root / "ragds.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    with ephemeral_instance() as instance:
        yield ProjectRun(root, instance)
