"""Tests of ``review.queue``: what a reviewer is shown around the evidence."""

from __future__ import annotations

from dataclasses import replace

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.records import Candidate, Evidence
from ragds_pipeline.review.queue import CLOSE_MARK, OPEN_MARK, evidence_paths, review_row
from ragds_pipeline_tests.documents import draft, outline

RULES = (
    "# Leave\n\nTeam amber rests 20 days.\n\n" + "Filler between the two of them. " * 9 + "\n\nAsk the office first.\n"
)
MOVED = "# Office\n\n## Hours\n\nThe office opens at nine. It answers within a day.\n"
OUTLINES = {"rules.md": outline(RULES), "office.md": outline(MOVED, path="office.md")}


def span(path: str, quote: str) -> Evidence:
    """Return the evidence that ``quote`` is in the document at ``path``."""
    start = OUTLINES[path].text.index(quote)
    return Evidence(path, start, start + len(quote), quote, "", "", "", True, "exact", ())


def with_evidence(*spans: Evidence) -> Candidate:
    """Return a candidate with the evidence given."""
    drafts = [draft("How long does team amber rest?", "20 days", "Team amber rests 20 days.")]
    (found,) = code_filter(drafts, OUTLINES, lambda: [("rules.md", RULES)], FilterSettings()).candidates
    return replace(found, evidence=spans)


def marked(context: str) -> list[str]:
    """Return what stands between brackets."""
    return [part.split(CLOSE_MARK)[0] for part in context.split(OPEN_MARK)[1:]]


def test_spans_of_two_documents_are_each_shown_in_their_own() -> None:
    rules, office = "Team amber rests 20 days.", "It answers within a day."
    candidate = with_evidence(span("rules.md", rules), span("office.md", office))
    assert evidence_paths([candidate]) == {"rules.md", "office.md"}
    context = review_row(candidate, OUTLINES, 20).context
    assert marked(context) == [rules, office]
    before, _, after = context.partition("office.md: Office")
    assert before.startswith("rules.md: Leave") and rules in before and office in after and rules not in after


def test_spans_are_shown_in_the_order_of_the_text_and_once() -> None:
    inner, outer = "rests 20 days", "Team amber rests 20 days."
    candidate = with_evidence(
        span("rules.md", "Ask the office first."), span("rules.md", outer), span("rules.md", inner)
    )
    context = review_row(candidate, OUTLINES, 20).context
    assert marked(context) == [outer, "Ask the office first."]
    assert context.count("20 days") == 1


def test_spans_that_overlap_are_marked_as_one_after_another() -> None:
    candidate = with_evidence(span("rules.md", "Team amber rests"), span("rules.md", "rests 20 days."))
    assert marked(review_row(candidate, OUTLINES, 400).context) == ["Team amber rests", " 20 days."]
