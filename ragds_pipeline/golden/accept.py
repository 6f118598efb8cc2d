"""Which candidates the decisions let into the golden set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import Documents
from ragds_pipeline.filters.funnel import step
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Decision, Drop, FunnelStep
from ragds_pipeline.review.resolve import resolve

STAGE = "review"

REASONS = {
    "undecided": "nobody has decided on it yet; it is on the review sheet",
    "dropped_by_reviewer": "a reviewer said n",
    "correction_fails": "a reviewer's correction no longer passes the code filter; it is on the review sheet again",
    "document_confidential": "a document that it rests on has become confidential",
}
"""Every reason for which a candidate is not accepted."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The candidates that people let through, with the decision on each, and those that they did not."""

    items: list[tuple[Candidate, Decision]]
    drops: list[Drop]
    step: FunnelStep


def accept(
    candidates: Sequence[Candidate],
    decisions: Mapping[str, Decision],
    outlines: Mapping[str, Outline],
    documents: Documents,
    settings: FilterSettings,
    confidential: Collection[str] = (),
) -> Accepted:
    """Apply the decisions that count (by candidate id) to the candidates of a revision, in their order.

    ``confidential`` are the documents that are so now: a candidate may be older than that. What rests on one is
    dropped, and no item names a place in one.
    """
    secret = frozenset(confidential)
    resolved = resolve(candidates, decisions, outlines, documents, settings)
    items: list[tuple[Candidate, Decision]] = []
    drops: list[Drop] = []
    for candidate in candidates:
        decision = decisions.get(candidate.id)
        found = resolved.kept.get(candidate.id) or resolved.corrected.get(candidate.id)
        if decision is None:
            drops.append(_drop(candidate, "undecided", "no decision yet"))
        elif candidate.id in resolved.dropped:
            note = f": {decision.note}" if decision.note else ""
            drops.append(_drop(candidate, "dropped_by_reviewer", f"{_who(decision)}{note}"))
        elif found is None:
            cause = resolved.failed[candidate.id]
            detail = f"{cause.reason}: {cause.detail}; it is on the review sheet again"
            # Under the candidate's id, which people know, not that of the draft that the correction made.
            drops.append(replace(cause, stage=STAGE, reason="correction_fails", detail=detail, item_id=candidate.id))
        elif rests_on := sorted(secret & {found.document_path, *(e.document_path for e in found.evidence)}):
            drops.append(_drop(candidate, "document_confidential", f"{', '.join(rests_on)} is confidential now"))
        else:
            items.append((_without_places_in(secret, found), decision))
    return Accepted(items, drops, step(STAGE, len(candidates), len(items), drops))


def _without_places_in(secret: frozenset[str], candidate: Candidate) -> Candidate:
    evidence = tuple(
        replace(e, alternatives=tuple(place for place in e.alternatives if place.document_path not in secret))
        for e in candidate.evidence
    )
    return replace(candidate, evidence=evidence)


def _who(decision: Decision) -> str:
    return f"{decision.reviewer or 'reviewer'} in {decision.source}"


def _drop(candidate: Candidate, reason: str, detail: str) -> Drop:
    return Drop(
        stage=STAGE,
        reason=reason,
        detail=detail,
        document_path=candidate.document_path,
        item_id=candidate.id,
        question=candidate.question,
        type=candidate.type,
        language=candidate.language,
        round=candidate.round,
        payload="",
    )
