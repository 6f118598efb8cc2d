"""The golden set as assets: items ready to be frozen, with the checks that must hold, and the frozen set itself.

The blocking checks hang on ``golden_items``, so that a snapshot is only ever made of what passed them.
https://docs.dagster.io/guides/test/asset-checks
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg
import duckdb
import pyarrow as pa

from ragds_pipeline import __version__
from ragds_pipeline.candidates.assets import drop_facts
from ragds_pipeline.claude.spending import CallSum, books_of, total
from ragds_pipeline.claude.views import write_all_views
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.assets import shareable_texts
from ragds_pipeline.filters.breakdown import By, Stage, by_reason, cells, filter_stages, parts, stage_of
from ragds_pipeline.filters.claude_filter import enabled_judges
from ragds_pipeline.filters.funnel import as_markdown, joined
from ragds_pipeline.filters.funnel_report import (
    MEANINGS,
    examples_table,
    parts_table,
    picture,
    reasons_table,
    why_table,
)
from ragds_pipeline.filters.judges import rubric_version
from ragds_pipeline.golden.accept import REASONS as REVIEW_REASONS
from ragds_pipeline.golden.accept import accept
from ragds_pipeline.golden.changelog import as_markdown as changelog_page
from ragds_pipeline.golden.changelog import changelog, totals
from ragds_pipeline.golden.coverage import by_document, by_language_and_type, coverage
from ragds_pipeline.golden.items import REASONS as FREEZE_REASONS
from ragds_pipeline.golden.items import prepare
from ragds_pipeline.golden.registry import Registry
from ragds_pipeline.golden.snapshot import Contents, freeze, register
from ragds_pipeline.golden.verify import documents_of, nothing_confidential
from ragds_pipeline.kb.documents import texts
from ragds_pipeline.kb.normalise import NORMALISER_VERSION
from ragds_pipeline.kb.outline import load_outlines
from ragds_pipeline.kb.structure import STRUCTURE_VERSION
from ragds_pipeline.records import (
    AskedRow,
    Candidate,
    ChangelogRow,
    Decision,
    Draft,
    Drop,
    FunnelCell,
    FunnelStep,
    GivenId,
    GoldenItem,
    MissingRow,
    PlanRow,
    RevalidatedItem,
    Verdict,
)
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.review.standing import FROZEN
from ragds_pipeline.storage import svg
from ragds_pipeline.storage.metadata import Facts, dollars, file_link, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile

GROUP = "golden"
OWNERS = ["team:data-engineering"]


def registry_of(settings: Settings) -> Registry:
    """Return the project's register of golden ids."""
    return Registry(settings.data_dir / "golden" / "registry.jsonl")


def confidential_paths(documents: TableFile) -> set[str]:
    """Return the paths of the documents that are confidential now, whatever they were when they were asked about."""
    rows = documents.read(["path", "confidential"]).to_pylist()
    return {row["path"] for row in rows if row["confidential"]}


