"""The judges: what each is shown, and the request that asks it. One criterion each; a rubric is a file in ``prompts``.

A judge is shown fields by name (question, answer, spans, ...), from a candidate or from a labelled probe alike, so that
what is calibrated is what is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ragds_pipeline.candidates.fencing import fence
from ragds_pipeline.candidates.prompts import Prompt, load_prompt
from ragds_pipeline.claude import Request
from ragds_pipeline.claude.caching import cacheable
from ragds_pipeline.config import Settings, TaskModel
from ragds_pipeline.filters.verdict_reader import CORRECT, INCORRECT
from ragds_pipeline.records import Candidate

Fields = Mapping[str, Any]

PROMPTS = "ragds_pipeline.filters.prompts"

_STRUCTURED_FORM = "Give them as reason and verdict{needless}."
_TAG_FORM = (
    "Give them in exactly this form, after whatever you think:\n<reason>...</reason>{needless}\n<verdict>...</verdict>"
)


@dataclass(frozen=True, slots=True)
class Judge:
    """One criterion."""

    name: str
    """Name of the filter and of its rubric."""
    drops_on: str
    """The verdict on which an item is dropped."""
    reason: str
    """Reason code of a drop."""
    show: Callable[[Fields], str]
    """What the judge sees, from the fields by name."""
    names_needless: bool = False

    @property
    def task(self) -> str:
        """Name of the task in ledger and costs."""
        return f"judge_{self.name}"


def _question(fields: Fields) -> str:
    return fence("question", str(fields["question"]))


def _two_answers(fields: Fields) -> str:
    parts = [_question(fields), fence("reference", str(fields["reference"])), fence("answer", str(fields["answer"]))]
    return "\n".join(parts)


def _answer_and_spans(fields: Fields) -> str:
    spans = [fence(f"span-{number}", str(text)) for number, text in enumerate(fields["spans"], start=1)]
    return "\n".join([_question(fields), fence("answer", str(fields["answer"])), *spans])


def _classed(fields: Fields) -> str:
    claimed = f"type: {fields['type']}\ndifficulty: {fields['difficulty']}, {fields['hops']}"
    return "\n".join([_answer_and_spans(fields), fence("class", claimed)])


AMBIGUITY = Judge("ambiguity", INCORRECT, "ambiguous", _question)
CLOSED_BOOK = Judge("closed_book", CORRECT, "answerable_without_document", _two_answers)
SUPPORT = Judge("support", INCORRECT, "not_supported", _answer_and_spans, names_needless=True)
CLASS = Judge("class", INCORRECT, "wrong_class", _classed)

JUDGES = (AMBIGUITY, CLOSED_BOOK, SUPPORT, CLASS)
"""All judges in the order in which they are asked: an item that one drops is not sent to the next."""

REASONS = {
    AMBIGUITY.reason: "the question, read alone, has more than one meaning, or it is unclear what to answer",
    CLOSED_BOOK.reason: "a model answered it without the document, so it measures no retrieval",
    SUPPORT.reason: "the answer does not follow from the evidence alone, wholly",
    CLASS.reason: "the item is not of the type or the difficulty that it claims",
}
"""The reason for which each judge drops."""


def fields_of(candidate: Candidate) -> dict[str, Any]:
    """Return what judges are shown of a candidate."""
    return {
        "question": candidate.question,
        "answer": candidate.answer,
        "reference": candidate.answer,
        "type": candidate.type,
        "difficulty": candidate.difficulty,
        "hops": candidate.hops,
        "spans": [evidence.content for evidence in candidate.evidence],
    }


# Read once: a filter makes a request for each of thousands of items, and all of them share one rubric in memory.
@cache
def rubric(judge: Judge) -> Prompt:
    """Return the judge's rubric."""
    return load_prompt(judge.name, PROMPTS)


@cache
def rubric_version(judge: Judge) -> str:
    """Return the version of the judge's rubric together with the form its verdict takes."""
    return f"{rubric(judge).version}+{load_prompt('verdict_form', PROMPTS).version.split('@')[1]}"


def judge_request(judge: Judge, fields: Fields, item: str, settings: Settings, vote: int = 0) -> Request:
    """Return one request to a judge. The rubric is the system prompt, the same for all items, so it can be cached."""
    structured = settings.claude.structured_outputs
    types = _types(settings) if judge.name == CLASS.name else ""
    task = settings.claude.task("judge")
    params: dict[str, Any] = {
        "model": task.model,
        "max_tokens": settings.filters.judges.max_tokens,
        "system": _system(judge, types, structured),
        "messages": [{"role": "user", "content": [{"type": "text", "text": judge.show(fields)}]}],
    }
    params |= output_params(task, _schema(judge) if structured else None)
    return Request(judge.task, item, params, rubric_version(judge), attempt=vote)


def cached_rubric(judge: Judge, settings: Settings) -> str:
    """Return, in words, whether the judge's rubric can be read from the prompt cache, as all its requests begin so."""
    nothing = dict.fromkeys(("question", "answer", "reference", "type", "difficulty", "hops"), "")
    tokens, least = cacheable(judge_request(judge, {**nothing, "spans": []}, "", settings).params)
    if not settings.claude.caching:
        return "no: claude.caching is off"
    model = settings.claude.models.judge
    if tokens < least:
        return f"no: about {tokens} tokens, and {model} caches nothing shorter than {least}"
    return f"yes: about {tokens} tokens, of at least {least} for {model}"


def output_params(task: TaskModel, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parts of a request that say how hard to think and in which form to reply; empty where none is set."""
    output: dict[str, Any] = {}
    if schema is not None:
        output["format"] = {"type": "json_schema", "schema": schema}
    if task.effort is not None:
        output["effort"] = task.effort
    params: dict[str, Any] = {"output_config": output} if output else {}
    return params | ({"thinking": {"type": task.thinking}} if task.thinking is not None else {})


@cache
def _system(judge: Judge, types: str, structured: bool) -> list[dict[str, Any]]:
    """Return the system prompt; one and the same object for all requests, which nobody changes."""
    form = load_prompt("verdict_form", PROMPTS).fill(form=_form(judge, structured))
    text = rubric(judge).fill(**({"types": types} if types else {}))
    return [{"type": "text", "text": f"{text}\n\n{form}"}]


def _form(judge: Judge, structured: bool) -> str:
    if structured:
        return _STRUCTURED_FORM.format(
            needless=", and needless as the numbers of such spans" if judge.names_needless else ""
        )
    return _TAG_FORM.format(needless="\n<needless>numbers, or nothing</needless>" if judge.names_needless else "")


@cache
def _schema(judge: Judge) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": [CORRECT, INCORRECT]},
    }
    if judge.names_needless:
        properties["needless"] = {"type": "array", "items": {"type": "integer"}}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _types(settings: Settings) -> str:
    notes: Sequence[tuple[str, str]] = [(name, settings.plan.type_notes.get(name, "")) for name in settings.plan.types]
    return "\n".join(f"- {name}: {note}" if note else f"- {name}" for name, note in notes)
