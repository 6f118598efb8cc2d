"""``ragds checks``: the checks of the golden set on the documents of today, run through Dagster and gated here.

Dagster ends a job with 0 although a check of severity error failed, unless it blocks; so the outcomes are read from
the run's own events and judged by their severity.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, cast

import dagster as dg

from ragds_pipeline.golden.today import CHECKS, Finding, Outcome
from ragds_pipeline.runs import message_of


class ChecksFailed(RuntimeError):
    """The checks could not be run at all."""


def run_checks(config_file: Path, instance: dg.DagsterInstance, snapshot: Path | None = None) -> list[Outcome]:
    """Run ``checks_job`` and return how each check ended. The Dagster UI shows the same on ``golden_set_today``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        from ragds_pipeline.definitions import CHECKS_JOB, build_defs

        job = build_defs(config_file).resolve_job_def(CHECKS_JOB)
        ops = {"golden_set_today": {"config": {"snapshot": str(snapshot) if snapshot else ""}}}
        result = job.execute_in_process(
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}, "ops": ops},
            instance=instance,
            tags={"ragds/launched_by": "ragds checks"},
            raise_on_error=False,
        )
    found = {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}
    if found.keys() != CHECKS.keys():
        why = "; ".join(message_of(event) for event in result.get_step_failure_events())
        raise ChecksFailed(why or "the checks did not run")
    return [_outcome(name, found[name].metadata) for name in CHECKS]


def _outcome(name: str, metadata: Any) -> Outcome:
    rows = cast("list[dict[str, Any]]", metadata["findings"].value)
    return Outcome(name, CHECKS[name][0], tuple(Finding(**row) for row in rows), str(metadata["note"].value))
