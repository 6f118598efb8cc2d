"""Decisions that say different things on one candidate: in two sheets that are imported together, or before and now.

Within one sheet, ``interpret`` looks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ragds_pipeline.records import Decision
from ragds_pipeline.review.sheet import Problem, Severity, place


class Returned(Protocol):
    """A sheet that was read."""

    @property
    def name(self) -> str:
        """Name of the file."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What it decides."""


def across_sheets(sheets: Sequence[Returned]) -> list[list[Problem]]:
    """Return the problems of each sheet: which of its decisions another of them contradicts.

    All sheets that take part get an error, so that none of them counts because of its name.
    """
    said: dict[str, list[tuple[int, Decision]]] = {}
    for at, sheet in enumerate(sheets):
        for decision in sheet.decisions:
            said.setdefault(decision.candidate_id, []).append((at, decision))
    problems: list[list[Problem]] = [[] for _ in sheets]
    for id_, decisions in said.items():
        for at, decision in decisions:
            others = [f"{d.keep} in {d.source}" for _, d in decisions if _meaning(d) != _meaning(decision)]
            if others:
                where, line = place(sheets[at].name, line_of(decision), "keep"), line_of(decision)
                text = (
                    f"{where}: {id_} is decided in different ways: {decision.keep} here, {', '.join(others)}. Agree on "
                    "one, and leave keep empty or delete the row in the other sheet; none of these sheets is imported"
                )
                problems[at].append(Problem(line, "keep", "contradiction_across_sheets", text))
    return problems


def against_log(sheet: Returned, decisions: Mapping[str, Decision]) -> list[Problem]:
    """Return a warning for each decision of ``sheet`` that replaces an earlier one that said something else."""
    problems = []
    for decision in sheet.decisions:
        earlier = decisions.get(decision.candidate_id)
        if earlier is not None and _meaning(earlier) != _meaning(decision):
            text = (
                f"{place(sheet.name, line_of(decision), 'keep')}: {decision.candidate_id}: {decision.keep} by "
                f"{decision.reviewer} replaces {earlier.keep} by {earlier.reviewer or 'an unnamed reviewer'} "
                f"({earlier.source})"
            )
            problems.append(Problem(line_of(decision), "keep", "replaces_decision", text, Severity.WARNING))
    return problems


def _meaning(decision: Decision) -> tuple[str, str]:
    return decision.keep, decision.corrected


def line_of(decision: Decision) -> int:
    """Return the line of the sheet on which a decision stands."""
    return int(decision.source.rpartition(":")[2])
