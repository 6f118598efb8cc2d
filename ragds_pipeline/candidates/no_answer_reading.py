"""From a reply to drafts of near misses, by the rules of ``reading``: what cannot be read is a drop with a reason.

For every request the sums hold: questions asked for (or rows returned, if more) = drafts + drops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragds_pipeline.candidates.numbered import NumberedText
from ragds_pipeline.candidates.reading import STAGE
from ragds_pipeline.candidates.reply_rows import Unusable, holds_questions, listed, numbers_of, rows_of, text_of
from ragds_pipeline.candidates.windows import Window
from ragds_pipeline.claude import Failure, FailureReason, Reply, Request
from ragds_pipeline.claude.json_reader import UnreadableReply, read_json
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Drop, canonical_json, draft_id, printable
from ragds_pipeline.records_no_answer import NEAR_MISS, NO_ANSWER, NoAnswerDraft, no_answer_root

REASONS = {
    "reply_<failure>": "the call failed or ended early; the name says how (refused, truncated, over_budget, ...)",
    "reply_unreadable": "no JSON of the form that was asked for",
    "row_truncated": "the reply ended inside this row",
    "row_not_an_object": "something else stands where a question belongs",
    "question_missing": "no question text",
    "missing_missing": "it does not say what the document leaves out",
    "text_broken": "half of a surrogate pair stands in a text",
    "nearest_missing": "no nearest sentence given",
    "sentence_unknown": "a nearest sentence that was not shown",
    "beyond_request": "more questions than were asked for",
    "not_returned": "fewer questions than were asked for",
}
"""Every reason for which reading drops a row."""


@dataclass(frozen=True, slots=True)
class AskedNearMisses:
    """One request with what is needed to read its reply."""

    request: Request
    outline: Outline
    window: Window
    total: int
    """Questions asked for."""
    numbered: NumberedText


def read_near_misses(
    asked: AskedNearMisses, reply: Reply | Failure, round_: int
) -> tuple[list[NoAnswerDraft], list[Drop]]:
    """Return the drafts and the dropped rows of one reply."""
    if isinstance(reply, Failure) and not (reply.reason is FailureReason.TRUNCATED and reply.text):
        return [], [_drop(asked, round_, f"reply_{reply.reason}", reply.detail) for _ in range(asked.total)]
    try:
        found = read_json(reply.text, holds_questions)
    except UnreadableReply as error:
        return [], [_drop(asked, round_, "reply_unreadable", str(error), reply.text) for _ in range(asked.total)]
    rows = rows_of(found.value)
    drafts: list[NoAnswerDraft] = []
    drops: list[Drop] = []
    for at, row in enumerate(rows):
        try:
            if len(drafts) >= asked.total:
                raise Unusable("beyond_request", f"{asked.total} were asked for")
            if found.truncated and at == len(rows) - 1:
                raise Unusable("row_truncated", "the reply ended inside this row, or right after it")
            drafts.append(_draft(asked, row, round_, reply.model))
        except Unusable as error:
            drops.append(_drop(asked, round_, error.reason, error.detail, canonical_json(row), row))
    cut = found.truncated or isinstance(reply, Failure)
    for _ in range(asked.total - len(rows)):
        detail = f"{len(rows)} of {asked.total} came back" + (", the reply ended early" if cut else "")
        drops.append(_drop(asked, round_, "not_returned", detail))
    return drafts, drops


def _draft(asked: AskedNearMisses, row: Any, round_: int, model: str) -> NoAnswerDraft:
    if not isinstance(row, dict):
        raise Unusable("row_not_an_object", f"found {canonical_json(row)[:80]}")
    question = text_of(row.get("question"), "question_missing")
    missing = text_of(row.get("missing"), "missing_missing")
    try:
        nearest = asked.numbered.quotes(numbers_of(listed(row.get("nearest_ids"))))
    except IndexError as error:
        raise Unusable("sentence_unknown", f"{error} shown") from error
    if not nearest:
        raise Unusable("nearest_missing", f"found {canonical_json(row.get('nearest_ids'))[:80]}")
    doc = asked.outline.document
    return NoAnswerDraft(
        id=draft_id(NO_ANSWER, doc.path, question, missing, [q.text for q in nearest], asked.request.key),
        document_path=doc.path,
        question=question,
        missing=missing,
        language=doc.language,
        source_version=doc.source_version,
        nearest=tuple(nearest),
        origin=NEAR_MISS,
        parent_id="",
        root_id=no_answer_root(doc.path, question),
        source_id="",
        round=round_,
        request_key=asked.request.key,
        model=model,
        prompt_version=asked.request.prompt_version,
    )


def _drop(asked: AskedNearMisses, round_: int, reason: str, detail: str, payload: str = "", row: Any = None) -> Drop:
    question = row.get("question") if isinstance(row, dict) else None
    return Drop(
        stage=STAGE,
        reason=reason,
        detail=printable(detail),
        document_path=asked.outline.path,
        item_id="",
        question=printable(question) if isinstance(question, str) else "",
        type=NO_ANSWER,
        language=asked.outline.language,
        round=round_,
        payload=printable(payload[:20_000]),
    )
