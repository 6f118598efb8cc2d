"""Re-validation as assets: what the documents' changes did to the last frozen set, and the report on it.

https://docs.dagster.io/guides/build/assets
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
import pyarrow as pa

from ragds_pipeline.collecting import no_collecting
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.retrieval import PassageText
from ragds_pipeline.golden.baseline import Baseline, load_baseline, text_hashes
from ragds_pipeline.golden.changelog import as_markdown, totals
from ragds_pipeline.golden.comparison import compared
from ragds_pipeline.golden.no_answer_report import no_answer_section
from ragds_pipeline.golden.no_answer_revalidate import (
    KbNow,
    PassageNow,
    RevalidatedQuestions,
    held_questions,
    settle_questions,
)
from ragds_pipeline.golden.placing import placed
from ragds_pipeline.golden.registry import Registry
from ragds_pipeline.golden.report import RevisionFacts, report
from ragds_pipeline.golden.revalidate import OPEN, Held, Revalidated, anchored, held_items, settle
from ragds_pipeline.golden.snapshot import SnapshotDamaged
from ragds_pipeline.kb.changes import by_status, compare, first_revision
from ragds_pipeline.records import (
    AnchorEvent,
    Candidate,
    DocumentChange,
    Drop,
    Keep,
    MissingRow,
    Outcome,
    Passage,
    RevalidatedItem,
)
from ragds_pipeline.records_no_answer import NoAnswerCandidate, NoAnswerDraft
from ragds_pipeline.resources import TABLES, Project, kb_revisions
from ragds_pipeline.review.assets import decision_log
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.review.standing import FROZEN
from ragds_pipeline.storage.metadata import Facts, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile

GROUP, REVIEW, GOLDEN = "revalidation", "review", "golden"
"""The report ends the run of a revision, so it stands with the sheets; a comparison is about frozen sets."""
OWNERS = ["team:data-engineering"]


@dg.multi_asset(
    name="golden_revalidation",
    outs={
        "kb_changes": dg.AssetOut(
            description="What became of each document since the last frozen set, and which passages are new.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "anchor_events": dg.AssetOut(
            description="Where every evidence span of the last frozen set stands now, how sure that is, what changed.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "revalidated_items": dg.AssetOut(
            description="Every item of the last frozen sets: carried, re-anchored, to people, lost, or asked again.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "carried_candidates": dg.AssetOut(
            description="What comes over into this revision, at its place in the documents of now.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "carried_no_answer": dg.AssetOut(
            description="Questions without an answer that nothing new comes near: they come over and are not asked.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_to_ask": dg.AssetOut(
            description="Questions without an answer that something new may answer: the whole KB is asked again.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def golden_revalidation(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_sections: TableFile,
    kb_passages: TableFile,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Hold the last frozen set and its no_answer set against the documents of this revision. No call is made."""
    with no_collecting():
        yield from _golden_revalidation(context, project, kb_documents, kb_sections, kb_passages)


