"""What a run would cost before it is started, from whoever will ask something: one contributor a kind of request.

The first round's requests can be built and are estimated as they are. How many questions will be topped up and judged
is not known before there are any: these rows are *forecasts* and say so. A new kind of request adds its contributor to
``CONTRIBUTORS``. What does not belong here: the cap, which holds whatever is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from ragds_pipeline.candidates.generate import first_requests
from ragds_pipeline.claude import Claude, Request
from ragds_pipeline.claude.estimate import Estimate, estimate
from ragds_pipeline.claude.forecast import forecast
from ragds_pipeline.claude.spending import average_lengths
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.claude_filter import enabled_judges
from ragds_pipeline.filters.closed_book import answer_request
from ragds_pipeline.filters.judges import CLOSED_BOOK, Judge, judge_request
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import CostRow, Difficulty, PlanRow

MISSING_AFTER_A_ROUND = 0.2
"""Share of the questions asked for that filters leave open, to be topped up. Of the sample's 44 questions 5 were."""

VOTED_ON = 0.15
"""Share of a judge's items that a first vote would drop, so that they are voted on. In the sample at most 0.14."""

KNOWN = 0.25
"""Share of the closed-book answers that are not "unknown" and are compared with the reference. In the sample, about a
company nobody knows, none; in a KB about well-known things more."""

JUDGE_OUTPUT_TOKENS = 800
"""Reply of a judge, thinking included, where the ledger has none to measure. The sample's replies, which have no
thinking in them, are 50 to 75 tokens long."""

ENOUGH_REPLIES = 20
"""So many replies of a task and model in the ledger, and their average stands for the next ones."""

_BUILT_AT_MOST = 200
"""Stand-ins built of a judge's requests; more are scaled."""

_QUESTION, _ANSWER, _SPAN = "q" * 110, "a" * 190, "s" * 260
"""Lengths of the sample's questions, answers and spans, in characters, rounded up."""


@dataclass(frozen=True)
class Planned:
    """What is known before a run."""

    plan: Sequence[PlanRow]
    outlines: Mapping[str, Outline]
    settings: Settings
    claude: Claude

    @property
    def questions(self) -> int:
        """Questions that will be asked for, in the first round."""
        return sum(r.planned for r in self.plan if r.difficulty == Difficulty.EASY and r.document_path in self.outlines)

    @cached_property
    def first_requests(self) -> list[Request]:
        """The requests of the first round."""
        built = first_requests(self.plan, self.outlines, self.settings, self.claude.known)
        return [shown.request for shown in built]

    @cached_property
    def to_pay(self) -> Estimate:
        """What of the first round is not in the ledger."""
        return self.claude.estimate(self.first_requests)

    @property
    def fresh_share(self) -> float:
        """The share of the first round that is not in the ledger."""
        return self.to_pay.calls / len(self.first_requests) if self.first_requests else 1.0

    @property
    def top_ups(self) -> list[int]:
        """Questions that each top-up round is expected to ask for."""
        share = MISSING_AFTER_A_ROUND
        rounds = range(1, self.settings.plan.top_up_rounds + 1)
        return [count for at in rounds if (count := math.ceil(self.questions * share**at - 0.5)) > 0]


Contributor = Callable[[Planned], list[CostRow]]


def expected_costs(planned: Planned) -> list[CostRow]:
    """Return what the run would cost, a row for each kind of request."""
    return [row for contributor in CONTRIBUTORS for row in contributor(planned)]


def first_round(planned: Planned) -> list[CostRow]:
    """The requests of the first round, as they will be sent."""
    requests, fresh = planned.first_requests, planned.to_pay
    if not requests:
        return []
    full = estimate(requests, planned.claude.prices, planned.settings.claude.backend == "batch")
    row = CostRow(
        requests[0].task, requests[0].model, full.calls, fresh.calls, full.input_tokens, full.output_tokens,
        str(fresh.cost_usd), str(full.cost_usd), f"first round: {fresh.basis}",
    )  # fmt: skip
    return [row]


def top_up_rounds(planned: Planned) -> list[CostRow]:
    """Questions asked for again: as many calls as documents with something missing, of the first round's length."""
    requests, rounds = planned.first_requests, planned.top_ups
    if not requests or not rounds:
        return []
    calls = sum(min(count, len(requests)) for count in rounds)
    told = f"{' + '.join(map(str, rounds))} questions in top-up rounds ({MISSING_AFTER_A_ROUND:.0%} missing after each)"
    return [_row(planned, requests, calls, told)]


