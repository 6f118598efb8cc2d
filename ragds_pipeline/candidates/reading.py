"""From a reply to drafts. What cannot be read becomes a dropped row with a reason, never an exception.

For every request the sums hold: questions asked for (or rows returned, if more) = drafts + drops.
"""

from __future__ import annotations

from typing import Any

from ragds_pipeline.candidates.reply_rows import Unusable, holds_questions, listed, numbers_of, rows_of, text_of
from ragds_pipeline.candidates.single_hop import Shown, evidence_key
from ragds_pipeline.claude import Failure, FailureReason, Reply
from ragds_pipeline.claude.json_reader import UnreadableReply, read_json
from ragds_pipeline.records import Difficulty, Draft, Drop, Hops, Quote, canonical_json, draft_id, printable

STAGE = "generate"

REASONS = {
    "reply_<failure>": "the call failed or ended early; the name says how (refused, truncated, over_budget, ...)",
    "reply_unreadable": "no JSON of the form that was asked for",
    "row_truncated": "the reply ended inside this row",
    "row_not_an_object": "something else stands where a question belongs",
    "question_missing": "no question text",
    "answer_missing": "no answer text",
    "type_unknown": "a type that is none of the plan's",
    "text_broken": "half of a surrogate pair stands in a text",
    "evidence_missing": "no evidence given",
    "sentence_unknown": "evidence names a sentence that was not shown",
    "beyond_request": "more questions than were asked for",
    "not_returned": "fewer questions than were asked for",
}
"""Every reason for which reading drops a row."""


def read_reply(shown: Shown, reply: Reply | Failure, round_: int, form: str) -> tuple[list[Draft], list[Drop]]:
    """Return the drafts and the dropped rows of one reply."""
    if isinstance(reply, Failure) and not (reply.reason is FailureReason.TRUNCATED and reply.text):
        reason = f"reply_{reply.reason}"
        return [], [_drop(shown, round_, reason, reply.detail) for _ in range(shown.total)]
    try:
        found = read_json(reply.text, holds_questions)
    except UnreadableReply as error:
        return [], [_drop(shown, round_, "reply_unreadable", str(error), reply.text) for _ in range(shown.total)]
    rows = rows_of(found.value)
    cut = found.truncated or isinstance(reply, Failure)
    drafts: list[Draft] = []
    drops: list[Drop] = []
    for at, row in enumerate(rows):
        try:
            if len(drafts) >= shown.total:
                raise Unusable("beyond_request", f"{shown.total} were asked for")
            if found.truncated and at == len(rows) - 1:
                # It may look whole and yet lack a digit of its last sentence number.
                raise Unusable("row_truncated", "the reply ended inside this row, or right after it")
            drafts.append(_draft(shown, row, round_, form, reply.model))
        except Unusable as error:
            drops.append(_drop(shown, round_, error.reason, error.detail, canonical_json(row), row))
    for _ in range(shown.total - len(rows)):
        detail = f"{len(rows)} of {shown.total} came back" + (", the reply ended early" if cut else "")
        drops.append(_drop(shown, round_, "not_returned", detail))
    return drafts, drops


def _draft(shown: Shown, row: Any, round_: int, form: str, model: str) -> Draft:
    if not isinstance(row, dict):
        raise Unusable("row_not_an_object", f"found {canonical_json(row)[:80]}")
    question = text_of(row.get("question"), "question_missing")
    answer = text_of(row.get("answer"), "answer_missing")
    type_ = text_of(row.get("type"), "type_unknown").lower()
    known = {name.lower(): name for name in shown.vocabulary}
    if type_ not in known:
        raise Unusable("type_unknown", f"{type_!r} is none of {', '.join(shown.vocabulary)}")
    quotes = _quotes(shown, row, form)
    doc = shown.outline.document
    return Draft(
        id=draft_id(doc.path, type_, question, answer, [q.text for q in quotes], shown.request.key),
        document_path=doc.path,
        question=question,
        answer=answer,
        type=known[type_],
        difficulty=Difficulty.EASY,
        hops=Hops.SINGLE,
        language=doc.language,
        source_version=doc.source_version,
        quotes=tuple(quotes),
        window_start=shown.window.start_char,
        window_end=shown.window.end_char,
        origin="generated",
        parent_id="",
        round=round_,
        request_key=shown.request.key,
        model=model,
        prompt_version=shown.request.prompt_version,
    )


def _quotes(shown: Shown, row: dict[str, Any], form: str) -> list[Quote]:
    value = row.get(evidence_key(form), row.get("evidence", row.get("evidence_ids")))
    values = listed(value)
    if form == "quotes":
        quotes = [Quote(text, -1, -1) for text in (text_of(item, "evidence_missing") for item in values)]
    else:
        try:
            quotes = shown.numbered.quotes(numbers_of(values))
        except IndexError as error:
            raise Unusable("sentence_unknown", f"{error} shown; evidence {canonical_json(value)[:80]}") from error
    if not quotes:
        raise Unusable("evidence_missing", f"found {canonical_json(value)[:80]}")
    return quotes


def _drop(shown: Shown, round_: int, reason: str, detail: str, payload: str = "", row: Any = None) -> Drop:
    row = row if isinstance(row, dict) else {}
    question = row.get("question")
    type_ = row.get("type")
    return Drop(
        stage=STAGE,
        reason=reason,
        detail=printable(detail),
        document_path=shown.outline.path,
        item_id="",
        question=printable(question) if isinstance(question, str) else "",
        type=type_ if isinstance(type_, str) and type_ in shown.vocabulary else "",
        language=shown.outline.language,
        round=round_,
        payload=printable(payload[:20_000]),
        difficulty=Difficulty.EASY,
    )
