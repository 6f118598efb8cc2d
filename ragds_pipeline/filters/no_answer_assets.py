"""The no_answer set's filters as assets: proposals of the main set, the code filter, the question to the whole KB.

Where no such questions are planned nothing is asked, no index is made, and all tables are empty.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.assets import askable, drop_facts, outlines_to_ask, request_facts, stopped
from ragds_pipeline.candidates.assets import open_door as open_claude
from ragds_pipeline.candidates.no_answer_assets import came_over, no_answer_draft_facts
from ragds_pipeline.candidates.no_answer_plan import open_plan
from ragds_pipeline.claude import RepliesMissing
from ragds_pipeline.filters.assets import GROUP, OWNERS
from ragds_pipeline.filters.no_answer_check import WholeKb
from ragds_pipeline.filters.no_answer_estimate import Again, estimate_no_answer
from ragds_pipeline.filters.no_answer_filter import draft_of, filter_drafts, proposals
from ragds_pipeline.filters.no_answer_top_up import ToppedUpNoAnswer, top_up
from ragds_pipeline.filters.refusals import has_refusal
from ragds_pipeline.filters.retrieval import PassageIndex, PassageText
from ragds_pipeline.kb.outline import Outline, load_outlines
from ragds_pipeline.records import (
    AskedRow,
    Candidate,
    CostRow,
    DocumentChange,
    Drop,
    MissingRow,
    PlanRow,
    Verdict,
)
from ragds_pipeline.records_no_answer import NEAR_MISS, KbAnswer, NoAnswerCandidate, NoAnswerDraft
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.storage.metadata import Facts, dollars, markdown_table
from ragds_pipeline.storage.schemas import as_json, to_records, to_table
from ragds_pipeline.storage.tables import TableFile


def outlines_of(documents: TableFile, passages: TableFile) -> Callable[[Collection[str]], Mapping[str, Outline]]:
    """Return a function that loads the outlines of documents, each once."""
    loaded: dict[str, Outline] = {}

    def load(wanted: Collection[str]) -> Mapping[str, Outline]:
        if absent := set(wanted) - loaded.keys():
            loaded.update(load_outlines(documents, passages, absent))
        return {path: loaded[path] for path in sorted(wanted) if path in loaded}

    return load


def whole_kb(documents: TableFile, passages: TableFile) -> WholeKb:
    """Return the KB as questions are asked of it: an index over every passage, and the documents that may be shown."""
    paths = documents.read(["path", "confidential"]).to_pylist()

    def contents(ids: Collection[str]) -> Mapping[str, str]:
        table = passages.where("id", ids, ["id", "content"])
        return dict(zip(table.column("id").to_pylist(), table.column("content").to_pylist(), strict=True))

    rows = (row for batch in passages.batches(["id", "document_path", "content"]) for row in batch.to_pylist())
    return WholeKb(
        index=PassageIndex(PassageText(row["id"], row["document_path"], row["content"]) for row in rows),
        askable=tuple(sorted(row["path"] for row in paths if not row["confidential"])),
        confidential=frozenset(row["path"] for row in paths if row["confidential"]),
        load=outlines_of(documents, passages),
        contents=contents,
    )


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS,
    code_version="1",
)  # fmt: skip
def no_answer_cost_estimate(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    kb_changes: pa.Table,
    carried_no_answer: pa.Table,
    no_answer_to_ask: pa.Table,
    no_answer_plan: pa.Table,
) -> dg.MaterializeResult[pa.Table]:
    """What the no_answer set would cost, by task, were every question still to be asked for put to every document, and
    those asked again to what changed; nothing is sent."""
    to_ask = to_records(NoAnswerDraft, no_answer_to_ask)
    plan = open_plan(to_records(PlanRow, no_answer_plan), came_over(carried_no_answer, no_answer_to_ask))
    rows: list[CostRow] = []
    if plan or to_ask:
        claude = open_claude(project, context)
        paths = [document.path for document in askable(kb_documents)]
        load = outlines_of(kb_documents, kb_passages)
        outlines = outlines_to_ask(kb_documents, kb_passages, kb_changes, plan)
        same = {c.document_path for c in to_records(DocumentChange, kb_changes) if c.status in ("unchanged", "renamed")}
        again = Again(to_ask, set(paths) - same)
        rows = estimate_no_answer(plan, outlines, load, paths, claude, project.settings(), again)
        claude.close()
    total = sum((Decimal(row.list_cost_usd) for row in rows), Decimal(0))
    return dg.MaterializeResult(
        value=to_table(CostRow, rows),
        metadata={
            "calls, at most": sum(row.calls for row in rows),
            "estimated cost, at most": dollars(total),
            "cap for a run": dollars(project.settings().claude.budget_usd),
            "by task": markdown_table([as_json(row) for row in rows]),
        },
    )


@dg.multi_asset(
    outs={
        "no_answer_proposals": dg.AssetOut(
            description="Questions that the main set dropped because their evidence did not answer them.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_filtered": dg.AssetOut(
            description="Questions asked again, near misses of the first round and proposals that passed the code "
            "filter.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_code_drops": dg.AssetOut(
            description="Such questions that the code filter dropped, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def no_answer_code_filtered(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    candidates: pa.Table,
    code_drops: pa.Table,
    judge_drops: pa.Table,
    top_up_drops: pa.Table,
    carried_no_answer: pa.Table,
    no_answer_to_ask: pa.Table,
    no_answer_drafts: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Take in the questions that the main set proposes, and drop by code what is no question or was asked before."""
    settings = project.settings()
    dropped = [drop for table in (code_drops, judge_drops, top_up_drops) for drop in to_records(Drop, table)]
    proposed = proposals(dropped, settings.no_answer, settings.plan, context.partition_key)
    documents = kb_documents.read(["path", "confidential"]).to_pylist()
    confidential = {row["path"] for row in documents if row["confidential"]}
    main = [candidate.question for candidate in to_records(Candidate, candidates)]
    drafts = to_records(NoAnswerDraft, no_answer_to_ask) + to_records(NoAnswerDraft, no_answer_drafts) + proposed
    carried = [draft_of(candidate) for candidate in to_records(NoAnswerCandidate, carried_no_answer)]
    found = filter_drafts(drafts, main, confidential, settings.filters.duplicate_score, carried)
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "no_answer_proposals": (NoAnswerDraft, proposed, no_answer_draft_facts(proposed)),
        "no_answer_filtered": (NoAnswerDraft, found.drafts, no_answer_draft_facts(found.drafts)),
        "no_answer_code_drops": (Drop, found.drops, drop_facts(found.drops)),
    }
    for key, (record, rows, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, rows), metadata=facts)


