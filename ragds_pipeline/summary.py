"""What a run came to, for a terminal: the funnel, the money, the files. Read from the tables, changed by nothing."""

from __future__ import annotations

import textwrap
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from ragds_pipeline.claude.pricing import PRICES_AS_OF
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.funnel import judge_steps, step
from ragds_pipeline.filters.judges import JUDGES
from ragds_pipeline.records import AskedRow, CostRow, Drop, FunnelStep, KbIssue, MissingRow, Verdict
from ragds_pipeline.resources import TABLES
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.storage.metadata import dollars
from ragds_pipeline.storage.schemas import to_records
from ragds_pipeline.storage.tables import TableFile
from ragds_pipeline.summary_no_answer import no_answer_files, no_answer_lines

_WIDTH = 100
_BAR = 24


def summary(settings: Settings, source_version: str) -> str:
    """Return the summary of one revision; parts that have not been made yet say so."""
    tables = _Tables(settings.data_dir / TABLES, source_version)
    lines = [f"Revision {source_version} of {settings.kb_dir}", *_documents(tables), ""]
    lines += _funnel(tables)
    if own := no_answer_lines(tables.get, tables.is_newer("no_answer_funnel", than="no_answer_candidates")):
        lines += ["", *own]
    lines += ["", *_money(settings, tables), "", *_files(settings, tables, source_version)]
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


def _funnel(tables: _Tables) -> list[str]:
    plan = tables.get("question_plan")
    if plan is None:
        return ["Nothing has been planned yet: ragds run"]
    planned = sum(plan.column("planned").to_pylist())
    lines = [f"Funnel (planned: {planned} questions)"]
    if not tables.is_newer("candidates", than="question_plan"):
        return [*lines, "  the last run did not get through the filters; its error says why (ragds run, or the UI)"]
    steps = _steps(tables)
    most = max((each.came_in for each in steps), default=1) or 1
    for each in steps:
        bar = "█" * round(_BAR * each.kept / most)
        lines.append(f"  {each.stage:<11} {each.came_in:>5} in  {each.kept:>5} kept  {each.dropped:>4} dropped  {bar}")
        if why := ", ".join(f"{reason.reason} {reason.count}" for reason in each.reasons):
            lines += textwrap.wrap(why, _WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 12)
    missing = to_records(MissingRow, table) if (table := tables.get("missing_questions")) is not None else []
    if missing:
        lines.append(f"  missing of the plan after all rounds: {sum(row.missing for row in missing)}")
        lines += [f"    {row.document_path}, {row.type}: {row.missing} ({row.reasons})"[:_WIDTH] for row in missing[:8]]
        if len(missing) > 8:
            lines.append(f"    … and {len(missing) - 8} more in the table missing_questions")
    return lines


def _steps(tables: _Tables) -> list[FunnelStep]:
    """Return the whole funnel, or as far as it goes before anything was reviewed."""
    if (table := tables.get("funnel")) is not None and tables.is_newer("funnel", than="candidates"):
        return to_records(FunnelStep, table)
    drops = [d for name in ("draft_drops", "code_drops", "judge_drops", "top_up_drops") for d in _records(tables, name)]
    made = tables.rows("drafts") + tables.rows("top_up_drafts")
    unread = [d for d in drops if d.stage == "generate"]
    by_code = [d for d in drops if d.stage == "code"]
    said = to_records(Verdict, table) if (table := tables.get("verdicts")) is not None else []
    asked = [judge for judge in JUDGES if any(verdict.stage == judge.name for verdict in said)]
    judged = judge_steps(asked, said, drops)
    return [
        step("generate", made + len(unread), made, unread),
        step("code", made, judged[0].came_in if judged else tables.rows("candidates"), by_code),
        *judged,
    ]


def _records(tables: _Tables, asset: str) -> list[Drop]:
    table = tables.get(asset)
    return [] if table is None else to_records(Drop, table)


def _money(settings: Settings, tables: _Tables) -> list[str]:
    asked = [
        row
        for name in ("draft_requests", "top_up_requests")
        if (table := tables.get(name)) is not None
        for row in to_records(AskedRow, table)
        if row.reply != "not_sent"
    ]
    paid = sum((Decimal(row.cost_usd) for row in asked), Decimal(0))
    kept = tables.rows("golden_items") or tables.rows("candidates")
    each = f", {dollars(paid / kept)} a kept item" if kept and paid else ""
    lines = [f"Cost: {dollars(paid)} paid for {len(asked)} calls{each}"]
    if (table := tables.get("cost_estimate")) is not None:
        for row in to_records(CostRow, table):
            lines.append(
                f"  The first round of {row.calls} calls is estimated at {dollars(Decimal(row.list_cost_usd))} "
                f"with {row.model} (prices of {PRICES_AS_OF}; cap {dollars(settings.claude.budget_usd)} a run)."
            )
    if asked and settings.claude.backend == "file":
        lines.append("  The replies are recordings; nothing was sent and nothing was paid.")
    return lines


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
