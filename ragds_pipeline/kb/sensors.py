"""Noticing that the documents changed, in Dagster: a sensor watches the folder, a schedule looks by the clock.

What belongs here: asking the event log, and turning the decision (``watch``) into run requests. Both are stopped unless
``watch`` in ragds.yaml switches them on, because what they start asks Claude and costs money.
https://docs.dagster.io/guides/automate/sensors
"""

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import dagster as dg

from ragds_pipeline.config import Settings, WatchSettings
from ragds_pipeline.kb.assets import archive_of, folder_observation, folder_revision
from ragds_pipeline.kb.current import current, move_to
from ragds_pipeline.kb.revision import Revision, UnknownRevision
from ragds_pipeline.kb.scan import ScannedFile
from ragds_pipeline.kb.watch import Attempt, History, Seen, Step, look, next_step, quiet_for
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.run_processes import (
    ACTIVE,
    ATTEMPT_TAG,
    LAUNCHED_BY_TAG,
    PARTITION_TAG,
    SOURCE_VERSION_TAG,
    WHY_TAG,
    sweep,
)

JOB = "revision_job"
LAST_ASSET = dg.AssetKey("review_queue")
"""The asset at which the job of a revision ends: where it is there, the revision was run."""

SENSOR, SCHEDULE = "kb_revision_sensor", "kb_revision_schedule"

_STATUS = {
    dg.DagsterRunStatus.SUCCESS: "done",
    dg.DagsterRunStatus.CANCELED: "cancelled",
    dg.DagsterRunStatus.FAILURE: "failed",
}


def history_of(instance: dg.DagsterInstance, version: str) -> History:
    """Return what the event log says of a revision. A run of any job on it counts as active, also one of a person."""
    tags = {PARTITION_TAG: version}
    active = instance.get_runs(dg.RunsFilter(tags=tags, statuses=ACTIVE), limit=1)
    by_us = [
        record
        for record in instance.get_run_records(dg.RunsFilter(job_name=JOB, tags=tags), ascending=True)
        if record.dagster_run.tags.get(LAUNCHED_BY_TAG) in (SENSOR, SCHEDULE) and record.dagster_run.is_finished
    ]
    attempts = [
        Attempt(
            record.dagster_run.run_id,
            _number(record.dagster_run, at),
            _STATUS[record.dagster_run.status],  # type: ignore[arg-type]
            record.end_time or record.update_timestamp.replace(tzinfo=dt.UTC).timestamp(),
        )
        for at, record in enumerate(by_us, start=1)
    ]
    if attempts and attempts[-1].status == "failed":
        attempts[-1] = replace(attempts[-1], error=_error_of(instance, attempts[-1].run_id))
    done = version in instance.get_materialized_partitions(LAST_ASSET)
    return History(done, active[0].run_id if active else "", attempts)


def _number(run: dg.DagsterRun, otherwise: int) -> int:
    number = run.tags.get(ATTEMPT_TAG, "")
    return int(number) if number.isdigit() else otherwise


def _error_of(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return the first line of what a failed run says, for the person who reads the tick."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        event = entry.dagster_event
        if event is None:
            continue
        data = event.step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return data.user_failure_data.description.strip()[:300]
        error = data.error
        while error is not None and error.cause is not None:
            error = error.cause
        return error.message.strip().split("\n")[0][:300] if error else ""
    return ""


@dataclass(frozen=True)
class Tick:
    """What one look at the folder came to."""

    revision: Revision
    seen: Seen
    step: Step
    observations: Sequence[dg.AssetObservation] = ()

    def request(self, launched_by: str) -> dg.RunRequest:
        """Return the run to start; its key is never used twice, also where runs were deleted."""
        version = self.revision.source_version
        return dg.RunRequest(
            run_key=f"{version}:{self.step.attempt}",
            partition_key=version,
            tags={
                SOURCE_VERSION_TAG: version,
                LAUNCHED_BY_TAG: launched_by,
                WHY_TAG: self.step.reason[:200],
                ATTEMPT_TAG: str(self.step.attempt),
            },
        )


def tick(instance: dg.DagsterInstance, settings: Settings, before: Seen | None, by_marks_alone: bool = False) -> Tick:
    """Look at the folder once and say what is due.

    ``before`` is what the last look saw; ``by_marks_alone`` is for looks too far apart to say anything about quietness.
    Raises KbMissing where there is no folder or no document in it, and ConfigError for a bad ``kb.yaml``: the tick
    fails with that message, and nothing counts as deleted.
    """
    sweep(instance)
    revision = folder_revision(settings)
    now = time.time()  # after the scan, so that a change during it lies before
    seen = look(revision, before, now)
    quiet_s = quiet_for(revision, None if by_marks_alone else seen, now)
    history = history_of(instance, revision.source_version)
    step = next_step(revision, quiet_s, history, _files_before(settings), now, settings.watch)
    if step.kind == "done" and move_to(settings.data_dir, revision.source_version, revision.content_sha256):
        step = replace(step, reason=f"{step.reason}; the KB is at {revision.source_version} again")
    observations = [] if step.kind == "wait" else folder_observation(instance, revision)
    return Tick(revision, seen, step, observations)


def _files_before(settings: Settings) -> Sequence[ScannedFile]:
    pointer = current(settings.data_dir)
    if pointer is None:
        return ()
    try:
        return archive_of(settings).load(pointer.source_version).scan.files
    except UnknownRevision:
        return ()


def watchers(settings: WatchSettings) -> tuple[dg.SensorDefinition, dg.ScheduleDefinition]:
    """Return the sensor and the schedule, running or stopped as the settings say."""

    @dg.sensor(
        name=SENSOR,
        job_name=JOB,
        minimum_interval_seconds=settings.every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if settings.enabled else dg.DefaultSensorStatus.STOPPED,
        description="Watches the KB folder and runs each new revision up to the review queue, once, when the folder "
        "has been quiet for watch.quiet_s.",
    )
    def kb_revision_sensor(context: dg.SensorEvaluationContext, project: Project) -> dg.SensorResult:
        found = tick(context.instance, project.settings(), Seen.from_text(context.cursor))
        version = found.revision.source_version
        if found.step.kind != "run":
            return dg.SensorResult(
                skip_reason=found.step.reason, cursor=found.seen.to_text(), asset_events=found.observations
            )
        return dg.SensorResult(
            run_requests=[found.request(SENSOR)],
            dynamic_partitions_requests=[kb_revisions.build_add_request([version])],
            cursor=found.seen.to_text(),
            asset_events=found.observations,
        )

    @dg.schedule(
        name=SCHEDULE,
        cron_schedule=settings.cron,
        execution_timezone=settings.timezone,
        job_name=JOB,
        default_status=(
            dg.DefaultScheduleStatus.RUNNING if settings.schedule_enabled else dg.DefaultScheduleStatus.STOPPED
        ),
        description="Looks at the KB folder at set times (watch.cron) and runs a new revision up to the review queue.",
    )
    def kb_revision_schedule(context: dg.ScheduleEvaluationContext, project: Project) -> dg.RunRequest | dg.SkipReason:
        found = tick(context.instance, project.settings(), None, by_marks_alone=True)
        for observation in found.observations:
            context.instance.report_runless_asset_event(observation)
        if found.step.kind != "run":
            return dg.SkipReason(found.step.reason)
        context.instance.add_dynamic_partitions(kb_revisions.name, [found.revision.source_version])  # type: ignore[arg-type]
        return found.request(SCHEDULE)

    return kb_revision_sensor, kb_revision_schedule
