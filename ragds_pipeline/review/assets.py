"""Review as assets: the queue with its sheets, and the decisions from what came back.

https://docs.dagster.io/guides/build/assets
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pyarrow as pa
from pydantic import Field

from ragds_pipeline.config import Settings
from ragds_pipeline.filters.assets import shareable_texts
from ragds_pipeline.filters.audit import auditable, audited
from ragds_pipeline.kb.outline import load_outlines
from ragds_pipeline.records import Candidate, Decision, Drop, Keep, RevalidatedItem, Verdict
from ragds_pipeline.records_no_answer import NoAnswerCandidate
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.review.decision_log import DecisionLog
from ragds_pipeline.review.importing import ReviewState, SheetImport, import_sheets
from ragds_pipeline.review.no_answer import BothSets
from ragds_pipeline.review.queue import evidence_paths, judges_say, review_rows, still_open, with_failure
from ragds_pipeline.review.recheck import RECHECK, RECHECK_GUIDE, look_rows, recheck_rows
from ragds_pipeline.review.resolve import resolve
from ragds_pipeline.review.rows import RECHECK_COLUMNS, ReviewRow
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.review.standing import with_standing
from ragds_pipeline.storage.metadata import Facts, file_link, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile

GROUP = "review"
OWNERS = ["team:domain-experts"]

_SHOWN = 3
"""Problems named in a check's description; all of them are in its metadata."""


def decision_log(settings: Settings) -> DecisionLog:
    """Return the project's log of decisions."""
    return DecisionLog(settings.data_dir / "review" / "decisions")


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"csv", "xlsx"}, owners=OWNERS,
    code_version="3", deps=["review_decisions"],
)  # fmt: skip
def review_queue(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    revalidated_items: pa.Table,
    candidates: pa.Table,
    verdicts: pa.Table,
    judge_drops: pa.Table,
    top_up_drops: pa.Table,
) -> dg.MaterializeResult[pa.Table]:
    """Candidates that still need a person; the sheet to send out is linked here."""
    settings = project.settings()
    found = to_records(Candidate, candidates)
    came_over = to_records(RevalidatedItem, revalidated_items)
    decisions = with_standing(decision_log(settings).latest(), came_over)
    audit = audited(_drops(judge_drops, top_up_drops), settings.review, {candidate.id for candidate in found})
    to_audit = [candidate for candidate in audit if candidate.id not in decisions]
    unsettled = [c for c in found if c.id not in decisions or decisions[c.id].keep == Keep.FIX] + to_audit
    look = {item.now_candidate_id for item in came_over if item.look}
    to_look_at = [candidate for candidate in found if candidate.id in look]
    outlines = load_outlines(kb_documents, kb_passages, evidence_paths([*unsettled, *to_look_at]))
    resolved = resolve(found, decisions, outlines, shareable_texts(kb_documents), settings.filters)
    queue = still_open([*found, *to_audit], resolved.closed)
    said = judges_say(to_records(Verdict, verdicts))
    shown = review_rows(queue, outlines, settings.review.context_chars, said)
    shown |= {id_: with_failure(shown[id_], decisions[id_], why) for id_, why in resolved.failed.items()}
    stale = recheck_rows(shown, came_over)
    rows = [stale.get(id_, row) for id_, row in shown.items()]
    folder = SheetFolder.of(settings.data_dir, context.partition_key)
    csv, xlsx = folder.send([row for row in rows if row.id not in stale])
    links: Facts = {"sheet (Excel)": file_link(xlsx), "sheet (CSV)": file_link(csv)}
    marked = look_rows(found, outlines, came_over, settings.review.context_chars)
    if stale or marked:
        csv, xlsx = folder.send([*stale.values(), *marked], RECHECK, RECHECK_GUIDE, RECHECK_COLUMNS)
        links |= {"recheck sheet (Excel)": file_link(xlsx), "recheck sheet (CSV)": file_link(csv)}
    short = [{"question": r.question[:160], "chunk": r.chunk_id} for r in rows[:30]]
    return dg.MaterializeResult(
        value=to_table(ReviewRow, rows),
        metadata={
            "to decide": len(rows),
            **links,
            "put the returned sheet into": file_link(folder.inbox),
            "then": "materialise freeze_job for this partition",
            "to decide, for the audit of the judges": len(to_audit),
            "to decide, with split votes": sum(bool(row.judges) for row in rows),
            "to decide again: corrections that fail": len(resolved.failed),
            "to recheck": len(stale),
            "carried over, marked for a look": len(marked),
            "decided before": len(found) + len(to_audit) - len(rows),
            "preview": markdown_table(short, empty="(nothing to decide)"),
        },
    )


