"""Questions for the no_answer set before the KB is asked: those the main set proposes, and what code can drop.

In this order: the document may be shown, it is a question, nobody has asked it before. For every call: drafts in =
drafts kept + drops.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ragds_pipeline.config import NoAnswerSettings, PlanSettings
from ragds_pipeline.filters.code_filter import STAGE
from ragds_pipeline.filters.duplicates import first_occurrences
from ragds_pipeline.records import Drop, canonical_json, draft_id
from ragds_pipeline.records_no_answer import (
    CORRECTED,
    NO_ANSWER,
    UNSUPPORTED,
    NoAnswerCandidate,
    NoAnswerDraft,
    look_at,
    no_answer_root,
)
from ragds_pipeline.spans.match_key import key_of
from ragds_pipeline.storage.schemas import as_json

REASONS = {
    "document_confidential": "the document that it is a near miss of must not be shown to a model",
    "question_too_short": "too few characters to be a question that stands alone",
    "not_a_question": "no question mark, nor an ending that asks",
    "duplicate_question": "a question of the main set, or an earlier one of this set, asks the same in the same words",
    "near_duplicate_question": "the same in nearly the same words",
}
"""Every reason for which code drops a question of this set."""

MIN_CHARS = 8
"""Fewer characters, white space apart, name no subject. A short Japanese question has about a dozen."""

_ASKS = re.compile(r"[?؟]|;$|(?:か|かね|かな|の|吗|嗎|呢|까|요)[。.!」』)]*$")
"""A question mark of some script (``;`` at the end is the Greek one), or an ending that asks without one."""


@dataclass(frozen=True, slots=True)
class FilteredDrafts:
    """What the filter let through and what it did not."""

    drafts: list[NoAnswerDraft]
    drops: list[Drop]


def proposals(
    drops: Sequence[Drop], settings: NoAnswerSettings, plan: PlanSettings, source_version: str
) -> list[NoAnswerDraft]:
    """Return the questions that the main set dropped because their evidence did not answer them.

    They leave the main set as any drop does; here they begin anew. None where no such set is planned.
    """
    if not plan.no_answer:
        return []
    return [
        NoAnswerDraft(
            id=draft_id(UNSUPPORTED, drop.document_path, drop.question, drop.item_id),
            document_path=drop.document_path,
            question=drop.question,
            missing=f"main set, {drop.stage}: {drop.reason}. {drop.detail}",
            language=drop.language,
            source_version=source_version,
            nearest=(),
            origin=UNSUPPORTED,
            parent_id="",
            root_id=no_answer_root(drop.document_path, drop.question),
            source_id=drop.item_id,
            round=drop.round,
            request_key="",
            model="",
            prompt_version="",
        )
        for drop in drops
        if drop.reason in settings.proposals and drop.question.strip()
    ]


def draft_of(candidate: NoAnswerCandidate) -> NoAnswerDraft:
    """Return a question that was asked before as a draft, to be asked again or compared with. Its refusal stays, and so
    does its id where no more speaks against it than did.

    Where the writer pointed is left out: those offsets are of another revision.
    """
    return NoAnswerDraft(
        id=candidate.draft_id,
        document_path=candidate.document_path,
        question=candidate.question,
        missing=candidate.missing,
        language=candidate.language,
        source_version=candidate.source_version,
        nearest=(),
        origin=candidate.origin,
        parent_id=candidate.parent_id,
        root_id=candidate.root_id,
        source_id=candidate.source_id,
        round=candidate.round,
        request_key=candidate.request_key,
        model=candidate.model,
        prompt_version=candidate.prompt_version,
        refusal=candidate.answer,
        decided_id=candidate.id,
        decided_on=tuple(look_at(candidate.partly, candidate.confidential)),
    )


def filter_drafts(
    drafts: Sequence[NoAnswerDraft],
    main_questions: Sequence[str],
    confidential: Collection[str],
    duplicate_score: float,
    known: Sequence[NoAnswerDraft] = (),
) -> FilteredDrafts:
    """Filter ``drafts`` in their order.

    ``main_questions`` are those of the main set's candidates, which always come first: what they ask has an answer.
    ``known`` are drafts of this set that were let through before. A reviewer's edit is compared with the main set only:
    it takes the place of a question that it is like.
    """
    drops: list[Drop] = []
    sound = []
    for draft in drafts:
        reason, detail = _fault(draft, confidential)
        if reason:
            drops.append(drop_of(draft, reason, detail))
        else:
            sound.append(draft)
    kept = _without_duplicates(sound, main_questions, duplicate_score, known, drops)
    order = {draft.id: at for at, draft in enumerate(drafts)}
    drops.sort(key=lambda drop: order[drop.item_id])
    return FilteredDrafts(kept, drops)


def _fault(draft: NoAnswerDraft, confidential: Collection[str]) -> tuple[str, str]:
    if draft.document_path in confidential:
        return "document_confidential", f"{draft.document_path} is confidential"
    if len(key_of(draft.question)) < MIN_CHARS:
        return "question_too_short", f"{len(key_of(draft.question))} characters"
    if draft.origin != CORRECTED and not _ASKS.search(unicodedata.normalize("NFKC", draft.question.strip())):
        return "not_a_question", f"it ends with {draft.question.strip()[-20:]!r}"
    return "", ""


def _without_duplicates(
    drafts: Sequence[NoAnswerDraft],
    main_questions: Sequence[str],
    score: float,
    known: Sequence[NoAnswerDraft],
    drops: list[Drop],
) -> list[NoAnswerDraft]:
    own = [at for at, draft in enumerate(drafts) if draft.origin != CORRECTED]
    edited = [at for at, draft in enumerate(drafts) if draft.origin == CORRECTED]
    gone: set[int] = set()
    for group, before in ((own, known), (edited, ())):
        names = ["the main set"] * len(main_questions) + [d.id for d in before] + [drafts[at].id for at in group]
        questions = [*main_questions, *(d.question for d in before), *(drafts[at].question for at in group)]
        first = len(questions) - len(group)
        for at, kept in first_occurrences(questions, frozenset(range(first)), threshold=score).items():
            if at < first:
                continue
            same = questions[kept].split() == questions[at].split()
            reason = "duplicate_question" if same else "near_duplicate_question"
            detail = f"like {names[kept]}: {questions[kept][:120]!r}"
            drops.append(drop_of(drafts[group[at - first]], reason, detail))
            gone.add(group[at - first])
    return [draft for at, draft in enumerate(drafts) if at not in gone]


def drop_of(draft: NoAnswerDraft, reason: str, detail: str, stage: str = STAGE, item_id: str = "") -> Drop:
    """Return the record of a question that is let go; ``item_id`` is its draft's where not given."""
    return Drop(
        stage=stage,
        reason=reason,
        detail=detail,
        document_path=draft.document_path,
        item_id=item_id or draft.id,
        question=draft.question,
        type=NO_ANSWER,
        language=draft.language,
        round=draft.round,
        payload=canonical_json(as_json(draft)),
    )
