"""Money as assets: what a run would cost before it starts, and what a revision did cost, by the ledger.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import dagster as dg
import duckdb
import pyarrow as pa

from ragds_pipeline.candidates.assets import GROUP as CANDIDATES
from ragds_pipeline.candidates.assets import open_door, outlines_to_ask
from ragds_pipeline.candidates.revision_plan import open_plan
from ragds_pipeline.claude.spending import Books, CallSum, books_of, read_books, total
from ragds_pipeline.claude.views import write_all_views
from ragds_pipeline.config import ClaudeSettings, Settings
from ragds_pipeline.costs.forecasts import Planned, expected_costs
from ragds_pipeline.costs.items import ItemCosts, Questions, item_costs
from ragds_pipeline.costs.reading import questions_of
from ragds_pipeline.costs.sums import spent_rows
from ragds_pipeline.records import Candidate, CostRow, ItemCostRow, PlanRow, SpentRow
from ragds_pipeline.resources import TABLES, Project, kb_revisions
from ragds_pipeline.storage.metadata import Facts, dollars, markdown_table
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile

GROUP = "costs"
OWNERS = ["team:data-engineering"]

LAST = {"dagster/priority": "-1"}
"""Steps run one at a time (see ``definitions``): this one when no other can, so after the golden set in its job."""

_DEAREST = 20


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="tables", group_name=CANDIDATES, kinds={"parquet"}, owners=OWNERS,
    code_version="2",
    check_specs=[
        dg.AssetCheckSpec(
            "estimate_within_caps", asset="cost_estimate", partitions_def=kb_revisions,
            description="The run's estimate fits under its cap and under what is left of the revision's.",
        )
    ],
)  # fmt: skip
def cost_estimate(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    kb_changes: pa.Table,
    carried_candidates: pa.Table,
    question_plan: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table] | dg.AssetCheckResult]:
    """What a run would cost, a row for each task: first round, top-ups and judges; nothing is sent."""
    settings = project.settings()
    plan = open_plan(to_records(PlanRow, question_plan), to_records(Candidate, carried_candidates))
    outlines = outlines_to_ask(kb_documents, kb_passages, kb_changes, plan)
    claude = open_door(project, context)
    try:
        rows = expected_costs(Planned(plan, outlines, settings, claude))
        books = read_books(claude.ledger, context.partition_key)
    finally:
        claude.close()
    yield dg.MaterializeResult(value=to_table(CostRow, rows), metadata=_estimate_facts(rows, settings.claude))
    yield _fits(rows, books, settings.claude)


def _estimate_facts(rows: Sequence[CostRow], settings: ClaudeSettings) -> Facts:
    cap = dollars(settings.budget_usd)
    told = [
        {
            "task": row.task, "model": row.model, "calls": row.calls, "calls to pay": row.calls_to_pay,
            "estimated cost": dollars(Decimal(row.cost_usd)), "cap for a run": cap, "rests on": row.basis,
        }
        for row in rows
    ]  # fmt: skip
    return {
        "calls": sum(row.calls for row in rows),
        "calls to pay": sum(row.calls_to_pay for row in rows),
        "estimated cost": dollars(_sum(rows)),
        "estimated cost without the ledger": dollars(sum((Decimal(r.list_cost_usd) for r in rows), Decimal(0))),
        "cap for a run": cap,
        **_replay_note(settings),
        "by task": markdown_table(told, "(nothing will be asked)"),
    }


def _replay_note(settings: ClaudeSettings) -> Facts:
    """Say why nothing is paid where recorded replies answer: the estimate is what it would cost elsewhere."""
    if settings.backend != "file":
        return {}
    return {"note": "claude.backend is file: recorded replies cost nothing, and a call without one stops the run"}


def _fits(rows: Sequence[CostRow], books: Books, settings: ClaudeSettings) -> dg.AssetCheckResult:
    """Compare the estimate with the caps. A warning only: the caps hold whatever is estimated."""
    expected = _sum(rows)
    faults = []
    if expected > settings.budget_usd:
        faults.append(f"{dollars(expected)} is more than claude.budget_usd ({dollars(settings.budget_usd)})")
    if (cap := settings.partition_budget_usd) is not None:
        used = books.accounts_usd + books.possibly_paid_usd + books.in_flight_usd
        if expected + used > cap:
            faults.append(
                f"{dollars(expected)} and {dollars(used)} used up are more than claude.partition_budget_usd "
                f"({dollars(cap)})"
            )
    remedy = "; the run will stop asking there: raise the cap, plan fewer questions, or take claude.backend: batch"
    return dg.AssetCheckResult(
        check_name="estimate_within_caps",
        passed=not faults,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(faults) + remedy if faults else None,
        metadata={"estimated cost": dollars(expected), "cap for a run": dollars(settings.budget_usd)},
    )


def _sum(rows: Sequence[CostRow]) -> Decimal:
    return sum((Decimal(row.cost_usd) for row in rows), Decimal(0))


@dg.multi_asset(
    outs={
        "costs": dg.AssetOut(
            description="What this revision cost so far, by stage, task and model, as the ledger has it.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "sqlite"}, owners=OWNERS, code_version="1",
        ),
        "item_costs": dg.AssetOut(
            description="What each question cost, kept or dropped: generating it, and the judges' calls about it.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "sqlite"}, owners=OWNERS, code_version="1",
        ),
    },
    check_specs=[
        dg.AssetCheckSpec(
            "costs_reconcile", asset="costs", partitions_def=kb_revisions,
            description="The rows, the ledger's replies and the accounts that the caps rest on come to the same sum.",
        )
    ],
    partitions_def=kb_revisions,
    # Made after the filters, and again after freezing: `golden_items` and the rest are read where they lie. As `deps`
    # they would make Dagster warn, for each new revision, that its first run cannot work: they come from a later job.
    deps=["draft_drops", "candidates"],
    op_tags=LAST,
)  # fmt: skip
def costs(
    context: dg.AssetExecutionContext, project: Project
) -> Iterator[dg.MaterializeResult[pa.Table] | dg.AssetCheckResult]:
    """Add up what the ledger has for this revision, and tell it by question."""
    settings = project.settings()
    books = books_of(settings, context.partition_key) or Books((), *[Decimal(0)] * 4)
    questions = questions_of(settings.data_dir / TABLES, context.partition_key)
    rows, told = spent_rows(books.calls), item_costs(books.calls, questions)
    yield dg.MaterializeResult(
        asset_key="costs", value=to_table(SpentRow, rows), metadata=_spent_facts(rows, books, questions, settings)
    )
    yield dg.MaterializeResult(
        asset_key="item_costs", value=to_table(ItemCostRow, told.rows), metadata=_item_facts(told)
    )
    faults = books.faults()
    yield dg.AssetCheckResult(
        check_name="costs_reconcile",
        asset_key="costs",
        passed=not faults,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(faults) or None,
        metadata={
            "faults": len(faults),
            "by the replies": str(books.replies_usd),
            "by the accounts": str(books.accounts_usd),
        },
    )
    with suppress(duckdb.Error, OSError):
        write_all_views(settings)  # a convenience for people; never what a run fails for


def _spent_facts(rows: Sequence[SpentRow], books: Books, questions: Questions, settings: Settings) -> Facts:
    whole = total(books.calls)
    golden = len(questions.golden)
    kept = golden or len(questions.candidates)
    return {
        **call_facts(whole),
        "possibly paid, replies lost or not collected": dollars(books.possibly_paid_usd + books.in_flight_usd),
        "kept items": kept,
        "kept items are": "in the golden set" if golden else "candidates after all filters",
        "cost of a kept item": dollars(whole.cost_usd / kept) if kept else "(none kept)",
        "paid for a kept item": dollars(whole.paid_usd / kept) if kept else "(none kept)",
        "cap for a run": dollars(settings.claude.budget_usd),
        **_replay_note(settings.claude),
        "by stage": markdown_table(_by_stage(rows)),
        "by task and model": markdown_table([_shown(row) for row in rows]),
    }


def call_facts(whole: CallSum) -> Facts:
    """Return the metadata of a sum of calls."""
    return {
        "calls": whole.calls,
        "replayed": whole.replayed,
        "unanswered": whole.unanswered,
        "paid for this revision": dollars(whole.paid_usd),
        "cost of its replies, whoever paid": dollars(whole.cost_usd),
    }


def _by_stage(rows: Sequence[SpentRow]) -> list[dict[str, Any]]:
    stages: dict[str, list[SpentRow]] = {}
    for row in rows:
        stages.setdefault(row.stage, []).append(row)
    return [
        {
            "stage": stage, "calls": sum(r.calls for r in of), "replayed": sum(r.replayed for r in of),
            "paid": dollars(sum((r.paid_usd for r in of), Decimal(0))),
            "cost of the replies": dollars(sum((r.cost_usd for r in of), Decimal(0))),
        }
        for stage, of in stages.items()
    ]  # fmt: skip


def _shown(row: SpentRow) -> dict[str, Any]:
    return {
        "stage": row.stage, "task": row.task, "model": row.model, "calls": row.calls, "replayed": row.replayed,
        "unanswered": row.unanswered, "input": row.input_tokens, "output": row.output_tokens,
        "cache write": row.cache_write_tokens, "cache read": row.cache_read_tokens, "paid": dollars(row.paid_usd),
        "cost of the replies": dollars(row.cost_usd),
    }  # fmt: skip


def _item_facts(told: ItemCosts) -> Facts:
    dearest = sorted(told.rows, key=lambda row: (-row.cost_usd, row.draft_id))[:_DEAREST]
    by_outcome: dict[str, list[Decimal]] = {}
    for row in told.rows:
        by_outcome.setdefault(row.outcome, []).append(row.cost_usd)
    return {
        "questions": len(told.rows),
        "cost of the questions": dollars(sum((row.cost_usd for row in told.rows), Decimal(0))),
        "cost of no single question": dollars(told.rest_usd),
        "by outcome": markdown_table(
            [
                {"outcome": outcome, "questions": len(costs), "cost": dollars(sum(costs, Decimal(0))),
                 "on average": dollars(sum(costs, Decimal(0)) / len(costs))}
                for outcome, costs in sorted(by_outcome.items())
            ]
        ),
        "dearest": markdown_table(
            [
                {"question": row.question[:140], "outcome": row.outcome, "generation": dollars(row.generation_usd),
                 "judges": dollars(row.judging_usd), "cost": dollars(row.cost_usd)}
                for row in dearest if row.cost_usd
            ]
        ),
    }  # fmt: skip


ASSETS = [cost_estimate, costs]
