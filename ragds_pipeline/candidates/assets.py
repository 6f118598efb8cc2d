"""Candidates as assets: the question plan, what it would cost, and the drafts of the first round.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.generate import generate
from ragds_pipeline.candidates.plan import AskableDocument, plan_questions
from ragds_pipeline.candidates.prompts import code_version, load_prompt
from ragds_pipeline.candidates.revision_plan import (
    fresh_starts,
    grown,
    is_first,
    open_plan,
    plan_revision,
    questions_by_document,
)
from ragds_pipeline.claude import Claude, RepliesMissing
from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.kb.outline import Outline, load_outlines
from ragds_pipeline.records import AskedRow, Candidate, DocumentChange, Draft, Drop, PlanBasis, PlanRow
from ragds_pipeline.resources import TABLES, Project, claude_retries, kb_revisions
from ragds_pipeline.storage.metadata import Facts, dollars, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile, preview

GROUP = "candidates"
OWNERS = ["team:data-engineering"]
DRAFTING = code_version("1", load_prompt("single_hop"))


def askable(documents: TableFile) -> list[AskableDocument]:
    """Return the documents that may be sent to a model."""
    columns = ["path", "language", "text", "confidential"]
    return [
        AskableDocument(row["path"], row["language"], len(row["text"]))
        for batch in documents.batches(columns)
        for row in batch.to_pylist()
        if not row["confidential"]
    ]


def stopped(error: Exception) -> dg.Failure:
    """Return the failure that ends a run which cannot go on, with what to do."""
    metadata: Facts = {}
    if isinstance(error, RepliesMissing):
        metadata = {"calls missing": error.estimate.calls, "estimated cost": dollars(error.estimate.cost_usd)}
    return dg.Failure(str(error), metadata=metadata, allow_retries=False)


@dg.multi_asset(
    outs={
        "question_plan": dg.AssetOut(
            description="How many questions of which kind are wanted from which document. In the first revision the "
            "sum is exactly what was asked for; later what came over counts, and only new text is asked about.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="2",
        ),
        "plan_basis": dg.AssetOut(
            description="How many questions the whole KB gets, and how large it is: the next plan grows from it.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def question_plan(
    project: Project, kb_documents: TableFile, kb_changes: pa.Table, carried_candidates: pa.Table
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Decide what to ask before anything is asked."""
    settings = project.settings()
    documents = askable(kb_documents)
    changes, carried = to_records(DocumentChange, kb_changes), to_records(Candidate, carried_candidates)
    basis = grown(settings.plan.questions, sum(d.characters for d in documents), _basis_before(settings, changes))
    try:
        target = plan_questions(settings.plan.model_copy(update={"questions": basis.questions}), documents)
    except ConfigError as error:
        raise stopped(error) from error
    rows = plan_revision(target, carried, changes, settings.plan.chars_per_question)
    table = to_table(PlanRow, rows)
    yield dg.MaterializeResult(
        asset_key="plan_basis",
        value=to_table(PlanBasis, [basis]),
        metadata={"questions": basis.questions, "characters": basis.characters},
    )
    yield dg.MaterializeResult(
        asset_key="question_plan",
        value=table,
        metadata={
            "questions planned": sum(row.planned for row in rows),
            "questions asked for": settings.plan.questions,
            "questions for a KB of this size": basis.questions,
            "come over from the last frozen set": len(carried),
            "to be asked now": sum(row.planned for row in open_plan(rows, carried)),
            "asked about": "the whole KB" if is_first(changes) else "new and changed passages",
            "documents": len({row.document_path for row in rows}),
            "documents not shown to a model": kb_documents.num_rows - len(documents),
            "plan": markdown_table(preview(table, table.column_names, rows=100)),
        },
    )


def _basis_before(settings: Settings, changes: Sequence[DocumentChange]) -> PlanBasis | None:
    """Return what the plan of the last frozen set was drawn up from, where it is still known."""
    since = changes[0].since if changes else ""
    table = TableFile(settings.data_dir / TABLES / "plan_basis" / f"{since}.parquet")
    return next(table.records(PlanBasis)) if since and table.path.exists() else None


def outlines_to_ask(
    documents: TableFile, passages: TableFile, changes: pa.Table, plan: Sequence[PlanRow]
) -> dict[str, Outline]:
    """Return the outlines of the planned documents, limited to the passages that may be asked about."""
    fresh = fresh_starts(to_records(DocumentChange, changes))
    return load_outlines(documents, passages, {row.document_path for row in plan}, fresh)


