"""Which candidates the decisions let into the golden set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import Documents, code_filter, drop
from ragds_pipeline.filters.funnel import step
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Decision, Draft, Drop, FunnelStep, Keep
from ragds_pipeline.review.importing import corrected_draft, correction_of

STAGE = "review"

REASONS = {
    "undecided": "nobody has decided on it yet; it is on the review sheet",
    "dropped_by_reviewer": "a reviewer said n",
    "correction_fails": "a reviewer's correction no longer passes the code filter in this revision",
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
) -> Accepted:
    """Apply the decisions that count (by candidate id) to the candidates of a revision, in their order."""
    kept = [c for c in candidates if c.id in decisions and decisions[c.id].keep == Keep.KEEP]
    fixes = [(c, decisions[c.id]) for c in candidates if c.id in decisions and decisions[c.id].keep == Keep.FIX]
    drafts = [corrected_draft(candidate, correction_of(decision)) for candidate, decision in fixes]
    filtered = code_filter(drafts, outlines, documents, settings, known=kept)
    corrected = {c.draft_id: c for c in filtered.candidates}
    failed = {d.item_id: d for d in filtered.drops}
    by_parent: dict[str, Draft] = {draft.parent_id: draft for draft in drafts}
    items: list[tuple[Candidate, Decision]] = []
    drops: list[Drop] = []
    for candidate in candidates:
        decision = decisions.get(candidate.id)
        if decision is None:
            drops.append(_drop(candidate, "undecided", "no decision yet"))
        elif decision.keep == Keep.DROP:
            note = f": {decision.note}" if decision.note else ""
            drops.append(_drop(candidate, "dropped_by_reviewer", f"{_who(decision)}{note}"))
        elif decision.keep == Keep.KEEP:
            items.append((candidate, decision))
        elif (fixed := corrected.get(by_parent[candidate.id].id)) is not None:
            items.append((fixed, decision))
        else:
            cause = failed[by_parent[candidate.id].id]
            drops.append(drop(by_parent[candidate.id], "correction_fails", f"{cause.reason}: {cause.detail}", STAGE))
    return Accepted(items, drops, step(STAGE, len(candidates), len(items), drops))


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
