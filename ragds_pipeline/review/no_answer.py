"""The no_answer set in review: what is shown of a question, and what decisions on it come to.

A reviewer who keeps a question says that nobody in the company could answer it from the documents. One who drops it
says, in the note, where it is answered. One who edits the refusal gets it as edited. One who edits the question has
asked another one: it is asked of the whole KB before it counts (``no_answer_corrected``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ragds_pipeline.filters.no_answer_check import place_of
from ragds_pipeline.records import Decision, Drop, Keep, draft_id
from ragds_pipeline.records_no_answer import (
    CORRECTED,
    NEAR_MISS,
    NO_ANSWER,
    UNSUPPORTED,
    NearPassage,
    NoAnswerCandidate,
    NoAnswerDraft,
    no_answer_id,
)
from ragds_pipeline.review.corrections import correction_of
from ragds_pipeline.review.importing import ReviewState
from ragds_pipeline.review.resolve import Resolved
from ragds_pipeline.review.rows import ReviewRow

STAGE = "review"

REASONS = {
    "evidence_edited": "a reviewer changed the nearest passages; if one of them answers, the row is dropped with n",
}
"""Every reason for which a correction is refused at once."""

SHOWN_CHARS = 500
"""Characters of a passage in the evidence cell; the whole cell is to be read in seconds."""

_NOT = "[nearest, does NOT answer]"

_ORIGINS = {
    NEAR_MISS: "written so that this document does not answer it",
    UNSUPPORTED: "a question of the main set that its evidence did not answer",
    CORRECTED: "a reviewer's edit",
}


def no_answer_row(candidate: NoAnswerCandidate) -> ReviewRow:
    """Return the row of one question. The evidence cell shows what comes nearest, and says that it does not answer."""
    return ReviewRow(
        id=candidate.id,
        chunk_id=candidate.chunk_id,
        type=NO_ANSWER,
        question=candidate.question,
        answer=candidate.answer,
        evidence=tuple(_shown(passage) for passage in candidate.nearest),
        context=_context(candidate),
    )


def no_answer_rows(candidates: Sequence[NoAnswerCandidate]) -> dict[str, ReviewRow]:
    """Return the rows of all questions by id, in their order."""
    return {candidate.id: no_answer_row(candidate) for candidate in candidates}


def _shown(passage: NearPassage) -> str:
    text = passage.content.strip()
    cut = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    return f"{_NOT} {passage.chunk_id}:\n{cut}"


def _context(candidate: NoAnswerCandidate) -> str:
    """Return what was asked of whom and what came of it; first what a person has to look at."""
    parts = [f"LOOK: answered in part? {place_of(found)}" for found in candidate.partly]
    parts += [
        f"LOOK: the confidential document {path} is among those that come nearest. No model was asked about it; if it "
        "answers, drop the row."
        for path in candidate.confidential
    ]
    asked = f"{candidate.documents_asked} of {candidate.documents_askable} documents were asked"
    if candidate.documents_confidential:
        asked += f", {candidate.documents_confidential} confidential not"
    none = "and say only a part" if candidate.partly else "and none of them answers"
    parts += [f"{asked}, {none}.", f"{candidate.document_path}: {_ORIGINS.get(candidate.origin, candidate.origin)}."]
    if candidate.missing:
        parts.append(f"What is missing: {candidate.missing}")
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class NoAnswerResolved:
    """What became of the questions that were decided on, by their ids; all others are open."""

    kept: Mapping[str, NoAnswerCandidate]
    """Kept as they are, or with another refusal, or (by the id of the original) with another question that was
    checked."""
    dropped: frozenset[str]
    pending: frozenset[str]
    """Decided, with another question that the KB has not been asked yet."""
    failed: Mapping[str, Drop]
    """Why a correction does not pass, by the id of the question: it is open again."""

    @property
    def closed(self) -> frozenset[str]:
        """Ids of the questions on which nobody has to decide any more."""
        return self.dropped | self.kept.keys() | self.pending


def edited_question(candidate: NoAnswerCandidate, decision: Decision) -> NoAnswerDraft | None:
    """Return the draft of a question that a reviewer changed, or None where the question was left alone."""
    if decision.keep != Keep.FIX:
        return None
    question = str(correction_of(decision)["question"]).strip()
    if question == candidate.question:
        return None
    return NoAnswerDraft(
        id=draft_id(CORRECTED, candidate.id, question),
        document_path=candidate.document_path,
        question=question,
        missing=candidate.missing,
        language=candidate.language,
        source_version=candidate.source_version,
        nearest=(),
        origin=CORRECTED,
        parent_id=candidate.id,
        root_id=candidate.root_id,
        source_id=candidate.source_id,
        round=candidate.round,
        request_key=candidate.request_key,
        model=candidate.model,
        prompt_version=candidate.prompt_version,
    )


def edited_questions(candidates: Sequence[NoAnswerCandidate], decisions: Mapping[str, Decision]) -> list[NoAnswerDraft]:
    """Return the drafts of all questions that reviewers changed, which the KB is to be asked."""
    decided = [(candidate, decisions[candidate.id]) for candidate in candidates if candidate.id in decisions]
    return [draft for candidate, decision in decided if (draft := edited_question(candidate, decision))]


def resolve_no_answer(
    candidates: Sequence[NoAnswerCandidate],
    decisions: Mapping[str, Decision],
    corrected: Sequence[NoAnswerCandidate] = (),
    correction_drops: Sequence[Drop] = (),
) -> NoAnswerResolved:
    """Apply the decisions that count (by candidate id).

    ``corrected`` are the changed questions that passed the check, ``correction_drops`` those that did not; a changed
    question that is in neither has not been asked yet.
    """
    checked = {(c.parent_id, c.question): c for c in corrected}
    stopped = {(drop.document_path, drop.question): drop for drop in correction_drops}
    kept: dict[str, NoAnswerCandidate] = {}
    pending: set[str] = set()
    failed: dict[str, Drop] = {}
    for candidate in candidates:
        decision = decisions.get(candidate.id)
        if decision is None or decision.keep == Keep.DROP:
            continue
        if decision.keep == Keep.KEEP:
            kept[candidate.id] = candidate
            continue
        fix = correction_of(decision)
        answer = str(fix["answer"]).strip()
        draft = edited_question(candidate, decision)
        # What was seen, not what would be shown now: the nearest passages may be others since.
        if fix["evidence"] != json.loads(decision.seen)["evidence"]:
            failed[candidate.id] = _edited_evidence(candidate)
        elif draft is None:
            kept[candidate.id] = _with_answer(candidate, answer, candidate.id)
        elif found := checked.get((candidate.id, draft.question)):
            kept[candidate.id] = _with_answer(found, answer if answer != candidate.answer else found.answer)
        elif cause := stopped.get((draft.document_path, draft.question)):
            failed[candidate.id] = cause
        else:
            pending.add(candidate.id)
    dropped = frozenset(c.id for c in candidates if c.id in decisions and decisions[c.id].keep == Keep.DROP)
    return NoAnswerResolved(kept, dropped, frozenset(pending), failed)


def _with_answer(candidate: NoAnswerCandidate, answer: str, parent_id: str = "") -> NoAnswerCandidate:
    """Return the question with another refusal, under the id of what it now is."""
    if answer == candidate.answer:
        return candidate
    parent = candidate.parent_id or parent_id
    id_ = no_answer_id(candidate.document_path, candidate.question, answer, candidate.partly, candidate.confidential)
    return replace(candidate, id=id_, answer=answer, parent_id=parent)


def _edited_evidence(candidate: NoAnswerCandidate) -> Drop:
    return Drop(
        stage=STAGE,
        reason="evidence_edited",
        detail="the evidence cell shows what comes nearest and is not read back; if something in the documents answers "
        "the question, write n and say in the note where",
        document_path=candidate.document_path,
        item_id=candidate.id,
        question=candidate.question,
        type=NO_ANSWER,
        language=candidate.language,
        round=candidate.round,
        payload="",
    )


def with_no_answer_failure(row: ReviewRow, decision: Decision, failure: Drop) -> ReviewRow:
    """Return the row of a question whose correction does not pass: the context begins with the reason."""
    fix = correction_of(decision)
    told = (
        f"The correction by {decision.reviewer or 'a reviewer'} ({decision.source}) does not pass: {failure.reason} "
        f"({failure.detail}). It was:\n{fix['question']}\n{fix['answer']}"
    )
    return replace(row, context=f"{told}\n\n{row.context}")


@dataclass(frozen=True, slots=True)
class BothResolved:
    """What decisions on both sets come to, as far as an import asks."""

    closed: frozenset[str]
    failed: Mapping[str, Drop]

    @classmethod
    def of(cls, main: Resolved, no_answer: NoAnswerResolved) -> BothResolved:
        """Return both as one; no id is in both sets."""
        return cls(main.closed | no_answer.closed, {**main.failed, **no_answer.failed})


@dataclass(frozen=True)
class BothSets:
    """What returned sheets are read against: the rows of the main set and of the no_answer set."""

    main: ReviewState
    no_answer: Sequence[NoAnswerCandidate]

    @cached_property
    def rows(self) -> Mapping[str, ReviewRow]:
        """The rows of both sets by id."""
        return {**self.main.rows, **no_answer_rows(self.no_answer)}

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The decisions that count, by candidate id, in the order in which they were made."""
        return self.main.decisions

    @property
    def audited(self) -> Collection[str]:
        """Ids of the rows of the main set that people audit; the no_answer set has none."""
        return self.main.audited

    def resolved(self, decisions: Mapping[str, Decision]) -> BothResolved:
        """Return what ``decisions`` come to in both sets."""
        return BothResolved.of(self.main.resolved(decisions), resolve_no_answer(self.no_answer, decisions))
