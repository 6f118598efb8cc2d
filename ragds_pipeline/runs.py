"""Running the pipeline headless, through Dagster, in this process.

What belongs here: registering a revision as a partition and executing the two jobs. The command line (``cli``) and the
tests use it; the Dagster UI does the same with its buttons.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb

from ragds_pipeline.claude.views import write_all_views
from ragds_pipeline.config import Settings, load_settings
from ragds_pipeline.kb.assets import archive_of, folder_observation, folder_revision
from ragds_pipeline.run_processes import LAUNCHED_BY_TAG, SOURCE_VERSION_TAG, sweep
from ragds_pipeline.storage.files import locked

STATE_VARIABLE = "RAGDS_DAGSTER_STORAGE"
"""Environment variable that ``dagster_home/dagster.yaml`` takes the folder of Dagster's state from."""


_LOGGERS: dict[str, Any] = {"console": {"config": {"log_level": "CRITICAL"}}, "steps": {}}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a job ended."""

    job: str
    run_id: str
    success: bool
    errors: tuple[str, ...]
    """What stopped it, for the person who can act; without tracebacks."""
    failed_checks: tuple[str, ...]
    warnings: tuple[str, ...]
    """What checks found that stops nothing."""
    metadata: Mapping[str, Mapping[str, Any]]
    """Metadata values by asset, as the UI shows them."""


def dagster_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the project's own Dagster instance, the same that ``make ui`` shows."""
    state = settings.data_dir / "dagster"
    state.mkdir(parents=True, exist_ok=True)
    os.environ[STATE_VARIABLE] = str(state)
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
    home = settings.root / "dagster_home"
    if not (home / "dagster.yaml").exists():
        home = Path(__file__).resolve().parent.parent / "dagster_home"
    with locked(state / ".lock"):  # two commands that make its databases at once would trip over one another
        if not (home / "dagster.yaml").exists():
            return dg.DagsterInstance.local_temp(str(state))
        os.environ["DAGSTER_HOME"] = str(home)
        return dg.DagsterInstance.get()


class UnknownVersion(LookupError):
    """A revision that neither the KB folder nor the archive holds."""


def register_version(settings: Settings, instance: dg.DagsterInstance, version: str) -> str:
    """Make the revision named ``version`` a partition; the KB folder may have moved on since it was run.

    Raises UnknownVersion, with those there are, where it is neither in the archive nor what the folder holds.
    """
    archive = archive_of(settings)
    if archive.content_of(version) is None and version != (current := folder_revision(settings).source_version):
        others = sorted(path.stem for path in (archive.root / "revisions").glob("*.json"))
        known = ", ".join(dict.fromkeys([*others, current]))
        raise UnknownVersion(f"there is no revision {version}; there are: {known}")
    instance.add_dynamic_partitions("kb_revisions", [version])
    return version


def register_current(settings: Settings, instance: dg.DagsterInstance) -> str:
    """Make the revision that the KB folder holds now a partition and return its source version."""
    revision = folder_revision(settings)
    version = revision.source_version
    instance.add_dynamic_partitions("kb_revisions", [version])
    for observation in folder_observation(instance, revision):
        instance.report_runless_asset_event(observation)
    return version


def execute(
    config_file: Path,
    job_name: str,
    source_version: str | None,
    instance: dg.DagsterInstance,
    resources: Mapping[str, Any] | None = None,
    ops: Mapping[str, Any] | None = None,
    selection: Sequence[str] | None = None,
    launched_by: str = "ragds",
) -> RunOutcome:
    """Run a job for one revision, or some of its assets, and say how it ended.

    ``source_version`` is None for a job that belongs to no revision. Nothing is printed while it runs; whoever has
    joined the ``AUDIENCE`` of this process is told how far it is. Runs whose process is gone are ended first, so that
    none of them keeps its place.
    """
    sweep(instance)
    tags = {LAUNCHED_BY_TAG: launched_by} | ({SOURCE_VERSION_TAG: source_version} if source_version else {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        from ragds_pipeline.definitions import build_defs

        job = build_defs(config_file, resources).resolve_job_def(job_name)
        result = job.execute_in_process(
            run_config={"loggers": _LOGGERS, "ops": dict(ops or {})},
            instance=instance,
            partition_key=source_version,
            tags=tags,
            asset_selection=[dg.AssetKey(name) for name in selection] if selection else None,
            raise_on_error=False,
        )
    with suppress(duckdb.Error, OSError):
        write_all_views(load_settings(config_file))  # a convenience for people; never what a run fails for
    checks = [e for e in result.get_asset_check_evaluations() if not e.passed]
    told = [(e.severity, f"{e.check_name}: {e.description or 'see its metadata'}") for e in checks]
    failed = tuple(text for severity, text in told if severity == dg.AssetCheckSeverity.ERROR)
    warned = tuple(text for severity, text in told if severity == dg.AssetCheckSeverity.WARN)
    errors = tuple(message_of(event) for event in result.get_step_failure_events())
    metadata = {
        event.asset_key.to_user_string(): {k: v.value for k, v in event.materialization.metadata.items()}
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }
    return RunOutcome(job_name, result.run_id, result.success, errors, failed, warned, metadata)


def message_of(event: dg.DagsterEvent) -> str:
    """Return why a step failed, for the person who can act; without a traceback."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return f"{event.step_key}: {data.user_failure_data.description}"
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return f"{event.step_key}: {error.message.strip() if error else event.message}"