def _golden_revalidation(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_sections: TableFile,
    kb_passages: TableFile,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    settings = project.settings()
    try:
        baseline = load_baseline(settings.data_dir / "golden", settings.data_dir / TABLES, context.partition_key)
    except SnapshotDamaged as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    if baseline is None:
        everything = first_revision(text_hashes(kb_documents))
        yield from _results("", everything, [], Revalidated(), RevalidatedQuestions())
        return
    there = f"{len(baseline.items)} frozen items, {len(baseline.no_answer)} without an answer"
    context.log.info(f"held against {baseline.release.name}: {there}")
    changes = _changes(baseline, kb_documents, kb_passages)
    held = _held(settings, baseline)
    now = text_hashes(kb_documents, confidential=False)
    events, outcomes = anchored(held, baseline, kb_documents, now, context.partition_key, kb_sections)
    places = placed(events, kb_documents, kb_passages)
    secret = text_hashes(kb_documents).keys() - now.keys()
    settled = settle(held, events, outcomes, places, context.partition_key, baseline.release.name, secret)
    questions = _questions(settings, baseline, changes, kb_documents, kb_passages, context.partition_key)
    yield from _results(baseline.release.name, changes, events, settled, questions)


def _held(settings: Settings, baseline: Baseline) -> list[Held]:
    latest = decision_log(settings).latest()
    register = Registry(settings.data_dir / "golden" / "registry.jsonl").entries()

    def dropped(candidate: Candidate) -> bool:
        decision = latest.get(candidate.id)
        return decision is not None and decision.keep == Keep.DROP

    return held_items(baseline.items, baseline.candidates, dropped, register)


def _questions(
    settings: Settings,
    baseline: Baseline,
    changes: Sequence[DocumentChange],
    documents: TableFile,
    passages: TableFile,
    source_version: str,
) -> RevalidatedQuestions:
    """Hold the no_answer set against the documents of this revision."""
    latest = decision_log(settings).latest()
    dropped = {id_ for id_, decision in latest.items() if decision.keep == Keep.DROP}
    register = Registry(settings.data_dir / "golden" / "registry.jsonl").entries()
    now = text_hashes(documents).keys()

    def texts(paths: Collection[str] | None) -> Iterator[PassageText]:
        columns = ["id", "document_path", "content"]
        batches = passages.batches(columns) if paths is None else [passages.where("document_path", paths, columns)]
        return (PassageText(**row) for batch in batches for row in batch.to_pylist())

    def places() -> Iterator[PassageNow]:
        batches = passages.batches(["id", "document_path", "start_char"])
        return (PassageNow(**row) for batch in batches for row in batch.to_pylist())

    kb = KbNow(
        changes=changes,
        confidential=frozenset(now - text_hashes(documents, confidential=False).keys()),
        confidential_before=baseline.confidential,
        places=places,
        passages=texts,
    )
    held = held_questions(
        baseline.no_answer, baseline.no_answer_candidates, baseline.no_answer_held, dropped, register,
        baseline.documents.keys() | now,
    )  # fmt: skip
    return settle_questions(held, kb, dropped, source_version, baseline.release.name)


def _changes(baseline: Baseline, documents: TableFile, passages: TableFile) -> list[DocumentChange]:
    def cut(paths: Iterable[str]) -> list[Passage]:
        return to_records(Passage, passages.where("document_path", paths))

    return compare(baseline.documents, text_hashes(documents), baseline.texts, cut, baseline.release.source_version)


def _results(
    baseline: str,
    changes: Sequence[DocumentChange],
    events: Sequence[AnchorEvent],
    settled: Revalidated,
    questions: RevalidatedQuestions,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    against: Facts = {"held against": baseline or "(nothing: no frozen set before this revision)"}
    changed = [
        {"document": c.document_path, "status": c.status, "was": c.was, "new passages": len(c.fresh)}
        for c in changes
        if c.status not in ("first", "unchanged")
    ]
    rungs = Counter(event.rung for event in events)
    items = [*settled.items, *questions.items]
    why = {(item.document_path, item.question): item.why for item in questions.items}
    to_ask = [{"question": d.question[:160], "why": why[d.document_path, d.question][:240]} for d in questions.to_ask]
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "kb_changes": (
            DocumentChange, changes, {**by_status(changes), "changed documents": markdown_table(changed)},
        ),
        "anchor_events": (
            AnchorEvent, events, {**{f"rung: {rung}": n for rung, n in sorted(rungs.items())}, **event_facts(events)},
        ),
        "revalidated_items": (RevalidatedItem, items, item_facts(items)),
        "carried_candidates": (Candidate, settled.candidates, {"come over": len(settled.candidates)}),
        "carried_no_answer": (NoAnswerCandidate, questions.carried, {"come over": len(questions.carried)}),
        "no_answer_to_ask": (
            NoAnswerDraft, questions.to_ask, {"asked again": len(to_ask), "why": markdown_table(to_ask[:60])},
        ),
    }  # fmt: skip
    for key, (record, rows, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, rows), metadata={**against, **facts})


