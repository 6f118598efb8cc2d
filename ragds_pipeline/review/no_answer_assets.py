"""The no_answer set in review as assets: what changed questions came to, and the sheet of its own.

Its decisions come in with those of the main set (``review_decisions``): any returned sheet may lie in the inbox.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.assets import drop_facts
from ragds_pipeline.candidates.assets import open_door as open_claude
from ragds_pipeline.filters.no_answer_assets import answer_facts, whole_kb
from ragds_pipeline.filters.no_answer_check import Checked
from ragds_pipeline.records import Candidate, Drop, RevalidatedItem
from ragds_pipeline.records_no_answer import NO_ANSWER, KbAnswer, NoAnswerCandidate
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.review.assets import GROUP, OWNERS, decision_log
from ragds_pipeline.review.no_answer import (
    edited_questions,
    no_answer_rows,
    resolve_no_answer,
    with_no_answer_failure,
)
from ragds_pipeline.review.no_answer_corrections import check_corrections
from ragds_pipeline.review.no_answer_guide import GUIDE
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.review.standing import with_standing
from ragds_pipeline.storage.metadata import Facts, file_link, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile


@dg.multi_asset(
    outs={
        "no_answer_corrected": dg.AssetOut(
            description="Questions without an answer that reviewers changed, and that nothing in the KB answers.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_correction_drops": dg.AssetOut(
            description="Changed questions that were dropped or could not be checked; they are on the sheet again.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_correction_answers": dg.AssetOut(
            description="What each document that was asked says to each question that a reviewer changed.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
    pool="claude",
    deps=["review_decisions"],
)  # fmt: skip
def no_answer_corrections(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    candidates: pa.Table,
    revalidated_items: pa.Table,
    no_answer_candidates: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask the whole KB the questions that reviewers changed; what was asked before costs nothing."""
    settings = project.settings()
    decisions = with_standing(decision_log(settings).latest(), to_records(RevalidatedItem, revalidated_items))
    drafts = edited_questions(to_records(NoAnswerCandidate, no_answer_candidates), decisions)
    done = Checked()
    if drafts:
        main = [candidate.question for candidate in to_records(Candidate, candidates)]
        claude = open_claude(project, context)
        done = check_corrections(drafts, main, whole_kb(kb_documents, kb_passages), claude, settings)
        claude.close()
    passed: Facts = {"changed questions": len(drafts), "passed": len(done.candidates)}
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "no_answer_corrected": (NoAnswerCandidate, done.candidates, passed),
        "no_answer_correction_drops": (Drop, done.drops, drop_facts(done.drops)),
        "no_answer_correction_answers": (KbAnswer, done.answers, answer_facts(done.answers)),
    }
    for key, (record, rows, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, rows), metadata=facts)


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"csv", "xlsx"}, owners=OWNERS,
    code_version="1", deps=["review_decisions"],
)  # fmt: skip
def no_answer_queue(
    context: dg.AssetExecutionContext,
    project: Project,
    revalidated_items: pa.Table,
    no_answer_candidates: pa.Table,
    no_answer_corrected: pa.Table,
    no_answer_correction_drops: pa.Table,
) -> dg.MaterializeResult[pa.Table]:
    """Questions without an answer that still need a person; their own sheet is linked here."""
    settings = project.settings()
    found = to_records(NoAnswerCandidate, no_answer_candidates)
    decisions = with_standing(decision_log(settings).latest(), to_records(RevalidatedItem, revalidated_items))
    corrected = to_records(NoAnswerCandidate, no_answer_corrected)
    resolved = resolve_no_answer(found, decisions, corrected, to_records(Drop, no_answer_correction_drops))
    queue = sorted((c for c in found if c.id not in resolved.closed), key=lambda c: (c.document_path, c.id))
    shown = no_answer_rows(queue)
    shown |= {id_: with_no_answer_failure(shown[id_], decisions[id_], why) for id_, why in resolved.failed.items()}
    rows = list(shown.values())
    folder = SheetFolder.of(settings.data_dir, context.partition_key)
    facts: Facts = {"to decide": len(rows)}
    # Without such questions there is no sheet; one that was sent is replaced by what is left to decide.
    if rows or folder.sent(NO_ANSWER):
        csv, xlsx = folder.send(rows, NO_ANSWER, GUIDE)
        facts |= {
            "sheet (Excel)": file_link(xlsx),
            "sheet (CSV)": file_link(csv),
            "put the returned sheet into": file_link(folder.inbox),
            "then": "materialise freeze_job for this partition",
        }
    facts |= {
        "to decide, flagged for people": sum(candidate.flagged for candidate in queue),
        "to decide again: corrections that fail": len(resolved.failed),
        "decided before": len(found) - len(rows),
    }
    short = [{"question": row.question[:160], "nearest": row.chunk_id} for row in rows[:30]]
    facts["preview"] = markdown_table(short, empty="(nothing to decide)")
    return dg.MaterializeResult(value=to_table(ReviewRow, rows), metadata=facts)


ASSETS = [no_answer_corrections, no_answer_queue]
