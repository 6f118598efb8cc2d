"""The funnel of a revision from its tables, whole or as far as it goes, and in parts for a terminal."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ragds_pipeline.config import Settings
from ragds_pipeline.filters.breakdown import By, Stage, by_reason, cells, filter_stages, parts
from ragds_pipeline.filters.claude_filter import enabled_judges
from ragds_pipeline.filters.funnel import step
from ragds_pipeline.filters.funnel_report import MEANINGS
from ragds_pipeline.golden.accept import REASONS as REVIEW
from ragds_pipeline.golden.accept import STAGE as REVIEW_STAGE
from ragds_pipeline.golden.items import REASONS as FREEZE
from ragds_pipeline.golden.items import STAGE as FREEZE_STAGE
from ragds_pipeline.records import (
    AskedRow,
    Candidate,
    Draft,
    Drop,
    FunnelCell,
    FunnelStep,
    Verdict,
)
from ragds_pipeline.resources import TABLES
from ragds_pipeline.storage.tables import TableFile

R = TypeVar("R")

WIDTH = 100
BAR = 24


@dataclass(frozen=True, slots=True)
class View:
    """The funnel of one revision."""

    steps: list[FunnelStep]
    cells: list[FunnelCell]
    stages: list[Stage]
    """With the drops, for examples; the stages after the filters hold no kinds of what they kept."""


class Tables:
    """The tables of one revision."""

    def __init__(self, settings: Settings, source_version: str) -> None:
        self._root, self._version = settings.data_dir / TABLES, source_version

    def path(self, asset: str) -> Path:
        """Return where the table of an asset lies, if it has been made."""
        return self._root / asset / f"{self._version}.parquet"

    def is_newer(self, asset: str, than: str) -> bool:
        """Return whether one table is there and was written after the other."""
        one, other = self.path(asset), self.path(than)
        return one.exists() and other.exists() and one.stat().st_mtime_ns >= other.stat().st_mtime_ns

    def records(self, record: type[R], *assets: str) -> list[R]:
        """Return the rows of some tables; of one that has not been made, none."""
        files = [TableFile(self.path(asset)) for asset in assets if self.path(asset).exists()]
        return [row for file in files for row in file.records(record)]


def view(settings: Settings, source_version: str) -> View:
    """Return the whole funnel, or what there is of it before anything was reviewed."""
    tables = Tables(settings, source_version)
    carried = {candidate.id for candidate in tables.records(Candidate, "carried_candidates")}
    stages = filter_stages(
        tables.records(AskedRow, "draft_requests", "top_up_requests"),
        tables.records(Draft, "drafts", "top_up_drafts"),
        tables.records(Drop, "draft_drops", "code_drops", "judge_drops", "top_up_drops"),
        enabled_judges(settings),
        tables.records(Verdict, "verdicts"),
        [candidate for candidate in tables.records(Candidate, "candidates") if candidate.id not in carried],
    )
    if not tables.is_newer("funnel", than="candidates") or not tables.path("funnel_cells").exists():
        return View([stage.step for stage in stages], cells(stages), stages)
    drops = tables.records(Drop, "golden_drops")
    steps = tables.records(FunnelStep, "funnel")
    for name in (REVIEW_STAGE, FREEZE_STAGE):
        own = [drop for drop in drops if drop.stage == name]
        whole = next((each for each in steps if each.stage == name), step(name, len(own), 0, own))
        stages.append(Stage(whole, {}, own))
    return View(steps, tables.records(FunnelCell, "funnel_cells"), stages)


def bars(steps: Sequence[FunnelStep]) -> list[str]:
    """Return the funnel as lines with a bar each."""
    most = max((each.came_in for each in steps), default=1) or 1
    lines = []
    for each in steps:
        bar = "█" * round(BAR * each.kept / most)
        lines.append(f"  {each.stage:<11} {each.came_in:>5} in  {each.kept:>5} kept  {each.dropped:>4} dropped  {bar}")
        if why := ", ".join(f"{reason.reason} {reason.count}" for reason in each.reasons):
            lines += textwrap.wrap(why, WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 12)
    return lines


def in_parts(found: View, by: By) -> list[str]:
    """Return the funnel by document, type or language as a table, or by reason with examples, for a terminal."""
    if by == "reason":
        return _reasons(found.stages)
    stages = [each.stage for each in found.steps]
    rows = [[by, "asked for", *stages]]
    split = parts(found.cells, stages, by)
    rows += [[part.name or "(not known)", *map(str, (part.came_in, *part.kept))] for part in split]
    sums = [sum(part.came_in for part in split), *(sum(part.kept[at] for part in split) for at in range(len(stages)))]
    rows.append(["all", *map(str, sums)])
    widths = [max(_columns(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        first = row[0] + " " * (widths[0] - _columns(row[0]))
        numbers = "  ".join(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append(f"  {first}  {numbers}")
    return lines


def _reasons(stages: Sequence[Stage]) -> list[str]:
    lines = []
    for each in by_reason(stages):
        lines.append(f"  {each.stage}: {each.reason} {each.count}")
        meaning = {**MEANINGS, **REVIEW, **FREEZE}.get(each.reason, "")
        lines += textwrap.wrap(meaning, WIDTH, initial_indent="    ", subsequent_indent="    ")
        for drop in each.examples:
            lines.append(f"    - {' '.join(drop.question.split())[:WIDTH] or '(no question came back)'}")
            lines.append(f"      {' '.join(drop.detail.split())[:WIDTH]}")
            lines.append(f"      ragds why {drop.item_id}" if drop.item_id else f"      {drop.document_path}")
    return lines or ["  nothing was dropped"]


def _columns(text: str) -> int:
    """Return how many columns a text takes in a terminal: East Asian characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