def open_door(project: Project, context: dg.AssetExecutionContext) -> Claude:
    """Return the door to the model; a configuration that cannot be used ends the run with what to do."""
    try:
        return project.claude(context, project.settings())
    except ConfigError as error:
        raise stopped(error) from error


@dg.multi_asset(
    outs={
        "drafts": dg.AssetOut(
            description="Questions of the first round with answer, type and evidence, as they came back.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS,
            code_version=DRAFTING,
        ),
        "draft_drops": dg.AssetOut(
            description="What could not be read of the replies or did not come back, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version=DRAFTING,
        ),
        "draft_requests": dg.AssetOut(
            description="Every request of the first round: what was asked, what came back, what it cost.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version=DRAFTING,
        ),
    },
    partitions_def=kb_revisions,
    pool="claude",
    deps=["cost_estimate"],  # it shows what this would cost before anything is sent
    retry_policy=claude_retries,
)  # fmt: skip
def drafts(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    kb_changes: pa.Table,
    carried_candidates: pa.Table,
    question_plan: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask Claude for the questions of the plan that are not there yet."""
    settings = project.settings()
    carried = to_records(Candidate, carried_candidates)
    plan = open_plan(to_records(PlanRow, question_plan), carried)
    outlines = outlines_to_ask(kb_documents, kb_passages, kb_changes, plan)
    claude = open_door(project, context)
    try:
        made = generate(plan, outlines, questions_by_document(carried), claude, settings)
    except RepliesMissing as error:
        raise stopped(error) from error
    finally:
        claude.close()
    for key, table, facts in (
        ("drafts", to_table(Draft, made.drafts), {**draft_facts(made.drafts), **cost_facts(claude)}),
        ("draft_drops", to_table(Drop, made.drops), drop_facts(made.drops)),
        ("draft_requests", to_table(AskedRow, made.asked), request_facts(made.asked)),
    ):
        yield dg.MaterializeResult(asset_key=key, value=table, metadata=facts)


def draft_facts(drafts: Sequence[Draft]) -> Facts:
    """Return the metadata of a table of drafts."""
    rows = [
        {"document": d.document_path, "type": d.type, "question": d.question, "answer": d.answer} for d in drafts[:20]
    ]
    return {"drafts": len(drafts), "preview": markdown_table(rows)}


def drop_facts(drops: Sequence[Drop]) -> Facts:
    """Return the metadata of a table of drops: how many by reason, with an example of each."""
    first: dict[tuple[str, str], Drop] = {}
    counts: dict[tuple[str, str], int] = {}
    for item in drops:
        kind = (item.stage, item.reason)
        first.setdefault(kind, item)
        counts[kind] = counts.get(kind, 0) + 1
    rows = [
        {"stage": stage, "reason": reason, "count": count, "document": first[stage, reason].document_path,
         "question": first[stage, reason].question[:120], "detail": first[stage, reason].detail[:160]}
        for (stage, reason), count in sorted(counts.items(), key=lambda item: -item[1])
    ]  # fmt: skip
    return {"dropped": len(drops), "by reason, with an example": markdown_table(rows)}


def cost_facts(claude: Claude) -> Facts:
    """Return the metadata of what a step asked and paid, by task and model."""
    rows = [
        {
            "task": task, "model": model, "calls": each.calls, "replayed": each.replayed,
            "unanswered": each.unanswered, "input": each.input_tokens, "output": each.output_tokens,
            "cache write": each.cache_write_tokens, "cache read": each.cache_read_tokens,
            "paid": dollars(each.paid_usd), "cost of the replies": dollars(each.cost_usd),
        }
        for (task, model), each in claude.costs.by_task.items()
    ]  # fmt: skip
    return {
        "calls": sum(each.calls for each in claude.costs.by_task.values()),
        "paid in this step": dollars(claude.costs.paid_usd),
        "possibly paid in this step": dollars(claude.budget.possibly_paid_usd),
        "cost by task": markdown_table(rows, "(no calls)"),
    }


def request_facts(asked: Sequence[AskedRow]) -> Facts:
    """Return the metadata of a table of requests: how many, and what they cost."""
    sent = [row for row in asked if row.reply != "not_sent"]
    paid = sum((Decimal(row.cost_usd) for row in sent if not row.replayed), Decimal(0))
    worth = sum((Decimal(row.cost_usd) for row in sent), Decimal(0))
    return {
        "requests": len(sent),
        "failed": sum(row.reply != "ok" for row in sent),
        "replayed from the ledger or a recording": sum(row.replayed for row in sent),
        "questions asked for": sum(row.asked for row in asked),
        "paid in this run": dollars(paid),
        "paid in all for these replies": dollars(worth),
    }


ASSETS = [question_plan, drafts]
