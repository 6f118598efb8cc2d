"""Which candidates still need a person, and what that person is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ragds_pipeline.records import Candidate
from ragds_pipeline.review.rows import ReviewRow

OPEN_MARK, CLOSE_MARK = "⟦", "⟧"


def review_row(candidate: Candidate, text: str, context_chars: int) -> ReviewRow:
    """Return the row of one candidate; ``text`` is its document's normalised text."""
    return ReviewRow(
        id=candidate.id,
        chunk_id=candidate.chunk_id,
        type=candidate.type,
        question=candidate.question,
        answer=candidate.answer,
        evidence=tuple(e.content for e in candidate.evidence),
        context=_context(candidate, text, context_chars),
    )


def _context(candidate: Candidate, text: str, width: int) -> str:
    """Return the text around each span, the span itself between brackets, and a word where it stands elsewhere too."""
    parts = []
    for span in candidate.evidence:
        start, end = max(0, span.start_char - width), min(len(text), span.end_char + width)
        before = ("…" if start else "") + text[start : span.start_char]
        after = text[span.end_char : end] + ("…" if end < len(text) else "")
        shown = f"{before}{OPEN_MARK}{span.content}{CLOSE_MARK}{after}"
        if span.alternatives:
            others = ", ".join(sorted({place.document_path for place in span.alternatives}))
            shown += f"\n(the same text also stands {len(span.alternatives)}× in {others})"
        parts.append(shown)
    return f"{candidate.document_path}\n" + "\n\n".join(parts)


def review_rows(candidates: Iterable[Candidate], texts: Mapping[str, str], context_chars: int) -> dict[str, ReviewRow]:
    """Return the rows of all candidates by id, in their order."""
    return {c.id: review_row(c, texts[c.document_path], context_chars) for c in candidates}


def undecided(candidates: Sequence[Candidate], decided: Collection[str]) -> list[Candidate]:
    """Return the candidates that nobody has decided on, documents together, in the order of the text."""
    left = [candidate for candidate in candidates if candidate.id not in decided]
    return sorted(left, key=lambda c: (c.document_path, c.evidence[0].start_char, c.id))
