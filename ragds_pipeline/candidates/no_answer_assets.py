"""The no_answer set's first stage as assets: how many near misses from which document, and what came back.

What belongs here: asking for questions. Whether the KB answers them is a filter (``filters.no_answer_assets``).
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.assets import OWNERS, askable, drop_facts, outlines_to_ask, request_facts, stopped
from ragds_pipeline.candidates.assets import open_door as open_claude
from ragds_pipeline.candidates.no_answer import NearMisses, generate
from ragds_pipeline.candidates.no_answer_plan import Question, open_plan, plan_no_answer_revision, questions_there
from ragds_pipeline.candidates.revision_plan import is_first
from ragds_pipeline.claude import RepliesMissing
from ragds_pipeline.config import ConfigError
from ragds_pipeline.records import AskedRow, DocumentChange, Drop, PlanRow
from ragds_pipeline.records_no_answer import NoAnswerCandidate, NoAnswerDraft
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.storage.metadata import Facts, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile, preview

GROUP = "candidates"


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS,
    code_version="2",
)  # fmt: skip
def no_answer_plan(
    project: Project,
    kb_documents: TableFile,
    kb_changes: pa.Table,
    carried_no_answer: pa.Table,
    no_answer_to_ask: pa.Table,
) -> dg.MaterializeResult[pa.Table]:
    """How many questions without an answer are wanted of which document; empty where none are. In a later revision
    what came over counts, and what is missing is asked for from new and changed text."""
    settings = project.settings()
    changes, there = to_records(DocumentChange, kb_changes), came_over(carried_no_answer, no_answer_to_ask)
    try:
        rows = plan_no_answer_revision(settings.plan, askable(kb_documents), there, changes)
    except ConfigError as error:
        raise stopped(error) from error
    table = to_table(PlanRow, rows)
    return dg.MaterializeResult(
        value=table,
        metadata={
            "questions planned": sum(row.planned for row in rows),
            "questions asked for": settings.plan.no_answer,
            "come over from the last frozen set": len(there),
            "to be asked for now": sum(row.planned for row in open_plan(rows, there)),
            "asked about": "the whole KB" if is_first(changes) else "new and changed passages",
            "plan": markdown_table(preview(table, ["document_path", "language", "planned"], rows=100)),
        },
    )


def came_over(carried: pa.Table, to_ask: pa.Table) -> list[Question]:
    """Return the questions of the last frozen set: those that are carried, and those that are asked again."""
    return [*to_records(NoAnswerCandidate, carried), *to_records(NoAnswerDraft, to_ask)]


@dg.multi_asset(
    outs={
        "no_answer_drafts": dg.AssetOut(
            description="Near misses of the first round as they came back, each with what the document leaves out.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_draft_drops": dg.AssetOut(
            description="What could not be read of these replies or did not come back, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_requests": dg.AssetOut(
            description="Every request for near misses of the first round: what was asked, what came, what it cost.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
    pool="claude",
)  # fmt: skip
def near_misses(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    kb_changes: pa.Table,
    carried_no_answer: pa.Table,
    no_answer_to_ask: pa.Table,
    no_answer_plan: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask Claude for questions that sound as if a document answered them, and that it does not answer."""
    settings = project.settings()
    there = came_over(carried_no_answer, no_answer_to_ask)
    plan = open_plan(to_records(PlanRow, no_answer_plan), there)
    made = NearMisses()
    if plan:
        outlines = outlines_to_ask(kb_documents, kb_passages, kb_changes, plan)
        claude = open_claude(project, context)
        try:
            made = generate(plan, outlines, questions_there(there), claude, settings)
        except RepliesMissing as error:
            raise stopped(error) from error
        finally:
            claude.close()
    for key, table, facts in (
        ("no_answer_drafts", to_table(NoAnswerDraft, made.drafts), no_answer_draft_facts(made.drafts)),
        ("no_answer_draft_drops", to_table(Drop, made.drops), drop_facts(made.drops)),
        ("no_answer_requests", to_table(AskedRow, made.asked), request_facts(made.asked)),
    ):
        yield dg.MaterializeResult(asset_key=key, value=table, metadata=facts)


def no_answer_draft_facts(drafts: Sequence[NoAnswerDraft]) -> Facts:
    """Return the metadata of a table of drafts of this set."""
    rows = [
        {"document": d.document_path, "from": d.origin, "question": d.question[:160], "missing": d.missing[:160]}
        for d in drafts[:20]
    ]
    return {"drafts": len(drafts), "preview": markdown_table(rows)}


ASSETS = [no_answer_plan, near_misses]
