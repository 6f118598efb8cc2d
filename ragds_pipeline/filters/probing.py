"""Asking the judges about labelled probes: how far can this model, with this rubric, be trusted?

Probes are asked in the very form in which candidates are, votes included. Their labels are ours; see
``probes/README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.calibration import Judged
from ragds_pipeline.filters.judges import JUDGES, Judge
from ragds_pipeline.filters.judging import ask_judge
from ragds_pipeline.filters.verdict_reader import CORRECT, INCORRECT
from ragds_pipeline.records import Verdict

INJECTION = "injection"
"""Name of the set of items whose texts try to steer a judge; each names its judge."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One labelled item."""

    id: str
    language: str
    judge: str
    fields: dict[str, Any]
    expected: bool
    """True for ``correct``."""
    why: str


def load_probes(name: str) -> list[Probe]:
    """Return the probes of one judge, or of the set :data:`INJECTION`."""
    text = (files("ragds_pipeline.filters") / "probes" / f"{name}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines() if line]
    return [
        Probe(r["id"], r["language"], r.get("judge", name), r["input"], r["expected"] == CORRECT, r["why"])
        for r in rows
    ]


def ask_probes(judge: Judge, probes: Sequence[Probe], claude: Claude, settings: Settings) -> list[Judged]:
    """Return what a judge says of its probes, beside their labels. A probe without a verdict has none."""
    verdicts = ask_judge(judge, {probe.id: probe.fields for probe in probes}, claude, settings)
    return [
        Judged(
            item_id=probe.id,
            language=probe.language,
            expected=probe.expected,
            got=_majority(verdicts[probe.id]),
            reason=verdicts[probe.id].detail,
            source="probe",
        )
        for probe in probes
    ]


def _majority(verdict: Verdict) -> bool | None:
    """Return what most of the votes say. A probe has no people to go to, so a split vote counts by its majority."""
    correct, incorrect = verdict.votes.count(CORRECT), verdict.votes.count(INCORRECT)
    return None if correct == incorrect else correct > incorrect


def judge_named(name: str) -> Judge:
    """Return a judge by its name; raise KeyError for a name that is none."""
    return {judge.name: judge for judge in JUDGES}[name]
