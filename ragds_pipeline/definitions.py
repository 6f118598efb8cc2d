"""The one Definitions object: what exists, nothing else.

``build_defs`` makes a fresh one for tests, over any project and with any resource replaced.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from ragds_pipeline.calibration.assets import ASSETS as CALIBRATION
from ragds_pipeline.candidates.assets import ASSETS as CANDIDATES
from ragds_pipeline.candidates.no_answer_assets import ASSETS as NO_ANSWER_CANDIDATES
from ragds_pipeline.config import load_settings
from ragds_pipeline.costs.assets import ASSETS as COSTS
from ragds_pipeline.filters.assets import ASSETS as FILTERS
from ragds_pipeline.filters.no_answer_assets import ASSETS as NO_ANSWER_FILTERS
from ragds_pipeline.golden.assets import ASSETS as GOLDEN
from ragds_pipeline.golden.checks import CHECKS, TODAY, TODAY_GROUP
from ragds_pipeline.golden.no_answer_assets import ASSETS as NO_ANSWER_GOLDEN
from ragds_pipeline.golden.no_answer_checks import CHECKS as NO_ANSWER_CHECKS
from ragds_pipeline.golden.revalidation_assets import ASSETS as REVALIDATION
from ragds_pipeline.kb.assets import ASSETS as KB
from ragds_pipeline.kb.sensors import watchers
from ragds_pipeline.resources import TABLES, Project
from ragds_pipeline.review.assets import ASSETS as REVIEW
from ragds_pipeline.review.no_answer_assets import ASSETS as NO_ANSWER_REVIEW
from ragds_pipeline.storage.parquet_io import MarkdownIOManager, ParquetIOManager
from ragds_pipeline.terminal import LOGGERS

CONFIG_VARIABLE = "RAGDS_CONFIG"
"""Environment variable with the path of ``ragds.yaml``; by default the one above this package, else in the folder."""

NO_ANSWER = [*NO_ANSWER_CANDIDATES, *NO_ANSWER_FILTERS, *NO_ANSWER_REVIEW, *NO_ANSWER_GOLDEN]

SHEETS = ("review_queue", *(key.to_user_string() for asset in NO_ANSWER_REVIEW for key in asset.keys))
"""What is made for the sheets, and again when decisions came in: part of both jobs."""

REVISION_JOB, FREEZE_JOB, PROBE_JOB, CHECKS_JOB = "revision_job", "freeze_job", "probe_job", "checks_job"

revision_job = dg.define_asset_job(
    REVISION_JOB,
    selection=dg.AssetSelection.groups("kb", "revalidation", "candidates", "filters")
    | dg.AssetSelection.assets("review_decisions", *SHEETS, "costs", "item_costs", "revision_report"),
    description="From the documents of a revision to the review queue: the last frozen set is held against them, and "
    "what is new is asked about. Ends at the sheets that go to people, and a report.",
)

freeze_job = dg.define_asset_job(
    FREEZE_JOB,
    selection=dg.AssetSelection.assets(
        "review_decisions", *SHEETS, "judge_calibration", "judge_differences", "costs", "item_costs"
    )
    | dg.AssetSelection.assets(*GOLDEN, *NO_ANSWER_GOLDEN)
    | dg.AssetSelection.checks_for_assets(*GOLDEN, *NO_ANSWER_GOLDEN),
    description="From returned sheets to a frozen snapshot, and a new sheet of what is left to decide. Stops before "
    "freezing where a check fails.",
)

probe_job = dg.define_asset_job(
    PROBE_JOB,
    selection=dg.AssetSelection.assets("probe_verdicts", "probe_calibration"),
    description="Ask the judges about labelled probes, of the configured model or of another. No KB needed.",
)

checks_job = dg.define_asset_job(
    CHECKS_JOB,
    selection=dg.AssetSelection.groups(TODAY_GROUP),
    description="Does the golden set that was frozen last hold on the documents as they are now? Fails where a check "
    "of severity error does. No model is asked. `ragds checks` runs it for CI.",
)


def config_path() -> Path:
    """Return the path of ``ragds.yaml`` that this process works with."""
    if configured := os.environ.get(CONFIG_VARIABLE):
        return Path(configured)
    beside = Path(__file__).resolve().parent.parent / "ragds.yaml"
    return beside if beside.exists() else Path("ragds.yaml")


def build_defs(config_file: Path, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Return the definitions for the project of ``config_file``; raise ConfigError where it cannot be used."""
    settings = load_settings(config_file)
    data = settings.data_dir
    sensor, schedule = watchers(settings.watch)
    checks = dg.AutomationConditionSensorDefinition(
        "golden_set_today_sensor",
        target=dg.AssetSelection.groups(TODAY_GROUP),
        default_status=dg.DefaultSensorStatus.RUNNING if settings.watch.enabled else dg.DefaultSensorStatus.STOPPED,
        description="Checks the golden set again when one was frozen or the KB folder changed. No call is made.",
    )
    return dg.Definitions(
        assets=[
            *(*KB, *CANDIDATES, *FILTERS, *REVIEW, *CALIBRATION),
            *(*REVALIDATION, *GOLDEN, *NO_ANSWER, *COSTS, *TODAY),
        ],
        asset_checks=[*CHECKS, *NO_ANSWER_CHECKS],
        jobs=[revision_job, freeze_job, probe_job, checks_job],
        sensors=[sensor, checks],
        schedules=[schedule],
        # Steps follow one another, and a process for each would cost more (seconds of imports) than all they do.
        executor=dg.in_process_executor,
        loggers=LOGGERS,
        resources={
            "project": Project(config_file=str(config_file)),
            "tables": ParquetIOManager(base_dir=str(data / TABLES)),
            "texts": MarkdownIOManager(base_dir=str(data / TABLES)),
            **(resources or {}),
        },
    )


defs = build_defs(config_path())
