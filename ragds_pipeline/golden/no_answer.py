"""The no_answer set in freezing: what decisions let in, as items with a refusal and no passages.

Ids (``n-0001``) come from the same register as those of the main set (``g-0001``), under a prefix of their own, so that
nobody takes one for the other; they are given once and stay. The split is assigned within the set, by wording alone:
there is no evidence that two questions could share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ragds_pipeline.config import GoldenSettings
from ragds_pipeline.filters.code_filter import STAGE as CODE_STAGE
from ragds_pipeline.filters.duplicates import first_occurrences
from ragds_pipeline.filters.funnel import joined, judge_steps, step
from ragds_pipeline.filters.judges import AMBIGUITY
from ragds_pipeline.filters.no_answer_check import PARTLY_ANSWERED
from ragds_pipeline.filters.whole_kb import STAGE as KB_STAGE
from ragds_pipeline.golden.accept import STAGE as REVIEW_STAGE
from ragds_pipeline.golden.items import Prepared, prepare
from ragds_pipeline.golden.registry import NO_ANSWER_PREFIX, Registered
from ragds_pipeline.records import (
    AskedRow,
    Candidate,
    Decision,
    Drop,
    FunnelStep,
    GoldenItem,
    Outcome,
    RevalidatedItem,
    Verdict,
)
from ragds_pipeline.records_no_answer import CORRECTED, NO_ANSWER, NoAnswerCandidate
from ragds_pipeline.review.no_answer import NoAnswerResolved

REASONS = {
    "undecided": "nobody has decided on it yet; it is on the sheet of this set",
    "dropped_by_reviewer": "a reviewer said n; the note may say where it is answered",
    "correction_fails": "the question as a reviewer changed it does not pass; it is on the sheet again",
    "correction_unchecked": "the question as a reviewer changed it has not been asked of the KB yet",
    "document_confidential": "the document that it is a near miss of, or that says a part, has become confidential",
    "asked_in_main_set": "an item of the main set asks the same, in nearly the same words",
    "near_duplicate_question": "a kept question of this set asks the same, in nearly the same words",
}
"""Every reason for which a question is not accepted."""


@dataclass(frozen=True, slots=True)
class AcceptedNoAnswer:
    """The questions that people let through, with the decision on each, and those that they did not."""

    items: list[tuple[NoAnswerCandidate, Decision]]
    drops: list[Drop]
    step: FunnelStep


def accept_no_answer(
    candidates: Sequence[NoAnswerCandidate],
    resolved: NoAnswerResolved,
    decisions: Mapping[str, Decision],
    main_questions: Sequence[str],
    duplicate_score: float,
    confidential: Collection[str] = (),
) -> AcceptedNoAnswer:
    """Apply the decisions to the candidates of a revision, in their order.

    ``main_questions`` are those of the main set's items: what they ask has an answer, whoever kept a question like it.
    """
    kept: list[tuple[str, NoAnswerCandidate]] = []
    drops: list[Drop] = []
    for candidate in candidates:
        found = resolved.kept.get(candidate.id)
        reason, detail = _why_not(candidate, found, resolved, decisions.get(candidate.id), frozenset(confidential))
        if reason or found is None:
            drops.append(_drop(candidate, reason, detail))
        else:
            kept.append((candidate.id, found))
    questions = [*main_questions, *(found.question for _, found in kept)]
    first = len(main_questions)
    alike = first_occurrences(questions, frozenset(range(first)), threshold=duplicate_score)
    items = []
    for at, (id_, found) in enumerate(kept, start=first):
        if (other := alike.get(at)) is None:
            items.append((found, decisions[id_]))
        else:
            reason = "asked_in_main_set" if other < first else "near_duplicate_question"
            drops.append(_drop(found, reason, f"like {questions[other][:160]!r}"))
    return AcceptedNoAnswer(items, drops, step(REVIEW_STAGE, len(candidates), len(items), drops))


def _why_not(
    candidate: NoAnswerCandidate,
    found: NoAnswerCandidate | None,
    resolved: NoAnswerResolved,
    decision: Decision | None,
    secret: frozenset[str],
) -> tuple[str, str]:
    """Return reason and detail of what is not accepted, or two empty texts."""
    if decision is None:
        return "undecided", "no decision yet"
    who = f"{decision.reviewer or 'reviewer'} in {decision.source}"
    if candidate.id in resolved.dropped:
        return "dropped_by_reviewer", f"{who}: {decision.note}" if decision.note else who
    if candidate.id in resolved.pending:
        return "correction_unchecked", f"{who} changed the question; materialise no_answer_corrections"
    if found is None:
        cause = resolved.failed[candidate.id]
        return "correction_fails", f"{cause.reason}: {cause.detail}; it is on the sheet again"
    if rests_on := sorted(secret & {found.document_path, *(each.document_path for each in found.partly)}):
        return "document_confidential", f"{', '.join(rests_on)} is confidential now"
    return "", ""


def _drop(candidate: NoAnswerCandidate, reason: str, detail: str) -> Drop:
    return Drop(
        stage=REVIEW_STAGE,
        reason=reason,
        detail=detail,
        document_path=candidate.document_path,
        item_id=candidate.id,
        question=candidate.question,
        type=NO_ANSWER,
        language=candidate.language,
        round=candidate.round,
        payload="",
    )


def prepare_no_answer(
    accepted: Sequence[tuple[NoAnswerCandidate, Decision]],
    register: Sequence[Registered],
    source_version: str,
    settings: GoldenSettings,
    verdicts: Sequence[Verdict],
    duplicate_score: float,
    came_over: Sequence[RevalidatedItem] = (),
) -> Prepared:
    """Return the items of the no_answer set, as :func:`prepare` does those of the main set.

    ``came_over`` are the items of the last frozen set. Where they come from stays; what the KB was asked is told as of
    now where it was asked again.
    """
    said = [verdict for candidate, _ in accepted for verdict in _said(candidate, verdicts)]
    as_main = [(_as_candidate(candidate), decision) for candidate, decision in accepted]
    mine = [item for item in came_over if item.member == NO_ANSWER]
    ready = prepare(as_main, register, source_version, settings, said, duplicate_score, mine, NO_ANSWER_PREFIX)
    again = {item.id for item in mine if item.outcome == Outcome.ASKED_AGAIN}
    return replace(ready, items=[_asked_anew(item, said) if item.id in again else item for item in ready.items])


def _asked_anew(item: GoldenItem, said: Sequence[Verdict]) -> GoldenItem:
    mine = [f"{v.stage}:{v.reason}" for v in said if v.candidate_id == item.provenance.candidate_id]
    return replace(item, provenance=replace(item.provenance, verdicts=(f"{CODE_STAGE}:ok", *mine)))


def _as_candidate(candidate: NoAnswerCandidate) -> Candidate:
    """Return the question in the form in which ids, split and items are made: with no evidence at all.

    It is known again by its root, so that neither a correction nor something found against it gives it another id.
    """
    return Candidate(
        id=candidate.id,
        draft_id=candidate.draft_id,
        document_path=candidate.document_path,
        chunk_id="",
        question=candidate.question,
        answer=candidate.answer,
        type=NO_ANSWER,
        difficulty="",
        hops="",
        language=candidate.language,
        source_version=candidate.source_version,
        evidence=(),
        origin=candidate.origin,
        parent_id=candidate.root_id,
        round=candidate.round,
        request_key=candidate.request_key,
        model=candidate.model,
        prompt_version=candidate.prompt_version,
    )


def _said(candidate: NoAnswerCandidate, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts that the frozen item tells of, and of how much of the KB it was asked."""
    # A corrected question is another one than its original was judged as; a corrected refusal is not.
    ids = {candidate.id} if candidate.origin == CORRECTED else {candidate.id, candidate.parent_id}
    judged = [v for v in verdicts if v.candidate_id in ids and v.stage == AMBIGUITY.name]
    word = PARTLY_ANSWERED if candidate.partly else "ok"
    coverage = f"{word} ({candidate.documents_asked} of {candidate.documents_askable} documents asked"
    coverage += f", {candidate.documents_confidential} confidential not)" if candidate.documents_confidential else ")"
    return [
        *(Verdict(candidate.id, v.stage, True, v.reason, v.detail) for v in judged[:1]),
        Verdict(candidate.id, KB_STAGE, True, coverage, ""),
    ]


