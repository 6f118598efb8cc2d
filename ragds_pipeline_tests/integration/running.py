"""A process that runs a job of a project, for tests that start two at once or kill one.

Started by :func:`start`, from a fork server that has everything imported, so that a start costs little.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from ragds_pipeline import runs
from ragds_pipeline.claude.backends import api  # noqa: F401  (with the SDK; imported once, in the fork server)
from ragds_pipeline.config import load_settings
from ragds_pipeline.definitions import build_defs  # noqa: F401  (imported once, in the fork server)

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["ragds_pipeline_tests.integration.running"])


def run_job(config: Path, job: str) -> None:
    """Register what the KB folder holds and run a job for it with the project's own instance; exit 1 if it fails."""
    os.environ["ANTHROPIC_API_KEY"] = "test"
    settings = load_settings(config)
    instance = runs.dagster_instance(settings)
    outcome = runs.execute(config, job, runs.register_current(settings, instance), instance)
    if not outcome.success or outcome.failed_checks:
        print(outcome.errors, outcome.failed_checks, file=sys.stderr, flush=True)
        sys.exit(1)


def start(config: Path, job: str) -> ForkServerProcess:
    """Start a process that runs a job."""
    process = _context.Process(target=run_job, args=(config, job))
    process.start()
    return process
