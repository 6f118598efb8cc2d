"""The filters as assets: the code filter over the first round, then top-up rounds until the plan is met.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.assets import draft_facts, drop_facts, request_facts, stopped
from ragds_pipeline.claude import RepliesMissing
from ragds_pipeline.config import ConfigError
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.filters.top_up import room_for, top_up
from ragds_pipeline.kb.outline import load_outlines
from ragds_pipeline.records import AskedRow, Candidate, Draft, Drop, MissingRow, PlanRow
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.storage.metadata import Facts, markdown_table
from ragds_pipeline.storage.schemas import as_json, to_records, to_table
from ragds_pipeline.storage.tables import TableFile

GROUP = "filters"
OWNERS = ["team:data-engineering"]


def shareable_texts(documents: TableFile) -> Callable[[], Iterable[tuple[str, str]]]:
    """Return a function that yields (path, text) of every document that is not confidential.

    Confidential ones are left out so that no place in them becomes part of a golden set that is handed on.
    """

    def texts() -> Iterator[tuple[str, str]]:
        for batch in documents.batches(["path", "text", "confidential"]):
            for row in batch.to_pylist():
                if not row["confidential"]:
                    yield row["path"], row["text"]

    return texts


@dg.multi_asset(
    outs={
        "first_candidates": dg.AssetOut(
            description="Drafts of the first round that passed the code filter, with exact evidence spans.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "code_drops": dg.AssetOut(
            description="Drafts of the first round that the code filter dropped, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def code_filtered(
    project: Project, kb_documents: TableFile, kb_passages: TableFile, question_plan: pa.Table, drafts: pa.Table
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Locate evidence and drop by code what cannot be right. No call is made."""
    rows = to_records(Draft, drafts)
    plan = to_records(PlanRow, question_plan)
    outlines = load_outlines(kb_documents, kb_passages, {draft.document_path for draft in rows})
    settings = project.settings().filters
    found = code_filter(rows, outlines, shareable_texts(kb_documents), settings, room=room_for(plan))
    yield dg.MaterializeResult(
        asset_key="first_candidates",
        value=to_table(Candidate, found.candidates),
        metadata={"drafts in": len(rows), **candidate_facts(found.candidates)},
    )
    yield dg.MaterializeResult(
        asset_key="code_drops", value=to_table(Drop, found.drops), metadata=drop_facts(found.drops)
    )


@dg.multi_asset(
    outs={
        "candidates": dg.AssetOut(
            description="All candidates that passed the filters, first round and top-ups: what goes to review.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "top_up_drafts": dg.AssetOut(
            description="Questions of the top-up rounds as they came back.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "top_up_drops": dg.AssetOut(
            description="What the top-up rounds dropped, at reading and in the code filter, with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "top_up_requests": dg.AssetOut(
            description="Every request of the top-up rounds: what was asked, what came back, what it cost.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "missing_questions": dg.AssetOut(
            description="What is still missing of the plan after the last round, by document and type, and why.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
    pool="claude",
)  # fmt: skip
def topped_up(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    question_plan: pa.Table,
    first_candidates: pa.Table,
    draft_drops: pa.Table,
    code_drops: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask again, in a bounded number of rounds, for what the filters left open."""
    settings = project.settings()
    plan = to_records(PlanRow, question_plan)
    outlines = load_outlines(kb_documents, kb_passages, {row.document_path for row in plan})
    earlier_drops = to_records(Drop, draft_drops) + to_records(Drop, code_drops)
    first = to_records(Candidate, first_candidates)
    texts = shareable_texts(kb_documents)
    try:
        claude = project.claude(context, settings)
        done = top_up(plan, first, earlier_drops, outlines, texts, claude, settings, context.log.info)
        claude.close()
    except (RepliesMissing, ConfigError) as error:
        raise stopped(error) from error
    drafts = [draft for made in done.rounds for draft in made.drafts]
    asked = [row for made in done.rounds for row in made.asked]
    absent = [as_json(row) for row in done.missing]
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "candidates": (Candidate, done.candidates, candidate_facts(done.candidates)),
        "top_up_drafts": (Draft, drafts, {"rounds": len(done.rounds), **draft_facts(drafts)}),
        "top_up_drops": (Drop, done.drops, drop_facts(done.drops)),
        "top_up_requests": (AskedRow, asked, request_facts(asked)),
        "missing_questions": (
            MissingRow, done.missing,
            {"questions missing": sum(row.missing for row in done.missing), "missing": markdown_table(absent)},
        ),
    }  # fmt: skip
    for key, (record, rows, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, rows), metadata=facts)


def candidate_facts(candidates: Sequence[Candidate]) -> Facts:
    """Return the metadata of a table of candidates."""
    rows = [
        {"question": c.question[:160], "evidence": c.evidence[0].content[:120], "chunk": c.chunk_id}
        for c in candidates[:20]
    ]
    places = sum(len(e.alternatives) for c in candidates for e in c.evidence)
    return {"candidates": len(candidates), "alternative places": places, "preview": markdown_table(rows)}


ASSETS = [code_filtered, topped_up]
