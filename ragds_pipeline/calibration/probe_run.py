"""The probes from the command line: estimate, answers, report. ``probe_verdicts`` is the same as an asset."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragds_pipeline.calibration import report
from ragds_pipeline.calibration.measure import (
    against_probes,
    calibration_rows,
    difference_rows,
    needless,
    steering,
)
from ragds_pipeline.claude import RepliesMissing, open_claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.judges import JUDGES
from ragds_pipeline.filters.judging import batch_above
from ragds_pipeline.filters.probing import Probed, all_votes, first_votes, probe, probes_for, with_judge
from ragds_pipeline.storage.schemas import as_json


class ProbesStopped(RuntimeError):
    """The probes cannot be asked; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What came of asking the probes."""

    markdown: str
    json: str
    """Figures, differing items and every probe with its verdict."""


def run_probes(settings: Settings, judges: Sequence[str], model: str, say: Callable[[str], None]) -> ProbeReport:
    """Ask about the probes of some judges (all if none is named) and return the report.

    The cap of a run holds; the estimate is told before anything is sent. Raises ProbesStopped where a judge is unknown
    or the model cannot be reached, ConfigError where its price is unknown.
    """
    settings = with_judge(settings, model)
    try:
        probes = probes_for(judges)
    except KeyError as error:
        names = ", ".join(judge.name for judge in JUDGES)
        raise ProbesStopped(f"{error} is no judge; there are: {names}") from error
    claude = open_claude(settings, say=say)
    try:
        first, most = (
            claude.estimate(asked(probes, settings), batch_above(settings)) for asked in (first_votes, all_votes)
        )
        say(
            f"{len(probes)} probes for {settings.claude.models.judge}: {first.calls} calls to pay, about "
            f"${first.cost_usd:.2f}; at most {most.calls} calls and ${most.cost_usd:.2f} if all of them are voted on "
            f"({first.basis}; cap ${settings.claude.budget_usd} a run)"
        )
        probed = probe(probes, claude, settings)
        spent = claude.budget.spent_usd
    except RepliesMissing as error:
        raise ProbesStopped(str(error)) from error
    finally:
        claude.close()
    say(f"paid in this run: ${spent:.4f}")
    return probe_report(probed, settings)


def probe_report(probed: Sequence[Probed], settings: Settings) -> ProbeReport:
    """Return the report on probes that were asked."""
    measured = against_probes(probed, settings.filters.judges.min_labels)
    rows = difference_rows(measured)
    title = f"Labelled probes, judged by {settings.claude.models.judge}"
    markdown = report.whole(measured, rows, steering(probed), needless(probed), title)
    content = {
        "model": settings.claude.models.judge,
        "steered": [each.probe.id for each in steering(probed).steered],
        "needless": as_json(needless(probed)),
        "calibration": [as_json(row) for row in calibration_rows(measured)],
        "differences": [as_json(row) for row in rows],
        "probes": [as_json(each.row()) for each in probed],
    }
    return ProbeReport(markdown, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