class SheetsConfig(dg.Config):
    """Which sheets to import."""

    sheets: list[str] = Field(default_factory=list)
    """Paths of further sheets, besides those in the inbox."""
    reviewer: str = ""
    """Who decided; by default ``review.reviewer`` of ragds.yaml."""


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS,
    code_version="2",
    check_specs=[dg.AssetCheckSpec(
        "sheets_importable", asset="review_decisions", blocking=True, partitions_def=kb_revisions,
        description="Every returned sheet could be imported; what is wrong is listed with its line.",
    )],
)  # fmt: skip
def review_decisions(
    context: dg.AssetExecutionContext,
    config: SheetsConfig,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    revalidated_items: pa.Table,
    candidates: pa.Table,
    judge_drops: pa.Table,
    top_up_drops: pa.Table,
    no_answer_candidates: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Import returned sheets into the decision log; a sheet with an error is not imported at all."""
    settings = project.settings()
    log = decision_log(settings)
    found = to_records(Candidate, candidates)
    came_over = to_records(RevalidatedItem, revalidated_items)
    without = to_records(NoAnswerCandidate, no_answer_candidates)
    # All that could be audited, not the sample of now: a sheet stays importable when the share or the seed changes.
    audit = auditable(_drops(judge_drops, top_up_drops), {candidate.id for candidate in found})
    decisions = with_standing(log.latest(), came_over)
    state = BothSets(_state(settings, found, audit, kb_documents, kb_passages, decisions), without)
    paths = SheetFolder.of(settings.data_dir, context.partition_key).returned() + [Path(p) for p in config.sheets]
    reviewer = config.reviewer or settings.review.reviewer
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    sheets = import_sheets(paths, state, log.imported(), reviewer, now)
    good = [sheet for sheet in sheets if not sheet.errors and not sheet.before]
    added = [sheet for sheet in good if log.append(sheet.decisions, sheet.sha256)]
    latest = with_standing(log.latest(), came_over)
    known, audited_ids = state.rows.keys(), {candidate.id for candidate in audit}
    counting = [decision for id_, decision in latest.items() if id_ in known]
    decided = len(state.resolved(latest).closed)
    failed = [sheet for sheet in sheets if sheet.errors]
    errors = [problem.message for sheet in failed for problem in sheet.errors]
    yield dg.MaterializeResult(
        value=to_table(Decision, counting),
        metadata={
            "candidates": len(known) - len(audit),
            "of these without an answer": len(without),
            "decided": decided,
            "open": len(known) - len(audit) - decided,
            **{f"decided: {kind}": sum(d.keep == kind for d in counting) for kind in ("keep", "fix", "drop")},
            "of these, audited drops of the judges": sum(d.candidate_id in audited_ids for d in counting),
            "sheets imported now": len(added),
            "sheets": markdown_table([_facts(sheet, sheet in added) for sheet in sheets], empty="(none in the inbox)"),
            "problems": markdown_table(_problems(sheets), empty="(none)"),
        },
        check_results=[
            dg.AssetCheckResult(
                passed=not failed,
                check_name="sheets_importable",
                description="; ".join(errors[:_SHOWN]) + (f"; {more} more" if (more := len(errors[_SHOWN:])) else ""),
                metadata={"problems": markdown_table(_problems(failed), empty="(none)")},
            )
        ],
    )


def _drops(*tables: pa.Table) -> list[Drop]:
    return [drop for table in tables for drop in to_records(Drop, table)]


def _state(
    settings: Settings,
    candidates: list[Candidate],
    audit: list[Candidate],
    documents: TableFile,
    passages: TableFile,
    decisions: Mapping[str, Decision],
) -> ReviewState:
    shown = [*candidates, *audit]
    outlines = load_outlines(documents, passages, evidence_paths(shown))
    rows = review_rows(shown, outlines, settings.review.context_chars)
    by_id = {c.id: c for c in candidates}
    return ReviewState(by_id, rows, outlines, shareable_texts(documents), settings.filters, decisions)


def _facts(sheet: SheetImport, added: bool) -> dict[str, object]:
    state = "not imported: errors" if sheet.errors else "imported" if added else "imported before"
    return {"sheet": sheet.name, "decisions": len(sheet.decisions), "left open": sheet.undecided, "state": state}


def _problems(sheets: list[SheetImport]) -> list[dict[str, object]]:
    return [
        {"sheet": s.name, "line": p.line, "column": p.column, "severity": str(p.severity), "problem": p.message}
        for s in sheets
        for p in s.problems
    ]


ASSETS = [review_queue, review_decisions]
