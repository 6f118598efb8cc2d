"""Near misses: questions that sound as if a document answered them, made so that it does not.

One request shows one window of a document. Whether anything else in the KB answers is not for the writer to say: each
question is asked of the whole KB later (``filters.whole_kb``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ragds_pipeline.candidates.fencing import fence
from ragds_pipeline.candidates.no_answer_reading import AskedNearMisses, read_near_misses
from ragds_pipeline.candidates.numbered import numbered
from ragds_pipeline.candidates.plan import AskableDocument, plan_questions
from ragds_pipeline.candidates.prompts import Prompt, load_prompt
from ragds_pipeline.candidates.single_hop import language_name
from ragds_pipeline.candidates.windows import Window, spread, windows
from ragds_pipeline.claude import Claude, Failure, Reply, Request
from ragds_pipeline.config import PlanSettings, Settings
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import AskedRow, Drop, PlanRow
from ragds_pipeline.records_no_answer import NO_ANSWER, NoAnswerDraft

TASK = "generate_no_answer"

_STRUCTURED = "Give each question with missing and nearest_ids."
_PROMPTED = (
    "Answer with one JSON object and nothing else, of this form:\n"
    '{"questions": [{"question": "...", "missing": "...", "nearest_ids": [7, 8]}]}'
)
_PROPERTIES: dict[str, Any] = {
    "question": {"type": "string"},
    "missing": {"type": "string"},
    "nearest_ids": {"type": "array", "items": {"type": "integer"}},
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _PROPERTIES,
                "required": list(_PROPERTIES),
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


@dataclass
class NearMisses:
    """What one round brought."""

    drafts: list[NoAnswerDraft] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    asked: list[AskedRow] = field(default_factory=list)


def plan_no_answer(settings: PlanSettings, documents: Sequence[AskableDocument]) -> list[PlanRow]:
    """Return how many near misses are asked from which document; they add up to ``settings.no_answer``.

    Languages and documents have the shares that they have in the main plan. Difficulty and hops are empty: there is
    nothing to find. Raises ConfigError as :func:`plan_questions` does.
    """
    if not settings.no_answer:
        return []
    as_main = {"questions": settings.no_answer, "difficulty": {"easy": 1.0}, "types": {NO_ANSWER: 1.0}}
    rows = plan_questions(settings.model_copy(update=as_main), documents)
    return [replace(row, difficulty="", hops="") for row in rows]


@cache
def _prompt() -> Prompt:
    return load_prompt(NO_ANSWER)


def build(
    outline: Outline, window: Window, asked: int, known_questions: Sequence[str], settings: Settings, round_: int = 0
) -> AskedNearMisses:
    """Return the request for ``asked`` near misses of ``window``.

    As with easy questions, what is the same for every request about the window comes first, so that it can be cached.
    """
    shown = numbered(outline.text, outline.sentences, outline.sections, window)
    structured = settings.claude.structured_outputs
    prompt = _prompt()
    rule = _STRUCTURED if structured else _PROMPTED
    system = prompt.fill(language=language_name(outline.language), output_rule=rule)
    task = settings.claude.task("generator")
    document = fence("document", shown.render(), title=outline.title, language=outline.language)
    params: dict[str, Any] = {
        "model": task.model,
        "max_tokens": settings.candidates.max_tokens,
        "system": [{"type": "text", "text": system}],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": document}, {"type": "text", "text": _ask(asked, known_questions)}],
            }
        ],
    }
    output: dict[str, Any] = {"format": {"type": "json_schema", "schema": _SCHEMA}} if structured else {}
    if task.effort is not None:
        output["effort"] = task.effort
    if output:
        params["output_config"] = output
    if task.thinking is not None:
        params["thinking"] = {"type": task.thinking}
    item = f"{window.document_path}[{window.start_char}:{window.end_char}]"
    # The round is part of the key: a top-up may ask the very same again, and must not get the very same reply.
    return AskedNearMisses(Request(TASK, item, params, prompt.version, attempt=round_), outline, window, asked, shown)


def _ask(asked: int, known_questions: Sequence[str]) -> str:
    lines = [f"Write {asked} near miss{'es' if asked > 1 else ''} of this document."]
    if known_questions:
        lines += ["", "There are already these. Ask about something else:"]
        lines += [f"- {' '.join(question.split())}" for question in known_questions]
    return "\n".join(lines)


def steps(outline: Outline, asked: int, settings: Settings, turn: int = 0) -> list[tuple[Window, int]]:
    """Return the requests for one document in order: which window, and how many questions.

    Only passages that may be asked about are shown: in a later revision those that are new or changed.
    """
    limit = settings.candidates.questions_per_request
    as_document = settings.candidates.model_copy(update={"unit": "document"})
    return [
        (window, min(limit, count - done))
        for window, count in spread(asked, windows(outline.askable, as_document), turn)
        for done in range(0, count, limit)
    ]


def first_requests(plan: Sequence[PlanRow], outlines: Mapping[str, Outline], settings: Settings) -> list[Request]:
    """Return the requests of the first round as they would be without knowing earlier questions, to estimate cost."""
    return [
        build(outlines[row.document_path], window, count, (), settings).request
        for row in plan
        for window, count in steps(outlines[row.document_path], row.planned, settings)
    ]


def generate(
    plan: Sequence[PlanRow],
    outlines: Mapping[str, Outline],
    known_questions: Mapping[str, Sequence[str]],
    claude: Claude,
    settings: Settings,
    round_: int = 0,
) -> NearMisses:
    """Ask for the near misses in ``plan``, in waves of one request for each document.

    ``known_questions`` are those there are already, by document; each request is told them and those of the requests
    before it. Raises RepliesMissing where the model cannot be reached at all.
    """
    result = NearMisses()
    waiting = {
        row.document_path: deque(steps(outlines[row.document_path], row.planned, settings, turn=round_)) for row in plan
    }
    questions = {path: list(known_questions.get(path, ())) for path in waiting}
    while any(waiting.values()):
        wave = [
            build(outlines[path], *left.popleft(), questions[path], settings, round_)
            for path, left in waiting.items()
            if left
        ]
        replies = claude.ask([asked.request for asked in wave])
        booked = {row.request_key for row in result.asked}
        for asked in wave:
            reply = replies[asked.request.key]
            drafts, drops = read_near_misses(asked, reply, round_)
            questions[asked.outline.path] += [draft.question for draft in drafts]
            result.drafts += drafts
            result.drops += drops
            told = _asked_row(asked, reply, round_, len(drafts), len(drops))
            # Two documents may show the very same; the reply to both was paid once.
            result.asked.append(replace(told, cost_usd="0") if told.request_key in booked else told)
            booked.add(told.request_key)
    return result


def _asked_row(asked: AskedNearMisses, reply: Reply | Failure, round_: int, drafts: int, drops: int) -> AskedRow:
    return AskedRow(
        round=round_,
        document_path=asked.outline.path,
        start_char=asked.window.start_char,
        end_char=asked.window.end_char,
        asked=asked.total,
        drafts=drafts,
        drops=drops,
        reply=str(reply.reason) if isinstance(reply, Failure) else "ok",
        model=reply.model or asked.request.model,
        cost_usd=str(reply.cost_usd),
        replayed=reply.replayed,
        request_key=asked.request.key,
    )
