"""Noticing in Dagster: what a tick asks for, once a revision; what the UI shows as stale, and why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from ragds_pipeline import runs
from ragds_pipeline.definitions import build_defs
from ragds_pipeline.kb.assets import folder_revision
from ragds_pipeline.kb.current import current
from ragds_pipeline.kb.scan import KbMissing
from ragds_pipeline.resources import Project
from ragds_pipeline.run_processes import PROCESS_TAG
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import REPOSITORY, ProjectRun, project

WATCH = {"enabled": True, "quiet_s": 60, "retry_after_s": 0}


def write(kb: Path, name: str, word: str) -> None:
    kb.mkdir(exist_ok=True)
    lines = "".join(f"In {word} rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(30))
    (kb / name).write_text(f"# {word}\n\n{lines}", encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProjectRun]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    for name in ("alpha", "beta"):
        write(tmp_path / "kb", f"{name}.md", name)
    with (
        LoopbackServer(responder=answer_questions) as server,
        project(
            tmp_path / "p",
            tmp_path / "kb",
            plan={"questions": 4, "top_up_rounds": 0},
            watch=WATCH,
            claude={"base_url": server.url, "check_models": False},
        ) as made,
    ):
        yield made


class Clock:
    """Ticks of the sensor at times that the test chooses, with the cursor carried on as the daemon does."""

    def __init__(self, run: ProjectRun, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run, self.cursor = run, ""
        self.ahead = 0.0
        real = time.time
        monkeypatch.setattr("ragds_pipeline.kb.sensors.time.time", lambda: real() + self.ahead)

    def tick(self, after: float = 0.0) -> dg.SensorResult:
        """Look once, ``after`` seconds later, and do with the result what the daemon does."""
        self.ahead += after
        defs = build_defs(self.run.config)
        resources = {"project": Project(config_file=str(self.run.config))}
        with dg.build_sensor_context(
            self.run.instance, self.cursor or None, definitions=defs, resources=resources
        ) as context:
            data = defs.resolve_sensor_def("kb_revision_sensor")(context)
        assert isinstance(data, dg.SensorResult)
        self.cursor = data.cursor or self.cursor
        for request in data.dynamic_partitions_requests or []:
            self.run.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        for event in data.asset_events or []:
            assert isinstance(event, dg.AssetObservation)
            self.run.instance.report_runless_asset_event(event)
        return data

    def launch(self, requests: Sequence[dg.RunRequest] | None) -> bool:
        """Execute what a tick asked for, with its tags; return whether it succeeded."""
        (request,) = requests or ()
        self.run.version = request.partition_key or ""
        job = build_defs(self.run.config).resolve_job_def("revision_job")
        return job.execute_in_process(
            instance=self.run.instance,
            partition_key=request.partition_key,
            tags={**request.tags, "dagster/run_key": request.run_key or ""},
            raise_on_error=False,
        ).success


@pytest.fixture
def clock(run: ProjectRun, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(run, monkeypatch)


def reason(data: dg.SensorResult) -> str:
    assert data.skip_reason is not None
    return str(data.skip_reason.skip_message)


def test_a_new_revision_is_run_once_and_only_after_it_was_quiet(clock: Clock) -> None:
    assert "quiet in 60 s" in reason(clock.tick())
    assert not clock.run.instance.get_dynamic_partitions("kb_revisions")
    due = clock.tick(after=61)
    (request,) = due.run_requests or []
    version = folder_revision(clock.run.settings).source_version
    assert (request.partition_key, request.run_key) == (version, f"{version}:1")
    assert request.tags["ragds/source_version"] == version
    assert request.tags["ragds/launched_by"] == "kb_revision_sensor" and "no review queue" in request.tags["ragds/why"]
    assert clock.run.instance.get_dynamic_partitions("kb_revisions") == [version]
    assert clock.launch(due.run_requests)
    assert "has its review queue" in reason(clock.tick(after=30))
    clock.cursor = ""  # as after a daemon that lost everything but the event log
    assert "changed" in reason(clock.tick(after=30)), "quietness is judged anew"
    assert "has its review queue" in reason(clock.tick(after=61))


def test_there_and_back_again_needs_no_run_but_moves_the_pointer(clock: Clock, tmp_path: Path) -> None:
    def settle() -> dg.SensorResult:
        clock.tick()
        return clock.tick(after=61)

    clock.launch(settle().run_requests)
    first = current(clock.run.settings.data_dir)
    assert first is not None and first.source_version == clock.run.version
    before = (tmp_path / "kb" / "alpha.md").read_text(encoding="utf-8")
    write(tmp_path / "kb", "alpha.md", "gamma")
    clock.launch(settle().run_requests)
    second = current(clock.run.settings.data_dir)
    assert second is not None and second.before == first.source_version
    (tmp_path / "kb" / "alpha.md").write_text(before, encoding="utf-8")
    back = settle()
    assert not back.run_requests and f"the KB is at {first.source_version} again" in reason(back)
    third = current(clock.run.settings.data_dir)
    assert third is not None and third.source_version == first.source_version
    assert len(clock.run.instance.get_runs()) == 2


def test_a_failed_run_is_tried_again_and_then_given_up_with_the_reason(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.run.config.write_text(
        clock.run.config.read_text(encoding="utf-8").replace(
            "check_models: false", "check_models: false\n  backend: file"
        ),
        encoding="utf-8",
    )
    clock.tick()
    keys = []
    due = clock.tick(after=61)
    while due.run_requests:
        keys.append(due.run_requests[0].run_key)
        assert not clock.launch(due.run_requests)
        due = clock.tick(after=1)
    assert [key.rpartition(":")[2] for key in keys if key] == ["1", "2", "3"]
    assert "given up after 3 attempts" in reason(due) and "have no recorded reply" in reason(due)
    *_, first = clock.run.instance.get_runs()
    clock.run.instance.delete_run(first.run_id)
    (request,) = clock.tick(after=1).run_requests or ()
    assert request.run_key not in keys, "a key is never used twice: Dagster would drop the request without a word"


def test_a_run_of_a_person_counts_too(clock: Clock) -> None:
    version = runs.register_current(clock.run.settings, clock.run.instance)
    job = build_defs(clock.run.config).resolve_job_def("revision_job")
    under_way = clock.run.instance.create_run_for_job(
        job, tags={"dagster/partition": version}, status=dg.DagsterRunStatus.STARTED
    )
    clock.tick()
    assert f"in progress in run {under_way.run_id}" in reason(clock.tick(after=61))


def test_a_run_whose_process_is_gone_is_ended_and_tried_again(clock: Clock) -> None:
    version = runs.register_current(clock.run.settings, clock.run.instance)
    name = subprocess.run(
        [sys.executable, "-c", "from ragds_pipeline.claude.process_identity import this_process as t; print(t())"],
        capture_output=True, text=True, check=True, encoding="utf-8",
    ).stdout.strip()  # fmt: skip
    job = build_defs(clock.run.config).resolve_job_def("revision_job")
    tags = {"dagster/partition": version, PROCESS_TAG: name, "ragds/launched_by": "kb_revision_sensor"}
    dead = clock.run.instance.create_run_for_job(job, tags=tags, status=dg.DagsterRunStatus.STARTED)
    clock.tick()
    due = clock.tick(after=61)
    assert clock.run.instance.get_run_by_id(dead.run_id).status == dg.DagsterRunStatus.FAILURE  # type: ignore[union-attr]
    assert due.run_requests and due.run_requests[0].run_key == f"{version}:2"


def test_a_missing_folder_fails_the_tick_with_a_clear_message(clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "kb").rename(tmp_path / "unmounted")
    with pytest.raises(KbMissing, match="or mount it"):
        clock.tick()


def test_a_folder_that_emptied_is_held(clock: Clock, tmp_path: Path) -> None:
    for name in ("gamma", "delta"):
        write(tmp_path / "kb", f"{name}.md", name)
    clock.tick()
    clock.launch(clock.tick(after=61).run_requests)
    for name in ("alpha", "beta", "gamma"):
        (tmp_path / "kb" / f"{name}.md").unlink()
    clock.tick()
    held = clock.tick(after=61)
    assert not held.run_requests and "held: 3 of 4 documents are gone" in reason(held)
    pointer = current(clock.run.settings.data_dir)
    assert pointer is not None and pointer.source_version == clock.run.version
    assert clock.tick(after=86_400).run_requests


def test_nothing_runs_by_itself_unless_it_is_switched_on(clock: Clock) -> None:
    def states() -> list[str]:
        defs = build_defs(clock.run.config).get_repository_def()
        found = [sensor.default_status.value for sensor in defs.sensor_defs]
        return found + [schedule.default_status.value for schedule in defs.schedule_defs]

    assert states() == ["RUNNING", "RUNNING", "STOPPED"]
    text = clock.run.config.read_text(encoding="utf-8")
    clock.run.config.write_text(text.replace("enabled: true", "enabled: false"), encoding="utf-8")
    assert states() == ["STOPPED"] * 3


def test_the_schedule_does_the_same_by_the_clock(clock: Clock, tmp_path: Path) -> None:
    def at(ahead: float) -> Any:
        clock.ahead = ahead
        resources = {"project": Project(config_file=str(clock.run.config))}
        with dg.build_schedule_context(clock.run.instance, resources=resources) as context:
            return build_defs(clock.run.config).resolve_schedule_def("kb_revision_schedule")(context)

    with dg.DagsterInstance.local_temp(str(tmp_path)) as clock.run.instance:
        assert "changed" in at(1).skip_message
        due = at(61)
        assert due.tags["ragds/launched_by"] == "kb_revision_schedule"
        assert clock.launch([due])
        assert "has its review queue" in at(99).skip_message


def stale(run: ProjectRun, asset: str) -> tuple[StaleStatus, list[str]]:
    """Return what the UI says of an asset's partition, and why."""
    graph = build_defs(run.config).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(run.instance, graph, LoadingContextForTest(run.instance))
    key = dg.AssetKey(asset)
    causes = resolver.get_stale_causes(key, run.version)
    return resolver.get_status(key, run.version), [f"{c.category.value}: {c.reason}" for c in causes]


