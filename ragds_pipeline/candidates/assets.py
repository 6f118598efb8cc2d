"""Candidates as assets: the question plan, what it would cost, and the drafts of the first round.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import dagster as dg
import pyarrow as pa

from ragds_pipeline.candidates.generate import first_requests, generate
from ragds_pipeline.candidates.plan import AskableDocument, plan_questions
from ragds_pipeline.candidates.prompts import code_version, load_prompt
from ragds_pipeline.claude import Claude, RepliesMissing
from ragds_pipeline.claude.estimate import estimate
from ragds_pipeline.config import ConfigError
from ragds_pipeline.kb.outline import load_outlines
from ragds_pipeline.records import AskedRow, CostRow, Draft, Drop, PlanRow
from ragds_pipeline.resources import Project, claude_retries, kb_revisions
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


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS,
    code_version="1",
)  # fmt: skip
def question_plan(project: Project, kb_documents: TableFile) -> dg.MaterializeResult[pa.Table]:
    """How many questions of which kind are asked from which document; the sum is exactly what was asked for."""
    settings = project.settings()
    documents = askable(kb_documents)
    try:
        rows = plan_questions(settings.plan, documents)
    except ConfigError as error:
        raise stopped(error) from error
    table = to_table(PlanRow, rows)
    return dg.MaterializeResult(
        value=table,
        metadata={
            "questions planned": sum(row.planned for row in rows),
            "questions asked for": settings.plan.questions,
            "documents": len({row.document_path for row in rows}),
            "documents not shown to a model": kb_documents.num_rows - len(documents),
            "plan": markdown_table(preview(table, table.column_names, rows=100)),
        },
    )


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS,
    code_version="1",
)  # fmt: skip
def cost_estimate(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    question_plan: pa.Table,
) -> dg.MaterializeResult[pa.Table]:
    """What the first round of questions would cost, estimated from the lengths of its prompts; nothing is sent."""
    settings = project.settings()
    plan = to_records(PlanRow, question_plan)
    outlines = load_outlines(kb_documents, kb_passages, {row.document_path for row in plan})
    claude = _open(project, context)
    requests = [shown.request for shown in first_requests(plan, outlines, settings)]
    full, fresh = estimate(requests, claude.prices), claude.estimate(requests)
    claude.close()
    row = CostRow(
        requests[0].task if requests else "generate_easy",
        settings.claude.models.generator,
        full.calls,
        fresh.calls,
        full.input_tokens,
        full.output_tokens,
        str(fresh.cost_usd),
        str(full.cost_usd),
    )
    return dg.MaterializeResult(
        value=to_table(CostRow, [row]),
        metadata={
            "calls": full.calls,
            "calls to pay": fresh.calls,
            "estimated cost": dollars(fresh.cost_usd),
            "estimated cost without the ledger": dollars(full.cost_usd),
            "cap for a run": dollars(settings.claude.budget_usd),
            "model": row.model,
        },
    )


def _open(project: Project, context: dg.AssetExecutionContext) -> Claude:
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
    retry_policy=claude_retries,
)  # fmt: skip
def drafts(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    question_plan: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask Claude for the questions of the plan."""
    settings = project.settings()
    plan = to_records(PlanRow, question_plan)
    outlines = load_outlines(kb_documents, kb_passages, {row.document_path for row in plan})
    claude = _open(project, context)
    try:
        made = generate(plan, outlines, {}, claude, settings)
    except RepliesMissing as error:
        raise stopped(error) from error
    finally:
        claude.close()
    for key, table, facts in (
        ("drafts", to_table(Draft, made.drafts), draft_facts(made.drafts)),
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


ASSETS = [question_plan, cost_estimate, drafts]