def event_facts(events: Sequence[AnchorEvent]) -> Facts:
    """Return the metadata of a table of anchor events: those that did not carry, with what changed."""
    rows = [
        {"item": e.item_id, "rung": e.rung, "why": e.reason, "from": f"{e.document_path}[{e.start_char}:{e.end_char}]",
         "to": f"{e.new_document_path}[{e.new_start_char}:{e.new_end_char}]" if e.new_document_path else "",
         "score": round(e.score, 3), "changes": e.word_diff[:300]}
        for e in events
        if not e.carries
    ]  # fmt: skip
    return {"spans": len(events), "not carried": len(rows), "spans that did not carry": markdown_table(rows[:50])}


def item_facts(items: Sequence[RevalidatedItem]) -> Facts:
    """Return the metadata of the re-validated items: how many of each outcome, and which are stale and why."""
    counts = Counter(item.outcome for item in items)
    stale = [
        {"id": i.id, "outcome": i.outcome, "document": i.document_path, "question": i.question[:160],
         "why": i.why[:240], "changes": i.diff[:300]}
        for i in items
        if i.outcome in (Outcome.TO_PEOPLE, Outcome.LOST)
    ]  # fmt: skip
    return {
        "items": len(items),
        **{str(outcome): counts[outcome] for outcome in Outcome},
        "marked for a look": sum(item.look for item in items),
        "stale": markdown_table(stale[:60]),
    }


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="texts", group_name=REVIEW, kinds={"markdown"}, owners=OWNERS,
    code_version="1",
)  # fmt: skip
def revision_report(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_changes: pa.Table,
    carried_candidates: pa.Table,
    revalidated_items: pa.Table,
    candidates: pa.Table,
    missing_questions: pa.Table,
    review_queue: pa.Table,
    no_answer_code_drops: pa.Table,
    no_answer_candidates: pa.Table,
    no_answer_drops: pa.Table,
    no_answer_queue: pa.Table,
) -> dg.MaterializeResult[str]:
    """What moved, what is stale, what it cost and what a person has to do, on one page."""
    settings = project.settings()
    items = to_records(RevalidatedItem, revalidated_items)
    waiting = {row.id for row in to_records(ReviewRow, review_queue)}
    stale = {item.now_candidate_id for item in items if item.outcome == Outcome.TO_PEOPLE}
    folder = SheetFolder.of(settings.data_dir, context.partition_key)
    facts = RevisionFacts(
        source_version=context.partition_key,
        baseline=items[0].baseline if items else "",
        changes=to_records(DocumentChange, kb_changes),
        items=[item for item in items if item.member in (FROZEN, OPEN)],
        candidates=candidates.num_rows,
        came_over=carried_candidates.num_rows,
        missing=to_records(MissingRow, missing_questions),
        to_decide=len(waiting),
        to_recheck=len(waiting & stale),
        sheets=[str(path.relative_to(settings.data_dir)) for path in folder.sheets()],
        cost={},
    )
    drops = to_records(Drop, no_answer_code_drops) + to_records(Drop, no_answer_drops)
    found = to_records(NoAnswerCandidate, no_answer_candidates)
    without = no_answer_section(items, found, drops, no_answer_queue.num_rows)
    text = report(replace(facts, no_answer=without, no_answer_to_decide=no_answer_queue.num_rows))
    return dg.MaterializeResult(value=text, metadata={"report": dg.MetadataValue.md(text)})


class ComparisonConfig(dg.Config):
    """Which two frozen sets are compared; by default the last two that were released."""

    before: str = ""
    """The earlier one, as ``2026-10-01/snapshot-0001``."""
    now: str = ""
    """The later one."""


@dg.asset(io_manager_key="texts", group_name=GOLDEN, kinds={"markdown"}, owners=OWNERS, code_version="1")
def snapshot_comparison(config: ComparisonConfig, project: Project) -> dg.MaterializeResult[str]:
    """What differs between two frozen sets: the last two, or any two, named as `before` and `now` in the launchpad (the
    arrow beside Materialize)."""
    try:
        before, now, rows = compared(project.settings().data_dir / "golden", config.before, config.now)
    except (LookupError, SnapshotDamaged) as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    text = as_markdown(rows, before, now)
    return dg.MaterializeResult(value=text, metadata={**totals(rows), "comparison": dg.MetadataValue.md(text)})


ASSETS = [golden_revalidation, revision_report, snapshot_comparison]