def test_what_is_stale_shows_and_why(clock: Clock, tmp_path: Path) -> None:
    run = clock.run
    run.must()
    assert stale(run, "kb_documents") == (StaleStatus.FRESH, [])
    assert stale(run, "drafts") == (StaleStatus.FRESH, [])
    (tmp_path / "kb" / "kb.yaml").write_text("languages: [en, it]\n", encoding="utf-8")
    clock.tick()
    clock.tick(after=61)
    assert stale(run, "kb_documents") == (StaleStatus.STALE, ["DATA: has a new dependency data version"])
    run.must()
    assert stale(run, "kb_documents") == (StaleStatus.FRESH, [])
    old = run.version
    write(tmp_path / "kb", "alpha.md", "gamma")
    clock.tick()
    clock.tick(after=61)
    assert stale(run, "kb_documents") == (StaleStatus.FRESH, []), "an old revision is what it was"
    run.version = folder_revision(run.settings).source_version
    assert run.version != old and stale(run, "kb_documents") == (StaleStatus.MISSING, [])


_CODE_VERSIONS = """
import json, sys
import ragds_pipeline
from ragds_pipeline.definitions import defs
assert ragds_pipeline.__file__.startswith(sys.argv[1]), ragds_pipeline.__file__
nodes = defs.resolve_asset_graph().asset_nodes
print(json.dumps({node.key.to_user_string(): node.code_version for node in nodes}))
"""


