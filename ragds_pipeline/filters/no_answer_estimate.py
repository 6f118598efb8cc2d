"""What the no_answer set would cost, by task: the requests for near misses, and every question asked of the KB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ragds_pipeline.candidates.no_answer import TASK as GENERATE_TASK
from ragds_pipeline.candidates.no_answer import first_requests
from ragds_pipeline.claude import Claude, Request
from ragds_pipeline.claude.estimate import estimate
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.judges import AMBIGUITY, judge_request
from ragds_pipeline.filters.no_answer_check import judges_ambiguity
from ragds_pipeline.filters.whole_kb import TASK as KB_TASK
from ragds_pipeline.filters.whole_kb import kb_request, shown_windows
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import CostRow, PlanRow
from ragds_pipeline.records_no_answer import NoAnswerDraft

SAMPLED_DOCUMENTS = 50
"""Documents whose requests are measured; the others are taken to be like them."""

_QUESTION = "x" * 120
"""Stands for a question that is not written yet."""


@dataclass(frozen=True, slots=True)
class Again:
    """What is asked again in a later revision."""

    drafts: Sequence[NoAnswerDraft]
    changed: Collection[str]
    """Documents that are new or changed and may be asked."""


def estimate_no_answer(
    plan: Sequence[PlanRow],
    outlines: Mapping[str, Outline],
    load: Callable[[Collection[str]], Mapping[str, Outline]],
    askable: Sequence[str],
    claude: Claude,
    settings: Settings,
    again: Again | None = None,
) -> list[CostRow]:
    """Return a row for each task, in the order in which they come.

    It is what the near misses still to be asked for (``plan``, about ``outlines``) would cost at most: none dropped on
    the way, each asked of every document that may be asked; and what those asked ``again`` would cost of the documents
    that are new or changed, for the others' replies are in the ledger. Proposals of the main set and top-up rounds come
    on top. Which documents a question will be asked of in a large KB is not known yet, so an average document counts.
    """
    again = again or Again((), ())
    questions = sum(row.planned for row in plan)
    rules = settings.no_answer
    asked = len(askable) if len(askable) <= rules.ask_all_up_to else rules.documents_asked
    chosen = list(askable[:: -(-len(askable) // SAMPLED_DOCUMENTS) or 1])
    shown = [window for outline in load(chosen).values() for window in shown_windows(outline, settings)]
    first = first_requests(plan, outlines, settings)
    rows = [_row(GENERATE_TASK, first, claude.estimate(first).cost_usd, claude)]
    if judges_ambiguity(settings):
        judged = judge_request(AMBIGUITY, {"question": _QUESTION}, "", settings)
        rows.append(_row(AMBIGUITY.task, [judged], None, claude, questions))
    whole = [kb_request(window, _QUESTION, "", settings) for window in shown]
    rows.append(_row(KB_TASK, whole, None, claude, questions * asked / max(1, len(chosen))))
    if again.drafts:
        windows = [w for outline in load(again.changed).values() for w in shown_windows(outline, settings)]
        repeated = [kb_request(window, draft.question, "", settings) for draft in again.drafts for window in windows]
        rows[-1] = _sum(rows[-1], _row(KB_TASK, repeated, claude.estimate(repeated).cost_usd, claude))
    return rows


def _sum(one: CostRow, other: CostRow) -> CostRow:
    """Return the two rows of a task as one."""
    return replace(
        one,
        model=one.model or other.model,
        calls=one.calls + other.calls,
        calls_to_pay=one.calls_to_pay + other.calls_to_pay,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_usd=str(Decimal(one.cost_usd) + Decimal(other.cost_usd)),
        list_cost_usd=str(Decimal(one.list_cost_usd) + Decimal(other.list_cost_usd)),
    )


def _row(task: str, requests: Sequence[Request], to_pay: Decimal | None, claude: Claude, times: float = 1.0) -> CostRow:
    """Return the row of a task whose requests stand for ``times`` as many; ``to_pay`` where what is in the ledger can
    be told."""
    full = estimate(requests, claude.prices)
    cost = (full.cost_usd * Decimal(str(times))).quantize(Decimal("0.000001"))
    known = claude.estimate(requests).calls if to_pay is not None else full.calls
    return CostRow(
        task=task,
        model=requests[0].model if requests else "",
        calls=round(full.calls * times),
        calls_to_pay=round(known * times),
        input_tokens=round(full.input_tokens * times),
        output_tokens=round(full.output_tokens * times),
        cost_usd=str(cost if to_pay is None else to_pay),
        list_cost_usd=str(cost),
    )
