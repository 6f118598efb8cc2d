"""A reviewer's correction: how it is written down with the decision, and as the draft that goes through the filters."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Mapping

from ragds_pipeline.records import Candidate, Decision, Draft, Evidence, Quote, draft_id
from ragds_pipeline.review.rows import ReviewRow


def content(row: ReviewRow) -> dict[str, object]:
    """Return what a correction consists of."""
    return {"question": row.question, "answer": row.answer, "evidence": list(row.evidence)}


def correction_of(decision: Decision) -> dict[str, object]:
    """Return the correction that a ``fix`` holds."""
    return dict(json.loads(decision.corrected))


def corrected_draft(candidate: Candidate, corrected: Mapping[str, object]) -> Draft:
    """Return the draft of a corrected item. Spans that the reviewer left alone keep their place.

    Several spans may have equal words, each at its own place: they are taken in their order, each once.
    """
    places: defaultdict[str, deque[Evidence]] = defaultdict(deque)
    for evidence in candidate.evidence:
        places[evidence.content].append(evidence)
    texts = corrected["evidence"]
    quotes = []
    for text in texts if isinstance(texts, list) else []:
        known = places[text].popleft() if places[text] else None
        quotes.append(Quote(text, known.start_char, known.end_char) if known else Quote(text, -1, -1))
    question, answer = str(corrected["question"]), str(corrected["answer"])
    return Draft(
        id=draft_id("corrected", candidate.id, question, answer, [quote.text for quote in quotes]),
        document_path=candidate.document_path,
        question=question,
        answer=answer,
        type=candidate.type,
        difficulty=candidate.difficulty,
        hops=candidate.hops,
        language=candidate.language,
        source_version=candidate.source_version,
        quotes=tuple(quotes),
        window_start=min(e.start_char for e in candidate.evidence),
        window_end=max(e.end_char for e in candidate.evidence),
        origin="corrected",
        parent_id=candidate.id,
        round=candidate.round,
        request_key=candidate.request_key,
        model=candidate.model,
        prompt_version=candidate.prompt_version,
        root_id=candidate.root_id,
    )