@dg.multi_asset(
    outs={
        "golden_items": dg.AssetOut(
            description="Accepted items with id and side of the split, ready to be frozen once the checks pass.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="2",
        ),
        "golden_ids": dg.AssetOut(
            description="Ids given to items that had none; they are entered into the register at freezing.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="2",
        ),
        "golden_drops": dg.AssetOut(
            description="Candidates that people did not keep or that could not be frozen, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "funnel": dg.AssetOut(
            description="In and out of every stage, by document, type, language and reason, with examples; it must add "
            "up.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="2",
        ),
        "changelog": dg.AssetOut(
            description="What became of every item of the frozen set before this revision, and what is new.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "funnel_cells": dg.AssetOut(
            description="The funnel in its smallest parts: one row a stage, document, type, language and fate.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def golden_items(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    revalidated_items: pa.Table,
    carried_candidates: pa.Table,
    drafts: pa.Table,
    draft_drops: pa.Table,
    draft_requests: pa.Table,
    code_drops: pa.Table,
    candidates: pa.Table,
    verdicts: pa.Table,
    judge_drops: pa.Table,
    top_up_drafts: pa.Table,
    top_up_drops: pa.Table,
    top_up_requests: pa.Table,
    review_decisions: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Apply the decisions, give ids and sides of the split, and draw up the funnel."""
    settings = project.settings()
    found = to_records(Candidate, candidates)
    decisions = {decision.candidate_id: decision for decision in to_records(Decision, review_decisions)}
    outlines = load_outlines(kb_documents, kb_passages, {candidate.document_path for candidate in found})
    secret = confidential_paths(kb_documents)
    accepted = accept(found, decisions, outlines, shareable_texts(kb_documents), settings.filters, secret)
    said = to_records(Verdict, verdicts)
    came_over = to_records(RevalidatedItem, revalidated_items)
    given, alike = registry_of(settings).entries(), settings.filters.duplicate_score
    ready = prepare(accepted.items, given, context.partition_key, settings.golden, said, alike, came_over)
    asked = to_records(AskedRow, draft_requests) + to_records(AskedRow, top_up_requests)
    filter_drops = [d for t in (draft_drops, code_drops, judge_drops, top_up_drops) for d in to_records(Drop, t)]
    made = to_records(Draft, drafts) + to_records(Draft, top_up_drafts)
    frozen = {item.provenance.candidate_id for item in ready.items}
    carried = {c.id for c in to_records(Candidate, carried_candidates)}
    new = [candidate for candidate in found if candidate.id not in carried]
    stages = [
        *filter_stages(asked, made, filter_drops, enabled_judges(settings), said, new),
        stage_of(joined(accepted.step, len(carried)), [c for c, _ in accepted.items], accepted.drops),
        stage_of(ready.step, [c for c, _ in accepted.items if c.id in frozen], ready.drops),
    ]
    steps, small = [stage.step for stage in stages], cells(stages)
    drops = accepted.drops + ready.drops
    frozen_before = [item for item in came_over if item.member == FROZEN]
    changes = changelog(frozen_before, ready.items, drops) if came_over else []
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "golden_items": (GoldenItem, ready.items, {"items": len(ready.items), "preview": _preview(ready.items)}),
        "golden_ids": (GivenId, ready.given, {"new ids": len(ready.given)}),
        "golden_drops": (Drop, drops, drop_facts(drops)),
        "funnel": (FunnelStep, steps, funnel_facts(stages, small)),
        "funnel_cells": (FunnelCell, small, {"kinds": len({(c.document_path, c.type, c.language) for c in small})}),
        "changelog": (ChangelogRow, changes, changelog_facts(changes, came_over, context.partition_key)),
    }
    for key, (record, values, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, values), metadata=facts)


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet", "jsonl"}, owners=OWNERS,
    code_version="1",
)  # fmt: skip
def golden_set(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    question_plan: pa.Table,
    missing_questions: pa.Table,
    golden_items: pa.Table,
    golden_ids: pa.Table,
    funnel: pa.Table,
    revalidated_items: pa.Table,
    changelog: pa.Table,
    no_answer_items: pa.Table,
    no_answer_ids: pa.Table,
    no_answer_funnel: pa.Table,
    no_answer_missing: pa.Table,
    no_answer_changelog: pa.Table,
) -> dg.MaterializeResult[pa.Table]:
    """The frozen golden set: an immutable snapshot of files, linked here."""
    settings = project.settings()
    items = to_records(GoldenItem, golden_items)
    if not items:
        remedy = "fill the review sheet, import it, and materialise freeze_job again"
        raise dg.Failure(f"nobody has kept anything yet, so there is nothing to freeze: {remedy}", allow_retries=False)
    if faults := nothing_confidential(items, confidential_paths(kb_documents)):
        remedy = "materialise golden_items again, which drops them"
        raise dg.Failure(f"{'; '.join(faults[:5])}: {remedy}", allow_retries=False)
    paths = {path for item in items for path in documents_of(item)}
    contents = Contents(
        source_version=context.partition_key,
        items=items,
        no_answer=to_records(GoldenItem, no_answer_items),
        texts=texts(kb_documents, paths),
        funnel=to_records(FunnelStep, funnel),
        missing=to_records(MissingRow, missing_questions),
        baseline=_baseline(revalidated_items),
        changelog=to_records(ChangelogRow, changelog) + to_records(ChangelogRow, no_answer_changelog),
        versions=_versions(settings, items, to_records(PlanRow, question_plan)),
        no_answer_funnel=to_records(FunnelStep, no_answer_funnel),
        no_answer_missing=to_records(MissingRow, no_answer_missing),
    )
    given = to_records(GivenId, golden_ids) + to_records(GivenId, no_answer_ids)
    frozen = freeze(contents, settings.data_dir / "golden", lambda: register(registry_of(settings), given))
    rows = [{"id": i.id, "split": i.split, "question": i.question[:160], "answer": i.answer[:160]} for i in items[:20]]
    return dg.MaterializeResult(
        value=golden_items,
        metadata={
            "items": len(items),
            "held out": sum(item.split == "held_out" for item in items),
            "no_answer items": no_answer_items.num_rows,
            "snapshot": frozen.number,
            "new snapshot": frozen.created,
            "folder": file_link(frozen.path),
            "manifest": file_link(frozen.path / "manifest.json"),
            "funnel": dg.MetadataValue.md(as_markdown(contents.funnel)),
            "preview": markdown_table(rows),
            **_cost(settings, context.partition_key, len(items)),
        },
    )


@dg.asset(
    name="coverage", partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP,
    kinds={"parquet", "duckdb"}, owners=OWNERS, code_version="1", deps=["golden_set"],
)  # fmt: skip
def coverage_of_kb(
    project: Project, kb_documents: TableFile, question_plan: pa.Table, candidates: pa.Table, golden_items: pa.Table
) -> dg.MaterializeResult[pa.Table]:
    """Planned, delivered and frozen questions by document, language and type: where the set has gaps."""
    documents = kb_documents.read(["path", "language", "confidential"])
    table = coverage(documents, question_plan, candidates, golden_items)
    with suppress(duckdb.Error, OSError):
        write_all_views(project.settings())  # a convenience for people; never what a run fails for
    return dg.MaterializeResult(
        value=table,
        metadata={
            "frozen, by language and type": markdown_table(by_language_and_type(table)),
            "by document": markdown_table(by_document(table)),
        },
    )


def _baseline(revalidated_items: pa.Table) -> str:
    """Return the frozen set that this revision was held against, or an empty text."""
    names = revalidated_items.column("baseline").to_pylist()
    return str(names[0]) if names else ""


def changelog_facts(rows: Sequence[ChangelogRow], came_over: Sequence[RevalidatedItem], version: str) -> Facts:
    """Return the metadata of a changelog: counts, and the page for people."""
    if not came_over:
        return {"note": "there is no frozen set before this revision"}
    return {**totals(rows), "changelog": dg.MetadataValue.md(changelog_page(rows, came_over[0].baseline, version))}


def funnel_facts(stages: Sequence[Stage], small: Sequence[FunnelCell]) -> Facts:
    """Return the metadata of the funnel: the whole, a picture, its parts, the reasons and examples of each."""
    steps = [stage.step for stage in stages]
    names = [each.stage for each in steps]
    reasons = by_reason(stages)
    names_of: tuple[By, ...] = ("document", "type", "language")
    by = {name: parts(small, names, name) for name in names_of}
    texts = {
        "funnel": as_markdown(steps),
        "picture": svg.as_markdown(picture(steps), "in and kept, by stage"),
        **{f"by {name}": parts_table(found, names, name) for name, found in by.items()},
        **{f"reasons by {name}": why_table(found, name) for name, found in by.items()},
        "by reason": reasons_table(reasons, {**MEANINGS, **REVIEW_REASONS, **FREEZE_REASONS}),
        "examples": examples_table(reasons),
    }
    return {name: dg.MetadataValue.md(text) for name, text in texts.items()}


def _cost(settings: Settings, partition: str, items: int) -> Facts:
    """Return what the snapshot cost. It is a fact of the ledger and no part of the snapshot's files, whose bytes must
    be the same whoever paid."""
    books = books_of(settings, partition)
    whole = total(books.calls) if books is not None else CallSum()
    return {
        "cost of the snapshot": dollars(whole.cost_usd),
        "cost of an item": dollars(whole.cost_usd / items),
        "paid for this revision": dollars(whole.paid_usd),
    }


def _preview(items: Sequence[GoldenItem]) -> dg.MarkdownMetadataValue:
    rows = [
        {"id": i.id, "split": i.split, "type": i.type, "language": i.language, "question": i.question[:160],
         "chunk": i.chunk_id}
        for i in items[:40]
    ]  # fmt: skip
    return markdown_table(rows)


def _versions(settings: Settings, items: list[GoldenItem], plan: list[PlanRow]) -> dict[str, object]:
    return {
        "ragds": __version__,
        "normaliser": NORMALISER_VERSION,
        "structure": STRUCTURE_VERSION,
        "models": sorted({model for item in items for model in item.provenance.models}),
        "prompts": sorted({version for item in items for version in item.provenance.prompt_versions}),
        "judges": {
            judge.name: {"rubric": rubric_version(judge), "model": settings.claude.models.judge}
            for judge in enabled_judges(settings)
        },
        "plan": {
            "settings": settings.plan.model_dump(mode="json"),
            "questions_planned": sum(row.planned for row in plan),
        },
        "split": settings.golden.model_dump(mode="json"),
    }


ASSETS = [golden_items, golden_set, coverage_of_kb]
