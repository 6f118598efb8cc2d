"""Dagster's state in SQLite, kept open: the same files as Dagster's own, whoever writes them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage

from ragds_pipeline.dagster_state import Engines, KeptOpenSqliteStorage
from ragds_pipeline_tests.projects import REPOSITORY

KEPT = {"custom": {"module": "ragds_pipeline.dagster_state", "class": "KeptOpenSqliteStorage"}}


@dg.asset(partitions_def=dg.DynamicPartitionsDefinition(name="versions"))
def text() -> str:
    """An asset."""
    return "text"


def instance(folder: Path, kept: bool) -> dg.DagsterInstance:
    """Open the state in ``folder``, as a process that starts now does."""
    home = folder / ("kept" if kept else "own")
    home.mkdir(parents=True, exist_ok=True)
    config = {"base_dir": str(folder / "state")}
    storage = {"custom": {**KEPT["custom"], "config": config}} if kept else {"sqlite": config}
    (home / "dagster.yaml").write_text(yaml.safe_dump({"storage": storage, "telemetry": {"enabled": False}}))
    return dg.DagsterInstance.from_config(str(home))


def materialize(folder: Path, kept: bool, version: str) -> str:
    """Run the asset for one partition and return the run's id."""
    with instance(folder, kept) as state:
        state.add_dynamic_partitions("versions", [version])
        return dg.materialize([text], partition_key=version, instance=state).run_id


def test_what_one_storage_writes_the_other_reads(tmp_path: Path) -> None:
    by_dagster = materialize(tmp_path, kept=False, version="a")
    by_us = materialize(tmp_path, kept=True, version="b")
    for kept in (True, False):
        with instance(tmp_path, kept) as state:
            assert state.get_dynamic_partitions("versions") == ["a", "b"]
            assert state.get_materialized_partitions(text.key) == {"a", "b"}
            assert {run.run_id for run in state.get_runs()} == {by_dagster, by_us}
            counts = [len(state.all_logs(run)) for run in (by_dagster, by_us)]
            assert counts[0] == counts[1] > 5


def _materialize_some(folder: Path, name: str) -> None:
    for number in range(3):
        materialize(folder, kept=True, version=f"{name}{number}")


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    materialize(tmp_path, kept=True, version="first")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_materialize_some, args=(tmp_path, name)) for name in ("x", "y")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    with instance(tmp_path, kept=False) as state:
        expected = {"first", *(f"{name}{number}" for name in ("x", "y") for number in range(3))}
        assert state.get_materialized_partitions(text.key) == expected


def test_only_some_databases_are_kept_open(tmp_path: Path) -> None:
    engines = Engines(kept=2)
    first = engines.engine(f"sqlite:///{tmp_path}/1.db")
    with first.connect():
        pass
    assert engines.engine(f"sqlite:///{tmp_path}/1.db") is first
    engines.engine(f"sqlite:///{tmp_path}/2.db")
    engines.engine(f"sqlite:///{tmp_path}/3.db")
    assert first.pool.status().startswith("Pool size: 5  Connections in pool: 0")
    assert engines.engine(f"sqlite:///{tmp_path}/1.db") is not first
    engines.dispose()


def test_wiping_and_writing_again(tmp_path: Path) -> None:
    materialize(tmp_path, kept=True, version="a")
    with instance(tmp_path, kept=True) as state:
        state.wipe()
        assert state.get_materialized_partitions(text.key) == set()
        state.add_dynamic_partitions("versions", ["a"])
        dg.materialize([text], partition_key="a", instance=state)
        assert state.get_materialized_partitions(text.key) == {"a"}


def test_the_project_uses_it_and_what_it_overrides_is_there() -> None:
    configured = yaml.safe_load((REPOSITORY / "dagster_home" / "dagster.yaml").read_text(encoding="utf-8"))["storage"]
    assert {name: configured["custom"][name] for name in ("module", "class")} == KEPT["custom"]
    # Dagster may rename what is not public; then this says it, and not a slow run.
    assert hasattr(SqliteEventLogStorage, "_connect") and hasattr(SqliteEventLogStorage, "_initdb")
    assert KeptOpenSqliteStorage.config_type() == DagsterSqliteStorage.config_type()
