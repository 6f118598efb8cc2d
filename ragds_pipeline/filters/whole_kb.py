"""One question, one window of a document: the request that asks whether it answers, and what its reply says.

The order in which the KB is asked, and what the answers come to, is in ``no_answer_check``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragds_pipeline.candidates.fencing import fence
from ragds_pipeline.candidates.numbered import NumberedText, numbered
from ragds_pipeline.candidates.prompts import load_prompt
from ragds_pipeline.candidates.reply_rows import Unusable, listed, numbers_of
from ragds_pipeline.candidates.windows import Window, windows
from ragds_pipeline.claude import Failure, FailureReason, Reply, Request
from ragds_pipeline.claude.json_reader import UnreadableReply, read_json
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.judges import PROMPTS
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Quote, printable

STAGE = "whole_kb"
TASK = "ask_whole_kb"

YES, PARTLY, NO, NONE = "yes", "partly", "no", "none"
"""What a document says to a question; ``none`` where it could not be asked or its reply could not be read."""

_SAID_NOTHING = frozenset({FailureReason.REFUSED, FailureReason.TRUNCATED, FailureReason.EMPTY})
"""Failures that are replies: they are in the ledger, and the same request would get them for ever."""

_STRUCTURED = "Give them as reason, answered, piece_ids and answer."
_PROMPTED = (
    "Reply with one JSON object and nothing else:\n"
    '{"reason": "...", "answered": "yes" or "partly" or "no", "piece_ids": [7, 8], "answer": "..."}'
)
_PROPERTIES: dict[str, Any] = {
    "reason": {"type": "string"},
    "answered": {"type": "string", "enum": [YES, PARTLY, NO]},
    "piece_ids": {"type": "array", "items": {"type": "integer"}},
    "answer": {"type": "string"},
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """One window of a document as it is shown with every question."""

    outline: Outline
    window: Window
    numbered: NumberedText
    block: dict[str, Any]
    """The content block with the document: one object for all questions, which keeps thousands of requests small."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one reply says."""

    answered: str
    reason: str
    answer: str = ""
    quotes: tuple[Quote, ...] = ()
    again: bool = False
    """True where asking once more may help: there was a reply, and nothing could be read from it."""


def shown_windows(outline: Outline, settings: Settings) -> list[ShownWindow]:
    """Return the windows in which a document is asked, in order; one with nothing to read in it is left out."""
    size = {"unit": "document", "request_max_chars": settings.no_answer.request_max_chars}
    found = []
    for window in windows(outline.passages, settings.candidates.model_copy(update=size)):
        shown = numbered(outline.text, outline.sentences, outline.sections, window)
        if shown.sentences:
            text = fence("document", shown.render(), title=outline.title, language=outline.language)
            found.append(ShownWindow(outline, window, shown, {"type": "text", "text": text}))
    return found


def kb_request(shown: ShownWindow, question: str, item: str, settings: Settings, attempt: int = 0) -> Request:
    """Return the request that asks one window; the window comes first, so that all questions share it in the cache."""
    structured = settings.claude.structured_outputs
    prompt = load_prompt(STAGE, PROMPTS)
    task = settings.claude.task(settings.no_answer.model)
    params: dict[str, Any] = {
        "model": task.model,
        "max_tokens": settings.no_answer.max_tokens,
        "system": [{"type": "text", "text": prompt.fill(form=_STRUCTURED if structured else _PROMPTED)}],
        "messages": [{"role": "user", "content": [shown.block, {"type": "text", "text": fence("question", question)}]}],
    }
    output: dict[str, Any] = {"format": {"type": "json_schema", "schema": _SCHEMA}} if structured else {}
    if task.effort is not None:
        output["effort"] = task.effort
    if output:
        params["output_config"] = output
    if task.thinking is not None:
        params["thinking"] = {"type": task.thinking}
    return Request(TASK, f"{item} {shown.outline.path}", params, prompt.version, attempt=attempt)


def read_found(shown: ShownWindow, reply: Reply | Failure) -> Found:
    """Return what a reply says. Nothing is guessed: what cannot be read is ``none``, never ``no``.

    An answer that points at no piece that was shown proves nothing: it counts as ``partly``, for a person to look.
    """
    if isinstance(reply, Failure):
        told = printable(f"{reply.reason}: {reply.detail}"[:300])
        return Found(NONE, told, again=reply.reason in _SAID_NOTHING)
    try:
        found = read_json(reply.text, lambda value: isinstance(value, dict) and "answered" in value)
    except UnreadableReply as error:
        return Found(NONE, printable(f"unreadable: {error}"[:300]), again=True)
    value: dict[str, Any] = found.value
    word = value["answered"].strip().casefold() if isinstance(value["answered"], str) else ""
    if found.truncated or word not in (YES, PARTLY, NO):
        what = "the reply ended early" if found.truncated else f"answered is {value['answered']!r}"
        return Found(NONE, printable(f"unreadable: {what}"[:300]), again=True)
    reason = _line(value.get("reason")) or "no reason given"
    if word == NO:
        return Found(NO, reason)
    quotes = _quotes(shown, value.get("piece_ids"))
    if not quotes and word == YES:
        word, reason = PARTLY, f"{reason} (it names no piece that was shown)"
    return Found(word, reason, _line(value.get("answer")), quotes)


def _quotes(shown: ShownWindow, value: Any) -> tuple[Quote, ...]:
    """Return the pieces named; numbers that were not shown are passed over."""
    numbers: list[int] = []
    for item in listed(value):
        try:
            numbers += numbers_of([item])
        except Unusable:
            continue
    return tuple(shown.numbered.quotes(n for n in numbers if 1 <= n <= len(shown.numbered.sentences)))


def _line(value: Any) -> str:
    return printable(" ".join(value.split())[:600]) if isinstance(value, str) else ""
