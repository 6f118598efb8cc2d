"""What a run came to, for a terminal: the funnel, the money, the files. Read from the tables, changed by nothing."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from ragds_pipeline.claude.pricing import PRICES_AS_OF
from ragds_pipeline.claude.spending import CallSum, books_of, total
from ragds_pipeline.config import Settings
from ragds_pipeline.costs.sums import spent_rows
from ragds_pipeline.funnel_view import WIDTH, bars, view
from ragds_pipeline.records import CostRow, KbIssue, MissingRow, Outcome, RevalidatedItem, SpentRow
from ragds_pipeline.records_no_answer import NO_ANSWER
from ragds_pipeline.resources import TABLES
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.storage.metadata import dollars
from ragds_pipeline.storage.schemas import to_records
from ragds_pipeline.storage.tables import TableFile
from ragds_pipeline.summary_no_answer import no_answer_files, no_answer_lines


def summary(settings: Settings, source_version: str) -> str:
    """Return the summary of one revision; parts that have not been made yet say so."""
    tables = _Tables(settings.data_dir / TABLES, source_version)
    lines = [f"Revision {source_version} of {settings.kb_dir}", *_documents(tables), ""]
    lines += _held_against(tables)
    lines += _funnel(settings, source_version, tables)
    if own := no_answer_lines(tables.get, tables.is_newer("no_answer_funnel", than="no_answer_candidates")):
        lines += ["", *own]
    lines += ["", *_money(settings, tables, source_version), "", *_files(settings, tables, source_version)]
    return "\n".join(lines)


class _Tables:
    def __init__(self, root: Path, source_version: str) -> None:
        self._root, self._version = root, source_version

    def get(self, asset: str) -> pa.Table | None:
        path = self._root / asset / f"{self._version}.parquet"
        return TableFile(path).read() if path.exists() else None

    def is_newer(self, asset: str, than: str) -> bool:
        """Return whether one table is there and was written after the other."""
        one, other = (self._root / name / f"{self._version}.parquet" for name in (asset, than))
        return one.exists() and other.exists() and one.stat().st_mtime_ns >= other.stat().st_mtime_ns

    def rows(self, asset: str) -> int:
        table = self.get(asset)
        return 0 if table is None else int(table.num_rows)


def _documents(tables: _Tables) -> list[str]:
    """Return how many documents there are and, in words, which files were left out."""
    issues = to_records(KbIssue, table) if (table := tables.get("kb_issues")) is not None else []
    skipped = Counter(issue.reason for issue in issues if issue.skipped)
    lines = [f"{tables.rows('kb_documents')} documents"]
    if skipped:
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(skipped.items()))
        lines.append(f"  {sum(skipped.values())} files or kinds of files left out: {told} (table kb_issues)")
    return lines


def _held_against(tables: _Tables) -> list[str]:
    """Return what became of the last frozen set in this revision, and which questions went stale."""
    table = tables.get("revalidated_items")
    items = to_records(RevalidatedItem, table) if table is not None else []
    if not items:
        return []
    without = [item for item in items if item.type == NO_ANSWER]
    lines = [f"Held against {items[0].baseline}: {_outcomes([i for i in items if i.type != NO_ANSWER])}"]
    if without:
        lines.append(f"  questions without an answer: {_outcomes(without)}")
    for item in items:
        if item.outcome in (Outcome.TO_PEOPLE, Outcome.LOST):
            lines += textwrap.wrap(f"{item.id} {item.question}", WIDTH, initial_indent="  ", subsequent_indent="    ")
            lines.append(f"    {item.outcome.replace('_', ' ')}, {item.document_path}: {item.why}"[:WIDTH])
            if item.diff:
                lines.append(f"    {' '.join(item.diff.split())}"[:WIDTH])
    return [*lines, ""]


def _outcomes(items: Sequence[RevalidatedItem]) -> str:
    counts = Counter(item.outcome for item in items)
    told = [f"{counts[outcome]} {outcome.replace('_', ' ')}" for outcome in Outcome if counts[outcome]]
    return ", ".join(told) or "nothing"


def _funnel(settings: Settings, source_version: str, tables: _Tables) -> list[str]:
    plan = tables.get("question_plan")
    if plan is None:
        return ["Nothing has been planned yet: ragds run"]
    planned = sum(plan.column("planned").to_pylist())
    lines = [f"Funnel (planned: {planned} questions)"]
    if not tables.is_newer("candidates", than="question_plan"):
        return [*lines, "  the last run did not get through the filters; its error says why (ragds run, or the UI)"]
    lines += bars(view(settings, source_version).steps)
    missing = to_records(MissingRow, table) if (table := tables.get("missing_questions")) is not None else []
    if missing:
        lines.append(f"  missing of the plan after all rounds: {sum(row.missing for row in missing)}")
        lines += [f"    {row.document_path}, {row.type}: {row.missing} ({row.reasons})"[:WIDTH] for row in missing[:8]]
        if len(missing) > 8:
            lines.append(f"    … and {len(missing) - 8} more in the table missing_questions")
    return lines


def _money(settings: Settings, tables: _Tables, source_version: str) -> list[str]:
    """Return what the ledger says was paid, by stage, and what the run was estimated at."""
    books = books_of(settings, source_version)
    whole = total(books.calls) if books is not None else CallSum()
    kept = tables.rows("golden_items") or tables.rows("candidates")
    each = f", {dollars(whole.cost_usd / kept)} a kept item" if kept and whole.cost_usd else ""
    lines = [f"Cost: {dollars(whole.paid_usd)} paid for {whole.calls} calls ({whole.replayed} replayed){each}"]
    if whole.paid_usd != whole.cost_usd:
        lines.append(f"  Their replies cost {dollars(whole.cost_usd)} in all; other revisions paid the rest.")
    by_stage: dict[str, list[SpentRow]] = {}
    for row in spent_rows(books.calls) if books is not None else []:
        by_stage.setdefault(row.stage, []).append(row)
    for stage, rows in by_stage.items():
        paid, cost = sum((r.paid_usd for r in rows), Decimal(0)), sum((r.cost_usd for r in rows), Decimal(0))
        calls = sum(r.calls for r in rows)
        lines.append(f"  {stage:<11} {calls:>5} calls  {dollars(paid):>9} paid  {dollars(cost):>9} the replies cost")
    if books is not None and (owed := books.possibly_paid_usd + books.in_flight_usd):
        lines.append(f"  {dollars(owed)} more may have been paid: replies lost, or in a batch (ragds batches)")
    lines += _estimated(settings, tables)
    if whole.calls and settings.claude.backend == "file":
        lines.append("  The replies are recordings; nothing was sent and nothing was paid.")
    return lines


def _estimated(settings: Settings, tables: _Tables) -> list[str]:
    if (table := tables.get("cost_estimate")) is None or not table.num_rows:
        return []
    rows = to_records(CostRow, table)
    models = ", ".join(dict.fromkeys(row.model for row in rows))
    calls, cost = sum(row.calls for row in rows), sum((Decimal(row.list_cost_usd) for row in rows), Decimal(0))
    return [
        f"  A run of about {calls} calls is estimated at {dollars(cost)} with {models} (prices of {PRICES_AS_OF}; cap "
        f"{dollars(settings.claude.budget_usd)} a run)."
    ]


def _files(settings: Settings, tables: _Tables, source_version: str) -> list[str]:
    lines = ["Files"]
    folder = SheetFolder.of(settings.data_dir, source_version)
    if (queue := tables.get("review_queue")) is not None:
        sheets = sorted(folder.root.glob("review*.xlsx"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        place = sheets[-1] if sheets else folder.root
        lines.append(f"  review sheet  {place} ({queue.num_rows} to decide; also as CSV)")
    lines += no_answer_files(tables.get, folder.root)
    released = settings.data_dir / "golden" / source_version
    snapshots = [path for path in sorted(released.glob("snapshot-*")) if path.name[9:].isdigit()]
    if snapshots:
        without = tables.rows("no_answer_items")
        lines.append(
            f"  snapshot      {snapshots[-1]} ({tables.rows('golden_items')} items, {without} without an answer)"
        )
    else:
        lines.append("  snapshot      none yet: ragds import <sheet>, then ragds freeze")
    if (views := settings.data_dir / "ragds.duckdb").exists():
        lines.append(f"  tables        {views} (read-only views; every drop with its reason)")
    return lines