def no_answer_steps(
    asked: Sequence[AskedRow],
    made: int,
    proposed: int,
    verdicts: Sequence[Verdict],
    drops: Sequence[Drop],
    judged: bool,
    asked_again: int = 0,
) -> list[FunnelStep]:
    """Return the funnel up to the review.

    Args:
        asked: All requests for near misses.
        made: Near misses that came back.
        proposed: Questions that the main set proposed.
        verdicts: Those of the ambiguity judge and of the check of the whole KB.
        drops: Drops of all these stages.
        judged: Whether the ambiguity judge was asked.
        asked_again: Questions of the last frozen set that the KB is asked again.
    """
    by_stage = {stage: [d for d in drops if d.stage == stage] for stage in ("generate", "code", KB_STAGE)}
    came_in = sum(max(row.asked, row.drafts + row.drops) for row in asked) + proposed
    seen = [verdict for verdict in verdicts if verdict.stage == KB_STAGE]
    flagged = sum(verdict.reason == PARTLY_ANSWERED for verdict in seen)
    ambiguity = judge_steps([AMBIGUITY] if judged else [], verdicts, drops)
    left = ambiguity[0].came_in if ambiguity else len(seen)
    return [
        step("generate", came_in, made + proposed, by_stage["generate"], f"{proposed} proposed by the main set"),
        joined(step("code", made + proposed + asked_again, left, by_stage["code"]), asked_again),
        *ambiguity,
        step(
            KB_STAGE, len(seen), sum(verdict.passed for verdict in seen), by_stage[KB_STAGE],
            f"{flagged} answered in part, for people" if flagged else "",
        ),
    ]  # fmt: skip
