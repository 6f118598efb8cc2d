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
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.assets import shareable_texts
from ragds_pipeline.filters.claude_filter import enabled_judges
from ragds_pipeline.filters.funnel import as_markdown, judge_steps, step
from ragds_pipeline.filters.judges import rubric_version
from ragds_pipeline.golden.accept import accept
from ragds_pipeline.golden.coverage import by_document, by_language_and_type, coverage
from ragds_pipeline.golden.items import prepare
from ragds_pipeline.golden.latest import mark_latest
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
    Decision,
    Drop,
    FunnelStep,
    GivenId,
    GoldenItem,
    MissingRow,
    PlanRow,
    Verdict,
)
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.storage.metadata import Facts, file_link, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile
from ragds_pipeline.storage.views import write_views

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
            description="In and out of every stage, from questions asked for to items frozen; it must add up.",
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
    given, alike = registry_of(settings).entries(), settings.filters.duplicate_score
    ready = prepare(accepted.items, given, context.partition_key, settings.golden, said, alike)
    asked = to_records(AskedRow, draft_requests) + to_records(AskedRow, top_up_requests)
    filter_drops = [d for t in (draft_drops, code_drops, judge_drops, top_up_drops) for d in to_records(Drop, t)]
    made = drafts.num_rows + top_up_drafts.num_rows
    judged = judge_steps(enabled_judges(settings), said, filter_drops)
    steps = [
        step(
            "generate", sum(max(row.asked, row.drafts + row.drops) for row in asked), made,
            [d for d in filter_drops if d.stage == "generate"], _rounds(asked),
        ),
        step("code", made, judged[0].came_in if judged else len(found), [d for d in filter_drops if d.stage == "code"]),
        *judged,
        accepted.step,
        ready.step,
    ]  # fmt: skip
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "golden_items": (GoldenItem, ready.items, {"items": len(ready.items), "preview": _preview(ready.items)}),
        "golden_ids": (GivenId, ready.given, {"new ids": len(ready.given)}),
        "golden_drops": (Drop, drops := accepted.drops + ready.drops, drop_facts(drops)),
        "funnel": (FunnelStep, steps, {"funnel": dg.MetadataValue.md(as_markdown(steps))}),
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
        no_answer=(),
        texts=texts(kb_documents, paths),
        funnel=to_records(FunnelStep, funnel),
        missing=to_records(MissingRow, missing_questions),
        versions=_versions(settings, items, to_records(PlanRow, question_plan)),
    )
    given = to_records(GivenId, golden_ids)
    frozen = freeze(contents, settings.data_dir / "golden", lambda: register(registry_of(settings), given))
    mark_latest(settings.data_dir / "golden", context.partition_key, frozen)
    rows = [{"id": i.id, "split": i.split, "question": i.question[:160], "answer": i.answer[:160]} for i in items[:20]]
    return dg.MaterializeResult(
        value=golden_items,
        metadata={
            "items": len(items),
            "held out": sum(item.split == "held_out" for item in items),
            "no_answer items": 0,
            "snapshot": frozen.number,
            "new snapshot": frozen.created,
            "folder": file_link(frozen.path),
            "manifest": file_link(frozen.path / "manifest.json"),
            "funnel": dg.MetadataValue.md(as_markdown(contents.funnel)),
            "preview": markdown_table(rows),
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
        write_views(project.settings().data_dir)  # a convenience for people; never what a run fails for
    return dg.MaterializeResult(
        value=table,
        metadata={
            "frozen, by language and type": markdown_table(by_language_and_type(table)),
            "by document": markdown_table(by_document(table)),
        },
    )


def _rounds(asked: Sequence[AskedRow]) -> str:
    rounds = 1 + max((row.round for row in asked), default=0)
    return f"{rounds} round{'s' if rounds > 1 else ''}"


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
