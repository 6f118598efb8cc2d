"""Which candidates still need a person, and what that person is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ragds_pipeline.filters.judges import AMBIGUITY, CLASS, CLOSED_BOOK, SUPPORT
from ragds_pipeline.filters.judging import SPLIT
from ragds_pipeline.filters.verdict_reader import CORRECT, INCORRECT
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Decision, Drop, Evidence, Verdict
from ragds_pipeline.review.corrections import correction_of
from ragds_pipeline.review.rows import ReviewRow, join_spans

OPEN_MARK, CLOSE_MARK = "⟦", "⟧"


_QUESTIONS = {
    AMBIGUITY.name: "Has the question, read alone, exactly one meaning?",
    CLOSED_BOOK.name: "Was it answered without the document?",
    SUPPORT.name: "Does the evidence prove the answer, wholly?",
    CLASS.name: "Do type and difficulty fit?",
}


def judges_say(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return, by candidate id, what a reviewer is shown of split votes: the question, and a reason for each side."""
    said: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.reason == SPLIT:
            yes, no = verdict.votes.count(CORRECT), verdict.votes.count(INCORRECT)
            pro, _, con = verdict.detail.removeprefix(f"{CORRECT}: ").partition(f" / {INCORRECT}: ")
            question = _QUESTIONS.get(verdict.stage, verdict.stage)
            said.setdefault(verdict.candidate_id, []).append(f"{question}\n{yes}× yes: {pro}\n{no}× no: {con}")
    return {id_: "\n\n".join(each) for id_, each in said.items()}


def review_row(
    candidate: Candidate, outlines: Mapping[str, Outline], context_chars: int, judges: str = ""
) -> ReviewRow:
    """Return the row of one candidate; ``outlines`` hold its documents, ``judges`` is what split votes said."""
    return ReviewRow(
        id=candidate.id,
        chunk_id=candidate.chunk_id,
        type=candidate.type,
        question=candidate.question,
        answer=candidate.answer,
        evidence=tuple(e.content for e in candidate.evidence),
        context=_context(candidate, outlines, context_chars),
        judges=judges,
    )


def evidence_paths(candidates: Iterable[Candidate]) -> set[str]:
    """Return the documents that evidence of ``candidates`` stands in."""
    return {span.document_path for candidate in candidates for span in candidate.evidence}


def _context(candidate: Candidate, outlines: Mapping[str, Outline], width: int) -> str:
    """Return where the evidence stands (path and headings) and the text around it, spans between brackets.

    Spans of one document stand together, that of the first span first.
    """
    by_document: dict[str, list[Evidence]] = {}
    for span in candidate.evidence:
        by_document.setdefault(span.document_path, []).append(span)
    parts = [part for path, spans in by_document.items() for part in _windows(outlines[path], spans, width)]
    for span in candidate.evidence:
        if span.alternatives:
            others = ", ".join(sorted({place.document_path for place in span.alternatives}))
            parts.append(f"({span.content[:40]!r} also stands {len(span.alternatives)}× in {others})")
    return "\n\n".join(parts)


def _windows(outline: Outline, evidence: Iterable[Evidence], width: int) -> list[str]:
    """Return path and headings, then the text around each span; windows that touch are one: nothing is shown twice."""
    text = outline.text
    windows: list[tuple[int, int, list[Evidence]]] = []
    for span in sorted(evidence, key=lambda each: (each.start_char, each.end_char)):
        start, end = max(0, span.start_char - width), min(len(text), span.end_char + width)
        if windows and start <= windows[-1][1]:
            first, last, spans = windows.pop()
            windows.append((first, max(last, end), [*spans, span]))
        else:
            windows.append((start, end, [span]))
    headings = " › ".join(outline.passage_at(windows[0][2][0].start_char).heading_path)
    return [f"{outline.path}: {headings}" if headings else outline.path] + [
        _marked(text, *window) for window in windows
    ]


def _marked(text: str, start: int, end: int, spans: Sequence[Evidence]) -> str:
    shown, at = ["…"] if start else [], start
    for span in spans:
        if span.end_char <= at:
            continue  # it lies within the one before
        begin = max(at, span.start_char)
        shown += [text[at:begin], OPEN_MARK, text[begin : span.end_char], CLOSE_MARK]
        at = span.end_char
    return "".join([*shown, text[at:end], "…" if end < len(text) else ""])


def review_rows(
    candidates: Iterable[Candidate], outlines: Mapping[str, Outline], context_chars: int, said: Mapping[str, str] = {}
) -> dict[str, ReviewRow]:
    """Return the rows of all candidates by id, in their order; ``said`` as :func:`judges_say` returns it."""
    return {c.id: review_row(c, outlines, context_chars, said.get(c.id, "")) for c in candidates}


def with_failure(row: ReviewRow, decision: Decision, failure: Drop) -> ReviewRow:
    """Return the row of a candidate whose correction does not pass any more: the context begins with the reason."""
    corrected = correction_of(decision)
    spans = corrected["evidence"]
    told = (
        f"The correction by {decision.reviewer or 'a reviewer'} ({decision.source}) does not pass any more: "
        f"{failure.reason} ({failure.detail}). It was:\n{corrected['question']}\n{corrected['answer']}\n"
        f"{join_spans([str(span) for span in spans] if isinstance(spans, list) else [])}"
    )
    return replace(row, context=f"{told}\n\n{row.context}")


def still_open(candidates: Sequence[Candidate], closed: Collection[str]) -> list[Candidate]:
    """Return the candidates that need a person, documents together, in the order of the text."""
    left = [candidate for candidate in candidates if candidate.id not in closed]
    return sorted(left, key=lambda c: (c.document_path, c.evidence[0].start_char, c.id))