def versions_with_another_prompt(run: ProjectRun, copy: Path, prompt: str) -> dict[str, str | None]:
    """Return the code versions by asset of a copy of the package in which a prompt was changed."""
    shutil.copytree(REPOSITORY / "ragds_pipeline", copy / "ragds_pipeline")
    with (copy / "ragds_pipeline" / prompt).open("a", encoding="utf-8") as file:
        file.write("\nAnd be brief.\n")
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CODE_VERSIONS, str(copy)],
        env={**os.environ, "PYTHONPATH": str(copy), "RAGDS_CONFIG": str(run.config)}, cwd=copy,
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return dict(json.loads(told.stdout))


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("candidates/prompts/single_hop.md", {"drafts", "draft_drops", "draft_requests", "candidates", "verdicts"}),
        ("filters/prompts/closed_book_answer.md", {"closed_book_verdicts", "candidates", "verdicts"}),
    ],
)
def test_a_changed_prompt_shows_as_a_new_code_version(
    run: ProjectRun, tmp_path: Path, prompt: str, expected: set[str]
) -> None:
    run.must()
    versions = versions_with_another_prompt(run, tmp_path / "copy", prompt)

    def renewed(spec: dg.AssetSpec) -> dg.AssetSpec:
        return spec.replace_attributes(code_version=versions[spec.key.to_user_string()])

    defs = build_defs(run.config)
    assets = [a.map_asset_specs(renewed) if isinstance(a, dg.AssetsDefinition) else a for a in defs.assets or []]
    graph = dg.Definitions(assets=assets, resources=defs.resources).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(run.instance, graph, LoadingContextForTest(run.instance))
    stale = {
        node.key.to_user_string()
        for node in graph.asset_nodes
        if "has a new code version" in [cause.reason for cause in resolver.get_stale_causes(node.key, run.version)]
    }
    assert expected <= stale and resolver.get_status(dg.AssetKey("candidates"), run.version) == StaleStatus.STALE
    assert not stale & {"kb_documents", "question_plan", "review_queue", "support_verdicts"}


def test_observing_by_hand_says_the_same(run: ProjectRun) -> None:
    run.must()
    job = build_defs(run.config).resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(instance=run.instance, asset_selection=[dg.AssetKey("kb_folder")])
    assert done.success and stale(run, "kb_documents") == (StaleStatus.FRESH, [])


def test_the_checks_of_today_follow_the_golden_set_and_the_folder(clock: Clock, tmp_path: Path) -> None:
    run = clock.run

    def requested(cursor: Any = None) -> Any:
        return dg.evaluate_automation_conditions(build_defs(run.config), run.instance, cursor=cursor)

    run.must()
    first = requested()
    run.must(selection=["kb_documents", "kb_issues"])
    second = requested(first.cursor)
    assert first.total_requested == second.total_requested == 0, "nothing was frozen yet"
    run.answer()
    run.must("freeze_job")
    third = requested(second.cursor)
    assert third.total_requested == 1 and third.get_num_requested(dg.AssetKey("golden_set_today")) == 1
    fourth = requested(third.cursor)
    assert fourth.total_requested == 0
    write(tmp_path / "kb", "alpha.md", "gamma")
    clock.tick()
    clock.tick(after=61)
    fifth = requested(fourth.cursor)
    assert fifth.total_requested == fifth.get_num_requested(dg.AssetKey("golden_set_today")) == 1
