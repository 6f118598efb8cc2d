"""The no_answer set's part of the summary for a terminal: its funnel, what it cost, its sheet."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from ragds_pipeline.filters.whole_kb import STAGE as KB_STAGE
from ragds_pipeline.records import AskedRow, CostRow, Drop, FunnelStep, MissingRow
from ragds_pipeline.records_no_answer import KbAnswer
from ragds_pipeline.storage.metadata import dollars
from ragds_pipeline.storage.schemas import to_records

Get = Callable[[str], pa.Table | None]
"""Returns an asset's table of the revision, or None where it has not been made."""

REQUESTS = ("no_answer_requests", "no_answer_top_up_requests")
ANSWERS = ("no_answer_answers", "no_answer_correction_answers")


def no_answer_lines(get: Get, reviewed: bool) -> list[str]:
    """Return what the summary says of the set; nothing where none is planned and none was ever made.

    ``reviewed`` says whether the funnel was drawn up after the candidates that there are now.
    """
    plan, candidates = get("no_answer_plan"), get("no_answer_candidates")
    planned = 0 if plan is None else sum(plan.column("planned").to_pylist())
    if candidates is None or not (planned or candidates.num_rows):
        return [] if not planned else [f"No_answer set (planned: {planned} near misses): not checked yet: ragds run"]
    proposed = _rows(get, "no_answer_proposals")
    lines = [f"No_answer set (planned: {planned} near misses; proposed by the main set: {proposed})"]
    if reviewed and (funnel := get("no_answer_funnel")) is not None:
        lines += [
            f"  {each.stage:<11} {each.came_in:>5} in  {each.kept:>5} kept  {each.dropped:>4} dropped  "
            + ", ".join(f"{reason.reason} {reason.count}" for reason in each.reasons)
            for each in to_records(FunnelStep, funnel)
        ]
    else:
        drops = get("no_answer_drops")
        found = [] if drops is None else [d for d in to_records(Drop, drops) if d.stage == KB_STAGE]
        answered = sum(drop.reason == "answered_in_kb" for drop in found)
        lines.append(f"  {candidates.num_rows} for review; {answered} dropped because a document answers them")
    if (table := get("no_answer_missing")) is not None and table.num_rows:
        rows = to_records(MissingRow, table)
        lines.append(f"  missing of the plan after all rounds: {sum(row.missing for row in rows)}")
        lines += [f"    {row.document_path}: {row.missing} ({row.reasons})"[:100] for row in rows[:8]]
    return [line.rstrip() for line in [*lines, *_money(get)]]


def _money(get: Get) -> list[str]:
    asked = [row for name in REQUESTS if (table := get(name)) is not None for row in to_records(AskedRow, table)]
    said = [row for name in ANSWERS if (table := get(name)) is not None for row in to_records(KbAnswer, table)]
    paid = sum(
        (Decimal(cost) for cost in [*(row.cost_usd for row in asked), *(row.cost_usd for row in said)]), Decimal(0)
    )
    lines = [f"  cost: {dollars(paid)} paid for {len(asked)} calls for questions and {len(said)} to the KB"]
    if (table := get("no_answer_cost_estimate")) is not None:
        rows = to_records(CostRow, table)
        most = sum((Decimal(row.list_cost_usd) for row in rows), Decimal(0))
        lines.append(f"  estimated at {dollars(most)} at most for {sum(row.calls for row in rows)} calls")
    return lines


def no_answer_files(get: Get, folder: Path) -> list[str]:
    """Return the lines about files: the sheet of this set, and how many items are frozen."""
    lines = []
    sheets = sorted(folder.glob("no_answer*.xlsx"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    if sheets:
        lines.append(f"  no_answer sheet {sheets[-1]} ({_rows(get, 'no_answer_queue')} to decide; also as CSV)")
    return lines


def _rows(get: Get, asset: str) -> int:
    table = get(asset)
    return 0 if table is None else int(table.num_rows)
