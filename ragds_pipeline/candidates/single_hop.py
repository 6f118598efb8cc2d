"""Easy questions: one request shows one window of a document and asks for questions with answer, evidence and type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ragds_pipeline.candidates.fencing import fence
from ragds_pipeline.candidates.numbered import NumberedText, numbered
from ragds_pipeline.candidates.prompts import Prompt, load_prompt
from ragds_pipeline.candidates.windows import Window
from ragds_pipeline.claude import Request
from ragds_pipeline.config import Settings
from ragds_pipeline.kb.outline import Outline

TASK = "generate_easy"

LANGUAGE_NAMES = {
    "en": "English", "ja": "Japanese", "it": "Italian", "de": "German", "fr": "French", "es": "Spanish",
    "pt": "Portuguese", "nl": "Dutch", "zh": "Chinese", "ko": "Korean",
}  # fmt: skip

_EVIDENCE_RULES = {
    "sentences": (
        "The document is shown as numbered pieces, one a line: [7] is piece 7. Name the evidence by these numbers.\n"
        "  A table row says nothing without its header row: name both. Headings are pieces too; name one only where\n"
        "  the answer cannot be understood without it."
    ),
    "quotes": (
        "Copy each piece of evidence character by character from the document: whole sentences, list items or table\n"
        "  rows, never shortened, corrected or joined with another."
    ),
}

_PROMPTED_OUTPUT = (
    "Answer with one JSON object and nothing else, of this form:\n"
    '{"questions": [{"question": "...", "answer": "...", "type": "...", "%s": %s}]}'
)


@dataclass(frozen=True, slots=True)
class Shown:
    """One request with what is needed to read its reply."""

    request: Request
    outline: Outline
    window: Window
    asked: Mapping[str, int]
    """Questions asked for, by type."""
    vocabulary: tuple[str, ...]
    """Every type of question that the plan knows."""
    numbered: NumberedText

    @property
    def total(self) -> int:
        """Questions asked for in all."""
        return sum(self.asked.values())


@cache
def _prompt() -> Prompt:
    return load_prompt("single_hop")


def build(
    outline: Outline,
    window: Window,
    asked: Mapping[str, int],
    known_questions: Sequence[str],
    settings: Settings,
    round_: int = 0,
) -> Shown:
    """Return the request for ``asked`` questions about ``window``.

    The instructions and the document come first and are the same for every request about the window, so that they can
    be cached; what is asked for, and the questions that there are already, come last.
    """
    form = settings.candidates.evidence_form
    shown = numbered(outline.text, outline.sentences, outline.sections, window)
    prompt = _prompt()
    structured = settings.claude.structured_outputs
    system = prompt.fill(
        evidence_rule=_EVIDENCE_RULES[form],
        language=language_name(outline.language),
        output_rule=_output_rule(form, structured),
    )
    body = shown.render() if form == "sentences" else outline.text[window.start_char : window.end_char].strip()
    task = settings.claude.task("generator")
    params: dict[str, Any] = {
        "model": task.model,
        "max_tokens": settings.candidates.max_tokens,
        "system": [{"type": "text", "text": system}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": fence("document", body, title=outline.title, language=outline.language)},
                    {"type": "text", "text": _ask(asked, known_questions, settings)},
                ],
            }
        ],
    }
    output: dict[str, Any] = {}
    if structured:
        output["format"] = {"type": "json_schema", "schema": _schema(form, list(settings.plan.types))}
    if task.effort is not None:
        output["effort"] = task.effort
    if output:
        params["output_config"] = output
    if task.thinking is not None:
        params["thinking"] = {"type": task.thinking}
    item = f"{window.document_path}[{window.start_char}:{window.end_char}]"
    # The round is part of the key: a top-up may ask the very same again, and must not get the very same reply.
    request = Request(TASK, item, params, prompt.version, attempt=round_)
    return Shown(request, outline, window, dict(asked), tuple(settings.plan.types), shown)


def language_name(code: str) -> str:
    """Return a language as prompts name it."""
    return "whatever it is" if code == "und" else LANGUAGE_NAMES.get(code, code)


def evidence_key(form: str) -> str:
    """Return the name of the evidence field in a reply."""
    return "evidence_ids" if form == "sentences" else "evidence"


def _output_rule(form: str, structured: bool) -> str:
    if structured:
        return f"Give the evidence of each question in {evidence_key(form)}."
    return _PROMPTED_OUTPUT % (evidence_key(form), "[7, 8]" if form == "sentences" else '["..."]')


def _schema(form: str, types: list[str]) -> dict[str, Any]:
    item = {"type": "integer"} if form == "sentences" else {"type": "string"}
    properties = {
        "question": {"type": "string"},
        "answer": {"type": "string"},
        "type": {"type": "string", "enum": types},
        evidence_key(form): {"type": "array", "items": item},
    }
    question = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": question}},
        "required": ["questions"],
        "additionalProperties": False,
    }


def _ask(asked: Mapping[str, int], known_questions: Sequence[str], settings: Settings) -> str:
    total = sum(asked.values())
    lines = [f"Write {total} question{'s' if total > 1 else ''} about this document:"]
    for type_, count in asked.items():
        if count:
            note = settings.plan.type_notes.get(type_, "")
            lines.append(f"- {count} of type {type_}" + (f" ({note})" if note else ""))
    if known_questions:
        lines += ["", "There are already these questions about the document. Ask about something else:"]
        lines += [f"- {' '.join(question.split())}" for question in known_questions]
    return "\n".join(lines)
