"""Which question the money went to: its share of the request that brought it, and the judges' requests about it.

A request's cost is borne by the questions that came back readable, kept or not; a judge's by the candidate it was asked
about. What is of no single question (a reply without a readable one, a request of another kind) is the rest, so that
rows and rest come to the whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from ragds_pipeline.claude.spending import Call
from ragds_pipeline.costs.sums import GENERATE, money, stage_of
from ragds_pipeline.records import ItemCostRow

Row = Mapping[str, Any]

_SMALLEST = Decimal("1e-12")


@dataclass(frozen=True, slots=True)
class Questions:
    """What the tables of a revision say of its questions; rows with at least the columns named."""

    drafts: Sequence[Row]
    """``id, document_path, question, round, request_key``; also those of top-up rounds."""
    candidates: Sequence[Row]
    """``id, draft_id, document_path, question``, as they went to review."""
    drops: Sequence[Row]
    """``stage, reason, item_id, document_path, question, round``, of all stages."""
    golden: Mapping[str, str]
    """Golden id by the id of the candidate that is in the set, or that was corrected into it."""


@dataclass(frozen=True, slots=True)
class ItemCosts:
    """What questions cost, and the rest."""

    rows: tuple[ItemCostRow, ...]
    rest_usd: Decimal


def item_costs(calls: Iterable[Call], questions: Questions) -> ItemCosts:
    """Return what each question cost, drafts in their order, then candidates of which no draft is known."""
    generation, judging, whole = _by_question(calls)
    generated = _shares(generation, questions.drafts)
    candidate_of, dropped = _fates(questions)
    rows: list[ItemCostRow] = []
    for draft in questions.drafts:
        candidate = candidate_of.get(draft["id"], "")
        drop = dropped.get(candidate) or dropped.get(draft["id"])
        made, judged = generated[draft["id"]], judging.pop(candidate, Decimal(0)) if candidate else Decimal(0)
        rows.append(_row(draft["id"], candidate, draft, drop, questions.golden.get(candidate, ""), made, judged))
    told = {row.candidate_id for row in rows}
    for row in questions.candidates:  # of no draft here: people's own
        if row["id"] not in told:
            judged = judging.pop(row["id"], Decimal(0))
            golden = questions.golden.get(row["id"], "")
            rows.append(_row("", row["id"], row, dropped.get(row["id"]), golden, Decimal(0), judged))
    return ItemCosts(tuple(rows), whole - sum((row.cost_usd for row in rows), Decimal(0)))


def _by_question(calls: Iterable[Call]) -> tuple[dict[str, Decimal], defaultdict[str, Decimal], Decimal]:
    """Return the cost of generating requests by key, of others by the candidate they are about, and of all."""
    generation: dict[str, Decimal] = {}
    judging: defaultdict[str, Decimal] = defaultdict(Decimal)
    whole = Decimal(0)
    for call in calls:
        whole += call.cost_usd
        if stage_of(call.task) == GENERATE:
            generation[call.key] = call.cost_usd
        else:
            judging[call.item.partition("#")[0]] += call.cost_usd  # "#2": an answer about the same candidate
    return generation, judging, whole


def _shares(generation: Mapping[str, Decimal], drafts: Sequence[Row]) -> dict[str, Decimal]:
    """Return each draft's share of its request; what does not divide falls to the first."""
    sharers = Counter(draft["request_key"] for draft in drafts)
    shares: dict[str, Decimal] = {}
    begun: set[str] = set()
    for draft in drafts:
        key = draft["request_key"]
        cost, count = generation.get(key, Decimal(0)), sharers[key]
        share = (cost / count).quantize(_SMALLEST, ROUND_DOWN)
        shares[draft["id"]] = share if key in begun else cost - share * (count - 1)
        begun.add(key)
    return shares


def _fates(questions: Questions) -> tuple[dict[str, str], dict[str, Row]]:
    """Return the candidate that each draft became, and the drop of each candidate or draft that was dropped.

    A drop names its candidate and not the draft; the two are told by document, round and question.
    """
    candidate_of = {row["draft_id"]: row["id"] for row in questions.candidates if row["draft_id"]}
    draft_of = {(row["document_path"], row["round"], row["question"]): row["id"] for row in questions.drafts}
    drafts = {row["id"] for row in questions.drafts}
    dropped: dict[str, Row] = {}
    for drop in questions.drops:
        if not drop["item_id"]:
            continue
        dropped[drop["item_id"]] = drop
        draft = draft_of.get((drop["document_path"], drop["round"], drop["question"]))
        if drop["item_id"] not in drafts and draft is not None:
            candidate_of.setdefault(draft, drop["item_id"])
    return candidate_of, dropped


def _row(
    draft_id: str, candidate_id: str, told: Row, drop: Row | None, golden_id: str, generation: Decimal, judging: Decimal
) -> ItemCostRow:
    if golden_id:
        outcome = "golden"
    elif drop is not None:
        outcome = f"{drop['stage']}: {drop['reason']}"
    else:
        outcome = "kept" if candidate_id else "dropped"
    return ItemCostRow(
        draft_id, candidate_id, golden_id, told["document_path"], told["question"], outcome, money(generation),
        money(judging), money(generation) + money(judging),
    )  # fmt: skip
