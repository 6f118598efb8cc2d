"""``ragds demo``: the sample from its documents to a frozen golden set, then through a revision of the documents.

The second half is what a script cannot do: the handbook is revised (``examples/kb-next``), the frozen questions are
held against it, what went stale goes to people with the change in words, and the next set is frozen with its changelog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragds_pipeline.config import Settings

if TYPE_CHECKING:
    import dagster as dg

NEXT = "examples/kb-next"
"""The sample's next revision, relative to the project."""

Run = Callable[..., None]
"""Runs a job for a revision: ``run(job, version, **options)``; what fails ends the demo."""

Say = Callable[[str], None]


def demo(settings: Settings, instance: dg.DagsterInstance, run: Run, say: Say, sheets_made: Sequence[str]) -> list[str]:
    """Run the sample and return the revisions that were frozen, in order.

    ``sheets_made`` are the assets that hold the sheets: they are made again when decisions came in. A project without
    a next revision of its documents ends after the first half.
    """
    from ragds_pipeline import runs

    revised = settings.path(NEXT)
    steps = _steps(6 if revised.is_dir() else 3, say)
    first = runs.register_current(settings, instance)
    steps(f"documents, questions, filters ({first})")
    run("revision_job", first)
    _review_and_freeze(settings, first, run, steps, sheets_made)
    if not revised.is_dir():
        return [first]
    from ragds_pipeline.backfill import from_folder

    second = from_folder(settings, instance, revised).source_version
    steps(f"the documents are revised ({NEXT}, {second}): every frozen question is held against them")
    run("revision_job", second)
    _review_and_freeze(settings, second, run, steps, sheets_made)
    return [first, second]


def _steps(count: int, say: Say) -> Say:
    numbers: Iterator[int] = iter(range(1, count + 1))

    def step(text: str) -> None:
        say(f"{next(numbers)}/{count}  {text} ...")

    return step


def _review_and_freeze(settings: Settings, version: str, run: Run, step: Say, sheets_made: Sequence[str]) -> None:
    sheets = recorded_decisions(settings, version)
    step(f"review: {len(sheets)} sheet(s) of recorded decisions")
    step("checks, golden set")
    run("freeze_job", version, ops=decisions_config(sheets))
    run("revision_job", version, selection=sheets_made)


def recorded_decisions(settings: Settings, version: str) -> list[Path]:
    """Return the sheets with the sample's recorded decisions on one revision."""
    return sorted(settings.path("data/recorded/decisions").glob(f"*{version}*.csv"))


def decisions_config(sheets: Sequence[Path], reviewer: str = "") -> Mapping[str, Any]:
    """Return the run config that imports ``sheets``."""
    return {"review_decisions": {"config": {"sheets": [str(path) for path in sheets], "reviewer": reviewer}}}
