"""The real Dagster daemon on a small project: one run a revision, also where the daemon is restarted or killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._utils.tags import TagConcurrencyLimitsCounter

from ragds_pipeline.cli import WORKSPACE
from ragds_pipeline.config import load_settings
from ragds_pipeline.kb.assets import folder_revision
from ragds_pipeline.run_processes import PARTITION_TAG
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import REPOSITORY

WAIT_S = 600
"""How long anything may take on a machine with much other work; nothing is asserted about time."""


class Daemon:
    """A project with a Dagster home of its own, and the daemon on it."""

    def __init__(self, root: Path, url: str) -> None:
        self.root, self.config, self.kb = root, root / "ragds.yaml", root / "kb"
        self.home, self.state = root / "home", root / "state"
        for folder in (self.kb, self.home, self.state):
            folder.mkdir()
        shutil.copy(REPOSITORY / "dagster_home" / "dagster.yaml", self.home)
        (root / "workspace.yaml").write_text(WORKSPACE, encoding="utf-8")
        settings = {
            "plan": {"questions": 4, "top_up_rounds": 0},
            "watch": {"enabled": True, "every_s": 5, "quiet_s": 4, "retry_after_s": 0},
            "claude": {"base_url": url, "check_models": False},
        }
        self.config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DAGSTER_")},
            "ANTHROPIC_API_KEY": "test",
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "DAGSTER_HOME": str(self.home),
            "PYTHONPATH": str(REPOSITORY),
            "RAGDS_CONFIG": str(self.config),
            "RAGDS_DAGSTER_STORAGE": str(self.state),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.told: dict[str, tuple[str, Mapping[str, str]]] = {}
        """All runs as they were last seen, for the message of a test that fails."""

    def start(self) -> None:
        with (self.root / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "dagster._daemon", "run", "-w", "workspace.yaml"],
                env=self.environment, cwd=self.root, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def stop(self, how: signal.Signals) -> None:
        """End the daemon with all that it started: its code server, and the runs in it."""
        if self.process is not None and self.process.poll() is None:
            if how == signal.SIGKILL:
                os.killpg(self.process.pid, how)
            else:
                self.process.send_signal(how)
            self.process.wait(60)

    def until(self, what: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S
        while not what():
            log = (self.root / "daemon.log").read_text(encoding="utf-8", errors="replace")
            alive = self.process is not None and self.process.poll() is None
            assert alive and time.monotonic() < end, (self.told, log[-4000:])
            time.sleep(0.25)

    def write(self, word: str) -> str:
        """Change the documents and return the revision that they are then."""
        lines = "".join(f"In {word} rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(30))
        (self.kb / "rules.md").write_text(f"# {word}\n\n{lines}", encoding="utf-8")
        return folder_revision(load_settings(self.config)).source_version

    def runs(self, instance: dg.DagsterInstance, version: str) -> list[dg.DagsterRunStatus]:
        """Return the states of all runs on a revision, oldest first."""
        records = instance.get_run_records(dg.RunsFilter(tags={PARTITION_TAG: version}), ascending=True)
        found = [record.dagster_run for record in records]
        self.told |= {run.run_id: (run.status.value, run.tags) for run in found}
        return [run.status for run in found]


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(responder=answer_questions) as running:
        yield running


@pytest.fixture
def daemon(tmp_path: Path, server: LoopbackServer) -> Iterator[Daemon]:
    made = Daemon(tmp_path, server.url)
    yield made
    made.stop(signal.SIGKILL)


@pytest.fixture
def instance(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("RAGDS_DAGSTER_STORAGE", str(daemon.state))
    with dg.DagsterInstance.from_config(str(daemon.home)) as made:
        yield made


def ticks(instance: dg.DagsterInstance) -> int:
    """Return how many looks at the folder have ended."""
    sensors = [state for state in instance.all_instigator_state() if state.instigator_name == "kb_revision_sensor"]
    found = [tick for state in sensors for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)]
    return sum(tick.status.value != "STARTED" for tick in found)


def test_one_run_a_revision_though_the_daemon_is_killed_and_started_again(
    daemon: Daemon, instance: dg.DagsterInstance, server: LoopbackServer
) -> None:
    done, failed = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE
    server.latency = 20.0  # so that the run is under way when it is killed
    first = daemon.write("alpha")
    daemon.start()
    daemon.until(lambda: len(server.requests) > 0)
    daemon.stop(signal.SIGKILL)
    server.latency = 0.0
    assert daemon.runs(instance, first) == [dg.DagsterRunStatus.STARTED], "nobody was left to end it"
    daemon.start()
    daemon.until(lambda: daemon.runs(instance, first) == [failed, done])
    before = ticks(instance)
    daemon.until(lambda: ticks(instance) >= before + 2)
    assert daemon.runs(instance, first) == [failed, done], "the daemon was started again, and runs nothing twice"

    # A change in two steps, closer together than watch.quiet_s, is one revision.
    half = daemon.write("half")
    second = daemon.write("whole")
    daemon.until(lambda: daemon.runs(instance, second) == [done])
    before = ticks(instance)
    daemon.until(lambda: ticks(instance) >= before + 2)
    assert daemon.runs(instance, second) == [done] and not daemon.runs(instance, half)
    assert set(instance.get_dynamic_partitions("kb_revisions")) == {first, second}
    daemon.stop(signal.SIGTERM)


def test_the_queue_lets_one_run_a_revision_through(daemon: Daemon, instance: dg.DagsterInstance) -> None:
    limits = instance.get_concurrency_config().run_queue_config
    assert limits is not None and limits.max_concurrent_runs == 2

    def run(version: str) -> dg.DagsterRun:
        return dg.DagsterRun(job_name="revision_job", tags={PARTITION_TAG: version})

    counter = TagConcurrencyLimitsCounter(limits.tag_concurrency_limits, [run("a")])
    assert counter.is_blocked(run("a")) and not counter.is_blocked(run("b"))
    counter.update_counters_with_launched_item(run("b"))
    assert counter.is_blocked(run("b"))
