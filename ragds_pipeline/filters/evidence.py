"""The first gate: the evidence stands in the text, at an exact place, and is fit to prove something.

One draft at a time becomes located evidence or a reason. Finding other places of the same text in the whole KB is
done for all drafts at once, in ``code_filter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ragds_pipeline.config import EvidenceSettings
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Draft, Evidence, Place, Quote, Span, SpanMismatch
from ragds_pipeline.spans.breaks import inside_grapheme, is_wide
from ragds_pipeline.spans.locate import Locator, Occurrence, QuoteTooShort, context, searchable_key

REASONS = {
    "evidence_not_found": "the quote stands nowhere in the document, white space, case and quotes apart",
    "evidence_too_short": "fewer characters than filters.evidence.min_key_chars, white space not counted",
    "evidence_no_words": "no letter or digit in it, as in a table's rule",
    "evidence_too_long": "a span longer than filters.evidence.max_chars",
    "evidence_cuts_word": "a span begins or ends inside a word",
    "evidence_crosses_sections": "a span runs from one section into another that is not part of it",
    "evidence_contained": "a span lies inside another span of the same item, or they overlap",
    "evidence_everywhere": "the same text stands in more places than filters.evidence.max_occurrences",
    "evidence_confidential": "the evidence is in a document that must not be shown to a model",
    "too_many_spans": "more spans than filters.evidence.max_spans",
}
"""Reasons that have to do with evidence."""


class Unfit(Exception):
    """The evidence of a draft does not hold; carries the reason code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def locate_evidence(draft: Draft, outline: Outline, locator: Locator, settings: EvidenceSettings) -> list[Evidence]:
    """Return the evidence of ``draft`` in the order of the text, without its alternatives elsewhere.

    ``locator`` is over ``outline.text``. Raises Unfit with a reason of :data:`REASONS`.
    """
    if len(draft.quotes) > settings.max_spans:
        raise Unfit("too_many_spans", f"{len(draft.quotes)} spans, {settings.max_spans} allowed")
    found = [_locate(quote, draft, outline, locator, settings) for quote in draft.quotes]
    found.sort(key=lambda e: (e.start_char, e.end_char))
    for earlier, later in pairwise(found):
        if later.start_char < earlier.end_char:
            raise Unfit("evidence_contained", f"{_shown(later.content)} lies in {_shown(earlier.content)}")
    return found


def _locate(quote: Quote, draft: Draft, outline: Outline, locator: Locator, settings: EvidenceSettings) -> Evidence:
    text = outline.text
    try:
        searchable_key(quote.text, settings.min_key_chars)
    except QuoteTooShort as error:
        raise Unfit("evidence_too_short", str(error)) from error
    if quote.start_char >= 0:
        try:
            Span(draft.document_path, quote.start_char, quote.end_char, quote.text).verify(text)
        except SpanMismatch as error:
            raise Unfit("evidence_not_found", str(error)) from error
        start, end, match = quote.start_char, quote.end_char, "sentence"
    else:
        start, end, match = _choose(quote.text, draft, outline, locator, settings)
    _check_shape(text, start, end, outline, settings)
    prefix, suffix = context(text, start, end)
    return Evidence(
        document_path=draft.document_path,
        start_char=start,
        end_char=end,
        content=text[start:end],
        chunk_id=outline.passage_at(start).id,
        prefix=prefix,
        suffix=suffix,
        required=True,
        match=match,
    )


def _choose(
    text: str, draft: Draft, outline: Outline, locator: Locator, settings: EvidenceSettings
) -> tuple[int, int, str]:
    """Return the place of a quote that is known by its words only: whole words first, then where the model looked."""
    places: Sequence[Occurrence] = locator.locate(text, min_key_chars=settings.min_key_chars)
    if not places:
        raise Unfit("evidence_not_found", f"{_shown(text)} stands nowhere in {draft.document_path}")
    whole = [p for p in places if not _cuts_word(outline.text, p.start_char, p.end_char)] or places
    shown = [p for p in whole if draft.window_start <= p.start_char and p.end_char <= draft.window_end] or whole
    return shown[0].start_char, shown[0].end_char, shown[0].match


def _check_shape(text: str, start: int, end: int, outline: Outline, settings: EvidenceSettings) -> None:
    content = text[start:end]
    if not any(char.isalnum() for char in content):
        raise Unfit("evidence_no_words", f"no letter or digit in {_shown(content)}")
    if end - start > settings.max_chars:
        raise Unfit("evidence_too_long", f"{end - start} characters, {settings.max_chars} allowed: {_shown(content)}")
    if _cuts_word(text, start, end):
        around = text[max(0, start - 15) : start] + "⟦" + _shown(content) + "⟧" + text[end : end + 15]
        raise Unfit("evidence_cuts_word", around)
    first, last = outline.section_chain(start), outline.section_chain(end - 1)
    if first[0] not in last and last[0] not in first:
        headings = [outline.sections[chain[0]].heading for chain in (first, last)]
        raise Unfit("evidence_crosses_sections", f"from {headings[0]!r} into {headings[1]!r}")


def _cuts_word(text: str, start: int, end: int) -> bool:
    return any(_inside_word(text, at) for at in (start, end))


def _inside_word(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    if inside_grapheme(text, at):
        return True
    before, after = text[at - 1], text[at]
    joined = all(char.isalnum() or char == "_" for char in (before, after))
    return joined and not (is_wide(before) or is_wide(after))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def with_alternatives(evidence: Evidence, places: Iterable[Place], texts: dict[str, str]) -> Evidence:
    """Return ``evidence`` with every other place where its text stands as whole words.

    ``places`` are ordered by document and offset. Places that overlap the evidence or one another ("ha ha ha ha") are
    one place, not two: the first is kept.
    """
    taken = [Place(evidence.document_path, evidence.start_char, evidence.end_char)]
    for place in places:
        if not _cuts_word(texts[place.document_path], place.start_char, place.end_char) and not any(
            place.document_path == other.document_path
            and place.start_char < other.end_char
            and other.start_char < place.end_char
            for other in taken
        ):
            taken.append(place)
    return replace(evidence, alternatives=tuple(taken[1:]))
