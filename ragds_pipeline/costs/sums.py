"""The calls of a revision added up: by stage, task and model."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from ragds_pipeline.claude.spending import Call, sums
from ragds_pipeline.filters.closed_book import TASK as ANSWER_CLOSED_BOOK
from ragds_pipeline.filters.judges import CLOSED_BOOK, JUDGES
from ragds_pipeline.records import SpentRow

GENERATE = "generate"

_SMALLEST = Decimal("1e-12")


def stage_of(task: str) -> str:
    """Return the stage that a task belongs to, as the funnel names it; a task that is not known is its own stage."""
    if task.startswith("generate_"):
        return GENERATE
    if task == ANSWER_CLOSED_BOOK:
        return CLOSED_BOOK.name
    return next((judge.name for judge in JUDGES if judge.task == task), task)


def spent_rows(calls: Iterable[Call]) -> list[SpentRow]:
    """Return one row for each task and model, stages in the order of the funnel."""
    stages = [GENERATE, *(judge.name for judge in JUDGES)]
    rows = [
        SpentRow(
            stage_of(task), task, model, each.calls, each.replayed, each.unanswered, each.input_tokens,
            each.output_tokens, each.cache_write_tokens, each.cache_read_tokens, money(each.paid_usd),
            money(each.cost_usd),
        )
        for (task, model), each in sums(calls).items()
    ]  # fmt: skip
    return sorted(rows, key=lambda r: (stages.index(r.stage) if r.stage in stages else len(stages), r.task, r.model))


def money(amount: Decimal) -> Decimal:
    """Return an amount as a table holds it."""
    return amount.quantize(_SMALLEST)