def judges(planned: Planned) -> list[CostRow]:
    """Every judge about every question, first round and top-ups, with its votes; nothing is taken to be dropped."""
    settings = planned.settings
    items = planned.questions + sum(planned.top_ups)
    rows: list[CostRow] = []
    if not items:
        return rows
    votes = settings.filters.judges.votes
    share = 1.0 if settings.filters.judges.vote_on == "all" else VOTED_ON
    for judge in enabled_judges(settings):
        asked, told = items, f"{items} questions"
        if judge is CLOSED_BOOK:
            models = settings.filters.judges.closed_book_models or [settings.claude.models.judge]
            attempts = settings.filters.judges.closed_book_attempts
            for model in models:
                stand_ins = [answer_request(_QUESTION, str(n), model, settings, n) for n in range(_few(items))]
                about = f"{items} questions x {attempts} attempts"
                rows.append(_row(planned, stand_ins, items * attempts, about, JUDGE_OUTPUT_TOKENS))
            asked = math.ceil(items * attempts * len(models) * KNOWN)
            told = f"{asked} answers ({KNOWN:.0%} taken to know one)"
        calls = asked + math.ceil(asked * share) * (votes - 1)
        about = f"{told} x {votes} votes on {share:.0%}"
        rows.append(_row(planned, _judged(judge, asked, settings), calls, about, JUDGE_OUTPUT_TOKENS))
    return rows


CONTRIBUTORS: list[Contributor] = [first_round, top_up_rounds, judges]
"""Who will ask something, in the order of the run."""


def _few(count: int) -> int:
    return max(1, min(count, _BUILT_AT_MOST))


def _judged(judge: Judge, count: int, settings: Settings) -> list[Request]:
    fields = {
        "question": _QUESTION, "answer": _ANSWER, "reference": _ANSWER, "spans": [_SPAN, _SPAN], "type": "procedure",
        "difficulty": "easy", "hops": "single",
    }  # fmt: skip
    return [judge_request(judge, fields, str(number), settings, vote=number) for number in range(_few(count))]


@dataclass(frozen=True, slots=True)
class _Each:
    """One call of a kind, on average."""

    input_tokens: float
    output_tokens: float
    usd: Decimal
    list_usd: Decimal
    """Without a cache."""
    basis: str


def _row(
    planned: Planned, stand_ins: Sequence[Request], calls: int, told: str, output_tokens: int | None = None
) -> CostRow:
    """Return the forecast for ``calls`` requests like ``stand_ins``, of lengths measured where the ledger knows any.

    As many of them are taken to be in the ledger already as of the first round's.
    """
    task, model = stand_ins[0].task, stand_ins[0].model
    each = _measured(planned, task, model) or _estimated(planned, stand_ins, output_tokens)
    to_pay = math.ceil(calls * planned.fresh_share)
    return CostRow(
        task, model, calls, to_pay, round(each.input_tokens * calls), round(each.output_tokens * calls),
        str(_readable(each.usd * to_pay)), str(_readable(each.list_usd * calls)), f"forecast: {told}; {each.basis}",
    )  # fmt: skip


def _measured(planned: Planned, task: str, model: str) -> _Each | None:
    found = average_lengths(planned.claude.ledger).get((task, model))
    if found is None or found.replies < ENOUGH_REPLIES:
        return None
    prices, batch = planned.claude.prices, planned.settings.claude.backend == "batch"
    basis = f"lengths as of {found.replies} replies in the ledger"
    usd, listed = prices.cost(model, found.usage, batch), prices.cost(model, found.uncached, batch)
    return _Each(found.uncached.input_tokens, found.usage.output_tokens, usd, listed, basis)


def _estimated(planned: Planned, stand_ins: Sequence[Request], output_tokens: int | None) -> _Each:
    prices, settings, count = planned.claude.prices, planned.settings.claude, len(stand_ins)
    found = forecast(stand_ins, settings, prices, output_tokens=output_tokens)
    listed = estimate(stand_ins, prices, settings.backend == "batch", output_tokens=output_tokens).cost_usd
    basis = f"{found.basis}, {found.output_tokens // count:,} tokens of reply assumed"
    return _Each(found.input_tokens / count, found.output_tokens / count, found.cost_usd / count, listed / count, basis)


def _readable(amount: Decimal) -> Decimal:
    """Return a forecast as exact as anybody should read it."""
    return amount.quantize(Decimal("0.0001"))
