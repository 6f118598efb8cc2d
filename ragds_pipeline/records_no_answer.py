"""The vocabulary of the no_answer set: questions that the KB does not answer, from draft to what people are shown.

They have records of their own because they have no answer and no evidence to locate, so that none can be taken for a
candidate of the main set. Frozen, they are golden items like any other (``records.GoldenItem``), with a refusal as the
answer and no passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragds_pipeline.records import Quote, candidate_id

NO_ANSWER = "no_answer"
"""The type of every question of the set, and the name of the set."""

NEAR_MISS, UNSUPPORTED, CORRECTED = "near_miss", "unsupported", "corrected"
"""Where a question comes from: made to have no answer; a question of the main set that its evidence did not answer; a
reviewer's edit of a question."""


@dataclass(frozen=True, slots=True)
class NoAnswerDraft:
    """A question that may have no answer in the KB; the KB has not been asked yet."""

    id: str
    """``d-`` and 16 hex digits of the question and where it came from."""
    document_path: str
    """Document that the question is a near miss of."""
    question: str
    missing: str
    """What the KB would have to say, in the words of whoever wrote or proposed the question."""
    language: str
    source_version: str
    nearest: tuple[Quote, ...]
    """Sentences of the document that come nearest, as the writer pointed at them."""
    origin: str
    """``near_miss`` (made to have no answer), ``unsupported`` (a question of the main set that its evidence did not
    answer) or ``corrected`` (a reviewer's edit)."""
    parent_id: str
    """For ``corrected``: id of the candidate that it corrects. Else empty."""
    root_id: str
    """What a golden id and its side of the split hang on; see :func:`no_answer_root`. A correction has that of its
    original."""
    source_id: str
    """For ``unsupported``: id of the candidate or draft that the main set dropped. Else empty."""
    round: int
    request_key: str
    model: str
    prompt_version: str
    refusal: str = ""
    """The refusal that it has already, where it comes from the last frozen set; empty for that of its language."""
    decided_id: str = ""
    """Id of the candidate that it was in the last frozen set, which decisions are on. Else empty."""
    decided_on: tuple[str, ...] = ()
    """What a person was told to look at then (:func:`look_at`), as far as it is as it was: where nothing else is found
    now, it is the same candidate."""


@dataclass(frozen=True, slots=True)
class NearPassage:
    """A passage that comes near a question and does not answer it."""

    document_path: str
    chunk_id: str
    content: str
    score: float
    """BM25 score of the passage for the question; comparable within one question only."""


@dataclass(frozen=True, slots=True)
class KbAnswer:
    """What one window of one document says to one question."""

    draft_id: str
    document_path: str
    start_char: int
    end_char: int
    """The part of the document that was shown."""
    rank: int
    """Place of the document in the order of retrieval for this question, from 1."""
    attempt: int
    """0, or 1 where it was asked once more because the reply before could not be read."""
    answered: str
    """``yes``, ``partly``, ``no``, or ``none`` where the call failed or its reply could not be read."""
    reason: str
    """Why, in the model's words; for ``none`` what went wrong."""
    answer: str
    """The answer that was found, or empty."""
    quotes: tuple[Quote, ...]
    """The sentences it rests on, verbatim."""
    model: str
    prompt_version: str
    cost_usd: str
    """What the reply cost, also where it was paid in an earlier run; a decimal number."""
    replayed: bool
    """True where it came from the ledger or a recording, so that nothing was paid in this run."""
    request_key: str


@dataclass(frozen=True, slots=True)
class NoAnswerCandidate:
    """A question that the whole KB was asked and that nothing in it answers; nobody has kept it yet."""

    id: str
    """``c-`` and 16 hex digits of what a reviewer decides on; see :func:`no_answer_id`."""
    draft_id: str
    document_path: str
    chunk_id: str
    """Id of the nearest passage, or empty."""
    question: str
    answer: str
    """The refusal, in the language of the question."""
    language: str
    source_version: str
    nearest: tuple[NearPassage, ...]
    """The passages that come nearest, best first; none of a confidential document."""
    missing: str
    partly: tuple[KbAnswer, ...]
    """Documents that say part of the answer: a person has to look."""
    confidential: tuple[str, ...]
    """Confidential documents with a passage among the nearest: nobody was asked about them, a person has to look."""
    documents_asked: int
    documents_askable: int
    """Documents of the KB that may be shown to a model."""
    documents_confidential: int
    origin: str
    parent_id: str
    root_id: str
    source_id: str
    round: int
    request_key: str
    model: str
    prompt_version: str

    @property
    def flagged(self) -> bool:
        """Whether a person has to look at more than the question."""
        return bool(self.partly or self.confidential)


def planned_for(question: NoAnswerDraft | NoAnswerCandidate) -> bool:
    """Return whether a question counts towards ``plan.no_answer``; what the main set proposed comes on top of it.

    A correction counts as what it corrects does.
    """
    return question.origin == NEAR_MISS or (question.origin == CORRECTED and not question.source_id)


def no_answer_root(document_path: str, question: str) -> str:
    """Return the id of a question as it was first written, whatever is found against it later."""
    return candidate_id(document_path, NO_ANSWER, question, "", [])


def look_at(partly: Sequence[KbAnswer], confidential: Sequence[str]) -> list[str]:
    """Return what a person is told to look at, a line each: sentences that say a part, confidential documents."""
    lines = [
        f"{found.document_path}: {text}"
        for found in partly
        for text in [q.text for q in found.quotes] or [found.answer]
    ]
    return lines + [f"confidential: {path}" for path in confidential]


def no_answer_id(
    document_path: str,
    question: str,
    answer: str,
    partly: Sequence[KbAnswer] = (),
    confidential: Sequence[str] = (),
    changed_in: str = "",
) -> str:
    """Return the id of a candidate: a hash of the question, the refusal, and what a person was told to look at.

    The nearest passages are left out: they are shown as a help, and another ranking of the same KB is no reason to ask
    a reviewer again. ``changed_in`` is the revision in which a confidential document changed that a person looked at
    before: its path is the same, and nobody may take the old decision for one on the new text.
    """
    against = look_at(partly, confidential) + ([changed_in] if changed_in else [])
    return candidate_id(document_path, NO_ANSWER, question, answer, against)