@dg.multi_asset(
    outs={
        "no_answer_candidates": dg.AssetOut(
            description="Questions that the whole KB was asked, now or before, and that nothing in it answers: what "
            "goes to review.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_verdicts": dg.AssetOut(
            description="What the ambiguity judge and the check of the whole KB said about each question.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_answers": dg.AssetOut(
            description="What each document that was asked says to each question, with the sentences it rests on.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_drops": dg.AssetOut(
            description="Questions that were dropped because a document answers them, and all drops of top-up rounds.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_top_up_drafts": dg.AssetOut(
            description="Near misses of the top-up rounds as they came back.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_top_up_requests": dg.AssetOut(
            description="Every request for near misses of the top-up rounds: what was asked, what came, what it cost.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "no_answer_missing": dg.AssetOut(
            description="What is still missing of the planned near misses after the last round, and why.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
    pool="claude",
)  # fmt: skip
def no_answer_checked(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    kb_changes: pa.Table,
    candidates: pa.Table,
    carried_no_answer: pa.Table,
    no_answer_plan: pa.Table,
    no_answer_draft_drops: pa.Table,
    no_answer_filtered: pa.Table,
    no_answer_code_drops: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask the whole KB each question, document by document; then ask for more, in a bounded number of rounds."""
    settings = project.settings()
    plan = to_records(PlanRow, no_answer_plan)
    filtered = to_records(NoAnswerDraft, no_answer_filtered)
    carried = to_records(NoAnswerCandidate, carried_no_answer)
    done = ToppedUpNoAnswer.nothing()
    # Where all came over and nothing is missing, no index is made either.
    if filtered or open_plan(plan, carried):
        kb = whole_kb(kb_documents, kb_passages)
        main = [candidate.question for candidate in to_records(Candidate, candidates)]
        earlier = to_records(Drop, no_answer_draft_drops) + to_records(Drop, no_answer_code_drops)
        outlines = outlines_to_ask(kb_documents, kb_passages, kb_changes, plan)
        claude = open_claude(project, context)
        try:
            done = top_up(plan, filtered, earlier, main, outlines, kb, claude, settings, context.log.info, carried)
        except RepliesMissing as error:
            raise stopped(error) from error
        finally:
            claude.close()
    checked, found = done.checked, [*carried, *done.checked.candidates]
    drafts = [draft for made in done.rounds for draft in made.drafts]
    asked = [row for made in done.rounds for row in made.asked]
    without = sorted({c.language for c in found if not has_refusal(c.language, settings.no_answer.refusals)})
    short = {"near misses missing": sum(row.missing for row in done.missing),
             "missing": markdown_table([as_json(row) for row in done.missing])}  # fmt: skip
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "no_answer_candidates": (NoAnswerCandidate, found, _candidate_facts(found, len(carried), without)),
        "no_answer_verdicts": (Verdict, checked.verdicts, {"verdicts": len(checked.verdicts)}),
        "no_answer_answers": (KbAnswer, checked.answers, answer_facts(checked.answers)),
        "no_answer_drops": (Drop, done.drops, drop_facts(done.drops)),
        "no_answer_top_up_drafts": (NoAnswerDraft, drafts, no_answer_draft_facts(drafts)),
        "no_answer_top_up_requests": (AskedRow, asked, request_facts(asked)),
        "no_answer_missing": (MissingRow, done.missing, short),
    }
    for key, (record, rows, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, rows), metadata=facts)


def _candidate_facts(candidates: Sequence[NoAnswerCandidate], carried: int, without_refusal: Sequence[str]) -> Facts:
    rows = [
        {"question": c.question[:160], "from": c.origin, "nearest": c.chunk_id,
         "asked": f"{c.documents_asked} of {c.documents_askable}", "flagged": c.flagged}
        for c in candidates[:30]
    ]  # fmt: skip
    return {
        "candidates": len(candidates),
        "come over without being asked again": carried,
        "near misses": sum(c.origin == NEAR_MISS for c in candidates),
        "proposed by the main set": sum(c.origin != NEAR_MISS for c in candidates),
        "flagged for people": sum(c.flagged for c in candidates),
        "languages without a refusal of their own (English stands in)": ", ".join(without_refusal) or "none",
        "preview": markdown_table(rows),
    }


def answer_facts(answers: Sequence[KbAnswer]) -> Facts:
    """Return the metadata of a table of what documents said: how many said what, and what it cost."""
    paid = sum((Decimal(row.cost_usd) for row in answers if not row.replayed), Decimal(0))
    worth = sum((Decimal(row.cost_usd) for row in answers), Decimal(0))
    rows = [
        {"document": a.document_path, "answered": a.answered, "answer": a.answer[:160], "reason": a.reason[:160]}
        for a in answers
        if a.answered != "no"
    ]
    return {
        "requests": len(answers),
        **{f"said {word}": sum(a.answered == word for a in answers) for word in ("yes", "partly", "no", "none")},
        "paid in this run": dollars(paid),
        "paid in all for these replies": dollars(worth),
        "what is not no": markdown_table(rows[:40]),
    }


ASSETS = [no_answer_cost_estimate, no_answer_code_filtered, no_answer_checked]
