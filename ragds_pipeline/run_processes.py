"""Runs and the processes that execute them: one run a revision at a time, none in progress whose process is gone.

Dagster's own run monitoring cannot see a run that was started outside its code server (``ragds run``), nor one whose
code server was killed with it. Such a run would stay in progress for ever, keep its place in the queue and its slot in
a pool. So each run carries the name of its process, and :func:`sweep` ends those whose process is certainly gone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from ragds_pipeline.claude.process_identity import is_gone, this_process
from ragds_pipeline.config import SOURCE_VERSION
from ragds_pipeline.storage.files import locked

PARTITION_TAG = "dagster/partition"
PROCESS_TAG = "ragds/process"
SOURCE_VERSION_TAG = "ragds/source_version"
LAUNCHED_BY_TAG = "ragds/launched_by"
"""What started the run: ``kb_revision_sensor``, ``kb_revision_schedule``, or the command of ``ragds``."""
WHY_TAG = "ragds/why"
ATTEMPT_TAG = "ragds/attempt"

ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
"""States of a run that has not ended."""


def sweep(instance: dg.DagsterInstance) -> list[str]:
    """End the runs whose process is certainly gone, free their slots in pools, and return their ids."""
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=ACTIVE)):
        process = run.tags.get(PROCESS_TAG)
        if process is None or not is_gone(process):
            continue
        message = (
            "The process of this run is gone (killed, or the machine was restarted). Nothing it wrote is half-written, "
            "and replies that it paid for are in the ledger: materialise the same again."
        )
        if run.status == dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, message)
        else:
            instance.report_run_failed(run, message)
        if instance.event_log_storage.supports_global_concurrency_limits:
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run.run_id)
    return ended


@contextmanager
def alone(instance: dg.DagsterInstance, run: dg.DagsterRun, data_dir: Path) -> Iterator[None]:
    """Let one run at a time work on a revision, on this machine; a second one waits until the first has ended.

    The queue of the Dagster daemon does the same earlier (``dagster_home/dagster.yaml``); runs of the command line do
    not pass through it. Tables of two runs would otherwise be mixed, though none could be half-written.
    """
    instance.add_run_tags(run.run_id, {PROCESS_TAG: this_process()})
    partition = run.tags.get(PARTITION_TAG, "")
    if not SOURCE_VERSION.fullmatch(partition):
        yield
        return
    lock = data_dir / "state" / "runs" / f"{partition}.lock"
    if _is_held(lock):
        message = f"waiting for another run on {partition} to end"
        instance.report_engine_event(message, run)
        print(f"run {run.run_id}: {message}", file=sys.stderr, flush=True)  # the command line shows no events
    with locked(lock):
        _clear_leftovers(data_dir, partition)
        yield


def _is_held(lock: Path) -> bool:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _clear_leftovers(data_dir: Path, partition: str) -> None:
    """Remove what killed runs on this revision staged and never put in place. Only the holder of the lock may."""
    staged = re.compile(rf"\.{re.escape(partition)}(\.parquet)?\.[0-9a-f-]{{36}}\.part")
    for folder in (data_dir / "tables").glob("*/"):
        for entry in os.scandir(folder):
            if staged.fullmatch(entry.name):
                Path(entry.path).unlink(missing_ok=True)
    for stage in ("golden", "review"):  # a snapshot, or sheets, that were being made
        for folder in (data_dir / stage / partition).glob(".staged-*"):
            shutil.rmtree(folder, ignore_errors=True)
