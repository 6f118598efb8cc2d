"""The no_answer set as items ready to be frozen, with a funnel and drops of its own. They are frozen by ``golden_set``.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.assets import drop_facts
from ragds_pipeline.filters.funnel import as_markdown, joined
from ragds_pipeline.filters.no_answer_check import judges_ambiguity
from ragds_pipeline.golden.assets import GROUP, OWNERS, changelog_facts, confidential_paths, registry_of
from ragds_pipeline.golden.no_answer import accept_no_answer, no_answer_steps, prepare_no_answer
from ragds_pipeline.golden.no_answer_changelog import asked_again_drops, frozen_first, no_answer_changelog
from ragds_pipeline.records import (
    AskedRow,
    ChangelogRow,
    Decision,
    Drop,
    FunnelStep,
    GivenId,
    GoldenItem,
    RevalidatedItem,
    Verdict,
)
from ragds_pipeline.records_no_answer import NoAnswerCandidate, NoAnswerDraft
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.review.no_answer import resolve_no_answer
from ragds_pipeline.storage.metadata import Facts, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile


@dg.multi_asset(
    outs={
        "no_answer_items": dg.AssetOut(
            description="Accepted questions without an answer, with refusal, id and side of the split.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_ids": dg.AssetOut(
            description="Ids given to such questions that had none; they are entered into the register at freezing.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_golden_drops": dg.AssetOut(
            description="Such questions that people did not keep or that could not be frozen, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_changelog": dg.AssetOut(
            description="What became of every such item of the frozen set before this revision, and what is new.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_funnel": dg.AssetOut(
            description="In and out of every stage of the no_answer set, from questions asked for to items frozen.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def no_answer_items(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    golden_items: pa.Table,
    revalidated_items: pa.Table,
    carried_no_answer: pa.Table,
    no_answer_to_ask: pa.Table,
    no_answer_drafts: pa.Table,
    no_answer_draft_drops: pa.Table,
    no_answer_requests: pa.Table,
    no_answer_proposals: pa.Table,
    no_answer_code_drops: pa.Table,
    no_answer_candidates: pa.Table,
    no_answer_verdicts: pa.Table,
    no_answer_drops: pa.Table,
    no_answer_top_up_drafts: pa.Table,
    no_answer_top_up_requests: pa.Table,
    no_answer_corrected: pa.Table,
    no_answer_correction_drops: pa.Table,
    review_decisions: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Apply the decisions, give ids and sides of the split, and draw up the funnel of this set."""
    settings = project.settings()
    came_over = to_records(RevalidatedItem, revalidated_items)
    found = frozen_first(to_records(NoAnswerCandidate, no_answer_candidates), came_over)
    decisions = {decision.candidate_id: decision for decision in to_records(Decision, review_decisions)}
    corrected = to_records(NoAnswerCandidate, no_answer_corrected)
    resolved = resolve_no_answer(found, decisions, corrected, to_records(Drop, no_answer_correction_drops))
    main = golden_items.column("question").to_pylist()
    alike, secret = settings.filters.duplicate_score, confidential_paths(kb_documents)
    accepted = accept_no_answer(found, resolved, decisions, main, alike, secret)
    verdicts, given = to_records(Verdict, no_answer_verdicts), registry_of(settings).entries()
    ready = prepare_no_answer(accepted.items, given, context.partition_key, settings.golden, verdicts, alike, came_over)
    tables = (no_answer_draft_drops, no_answer_code_drops, no_answer_drops)
    filter_drops = [drop for table in tables for drop in to_records(Drop, table)]
    asked = to_records(AskedRow, no_answer_requests) + to_records(AskedRow, no_answer_top_up_requests)
    made = no_answer_drafts.num_rows + no_answer_top_up_drafts.num_rows
    proposed, judged = no_answer_proposals.num_rows, judges_ambiguity(settings)
    steps = [
        *no_answer_steps(asked, made, proposed, verdicts, filter_drops, judged, no_answer_to_ask.num_rows),
        joined(accepted.step, carried_no_answer.num_rows),
        ready.step,
    ]
    drops = accepted.drops + ready.drops
    again = {draft.id for draft in to_records(NoAnswerDraft, no_answer_to_ask)}
    gone = [*asked_again_drops(filter_drops, again), *drops]
    changes = no_answer_changelog(came_over, ready.items, gone, [*found, *corrected]) if came_over else []
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "no_answer_items": (GoldenItem, ready.items, {"items": len(ready.items), "preview": _preview(ready.items)}),
        "no_answer_ids": (GivenId, ready.given, {"new ids": len(ready.given)}),
        "no_answer_golden_drops": (Drop, drops, drop_facts(drops)),
        "no_answer_changelog": (
            ChangelogRow,
            changes,
            changelog_facts(changes, came_over, context.partition_key),
        ),
        "no_answer_funnel": (FunnelStep, steps, {"funnel": dg.MetadataValue.md(as_markdown(steps))}),
    }
    for key, (record, values, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, values), metadata=facts)


def _preview(items: Sequence[GoldenItem]) -> dg.MarkdownMetadataValue:
    rows = [
        {"id": i.id, "split": i.split, "language": i.language, "question": i.question[:160], "answer": i.answer[:80]}
        for i in items[:40]
    ]
    return markdown_table(rows)


ASSETS = [no_answer_items]
