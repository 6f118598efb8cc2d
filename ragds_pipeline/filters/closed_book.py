"""Closed book: can the question be answered without the document? Then it measures no retrieval.

A model answers from what it knows, "unknown" allowed; a judge compares each answer with the reference. One correct
answer among all attempts of all models drops the item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ragds_pipeline.candidates.fencing import fence
from ragds_pipeline.candidates.prompts import Prompt, load_prompt
from ragds_pipeline.claude import Failure, Reply, Request
from ragds_pipeline.claude.json_reader import UnreadableReply, read_json
from ragds_pipeline.config import Settings, TaskModel
from ragds_pipeline.filters.judges import CLOSED_BOOK, PROMPTS, output_params, rubric_version
from ragds_pipeline.filters.judging import NO_VERDICT, OK, SPLIT, Asker, ask_judge, batch_above
from ragds_pipeline.records import Candidate, Verdict, printable

TASK = "answer_closed_book"

_SCHEMA = {
    "type": "object",
    "properties": {"known": {"type": "boolean"}, "answer": {"type": "string"}},
    "required": ["known", "answer"],
    "additionalProperties": False,
}
_STRUCTURED = "Give known (false if you cannot know it) and answer."
_PROMPTED = 'Reply with one JSON object and nothing else: {"known": true or false, "answer": "..."}'


@cache
def _prompt() -> Prompt:
    return load_prompt("closed_book_answer", PROMPTS)


def answer_request(question: str, item: str, model: str, settings: Settings, attempt: int) -> Request:
    """Return the request for one answer without the document.

    The judge's model answers with the effort and thinking that it judges with; others as they do by themselves, for
    not every model knows every effort.
    """
    prompt = _prompt()
    structured = settings.claude.structured_outputs
    params: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.filters.judges.max_tokens,
        "system": [{"type": "text", "text": f"{prompt.fill()}\n\n{_STRUCTURED if structured else _PROMPTED}"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": fence("question", question)}]}],
    }
    task = settings.claude.task("judge")
    task = task if task.model == model else TaskModel(model, None, None)
    params |= output_params(task, _SCHEMA if structured else None)
    return Request(TASK, item, params, prompt.version, attempt=attempt)


def read_answer(reply: Reply | Failure) -> str | None:
    """Return the answer given, an empty text for "unknown", or None where the reply cannot be read.

    A refusal counts as "unknown": whoever refuses has not answered from memory.
    """
    if isinstance(reply, Failure):
        return "" if reply.reason == "refused" else None
    try:
        value = read_json(reply.text, lambda found: isinstance(found, dict) and "known" in found).value
    except UnreadableReply:
        return None
    if value["known"] is not True:
        return ""
    answer = value.get("answer")
    return printable(answer.strip()) if isinstance(answer, str) else None


def closed_book(candidates: Sequence[Candidate], claude: Asker, settings: Settings) -> dict[str, Verdict]:
    """Return the verdict on each candidate by its id."""
    models = settings.filters.judges.closed_book_models or [settings.claude.models.judge]
    asked = {
        candidate.id: [
            answer_request(candidate.question, candidate.id, model, settings, attempt)
            for model in models
            for attempt in range(settings.filters.judges.closed_book_attempts)
        ]
        for candidate in candidates
    }
    replies = claude.ask([request for each in asked.values() for request in each], batch_above(settings))
    answers = {item: [read_answer(replies[request.key]) for request in each] for item, each in asked.items()}
    references = {candidate.id: candidate for candidate in candidates}
    compared = {
        f"{item}#{number}": {
            "question": references[item].question,
            "reference": references[item].answer,
            "answer": answer,
        }
        for item, given in answers.items()
        for number, answer in enumerate(given)
        if answer
    }
    judged = ask_judge(CLOSED_BOOK, compared, claude, settings)
    return {item: _combine(item, given, judged, settings) for item, given in answers.items()}


def _combine(item: str, answers: Sequence[str | None], judged: Mapping[str, Verdict], settings: Settings) -> Verdict:
    verdicts = [judged[key] for number in range(len(answers)) if (key := f"{item}#{number}") in judged]
    for reason in (CLOSED_BOOK.reason, NO_VERDICT, SPLIT):
        first = next((verdict for verdict in verdicts if verdict.reason == reason), None)
        if first is not None:
            break
    else:
        reason, first = OK, next(iter(verdicts), None)
    if reason == OK and all(answer is None for answer in answers):
        reason = NO_VERDICT
    unknown = sum(answer == "" for answer in answers)
    told = first.detail if first is not None else f"{unknown} of {len(answers)} attempts did not know"
    if reason == NO_VERDICT and first is None:
        told = "no attempt could be read"
    return Verdict(
        candidate_id=item,
        stage=CLOSED_BOOK.name,
        passed=reason in (OK, SPLIT),
        reason=reason,
        detail=told,
        model=settings.claude.models.judge,
        prompt_version=rubric_version(CLOSED_BOOK),
        votes=tuple(vote for verdict in verdicts for vote in verdict.votes),
    )
