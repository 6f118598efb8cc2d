"""Small revisions for tests of the ladder."""

from __future__ import annotations

from collections.abc import Mapping

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.kb.normalise import front_matter_end
from ragds_pipeline.kb.structure import sections
from ragds_pipeline.records import AnchorEvent, Place, sha256_text
from ragds_pipeline.spans.occurrences import find_everywhere

PATH = "rules.md"


def section_ranges(path: str, text: str) -> list[tuple[int, int, int]]:
    """The sections as ``kb.structure`` finds them."""
    found = sections(path, text, "", front_matter_end(text))
    return [(each.start_char, each.body_start_char, each.end_char) for each in found]


def revision(name: str, texts: Mapping[str, str]) -> Revision:
    """A revision that holds its texts in memory."""
    return Revision(name, {path: sha256_text(text) for path, text in texts.items()}, texts.__getitem__, section_ranges)


def span(texts: Mapping[str, str], quote: str, path: str = PATH, nth: int = 0, **fields: object) -> AnchoredSpan:
    """The ``nth`` place of a quote in a document as a span, with all other places as alternatives."""
    at = -1
    for _ in range(nth + 1):
        at = texts[path].index(quote, at + 1)
    everywhere = find_everywhere([quote], texts.items(), min_key_chars=1)[0]
    here = Place(path, at, at + len(quote))
    others = tuple(place for place in everywhere if place != here)
    return AnchoredSpan(
        str(fields.get("item_id", "g-0001")), int(str(fields.get("span_index", 0))), bool(fields.get("required", True)),
        path, at, at + len(quote), quote, others,
    )  # fmt: skip


def step(
    old: Mapping[str, str] | str, new: Mapping[str, str] | str, quote: str, nth: int = 0, path: str = PATH
) -> AnchorEvent:
    """Re-anchor one quote; a text alone is the one document of a KB."""
    before = {PATH: old} if isinstance(old, str) else old
    after = {PATH: new} if isinstance(new, str) else new
    [event] = reanchor([span(before, quote, path, nth)], revision("v1", before), revision("v2", after))
    check_place(event, after)
    return event


def check_place(event: AnchorEvent, texts: Mapping[str, str]) -> None:
    """What is proposed is what stands there."""
    if event.new_start_char >= 0:
        assert texts[event.new_document_path][event.new_start_char : event.new_end_char] == event.new_content
    else:
        assert (event.new_document_path, event.new_end_char, event.new_content) == ("", -1, "")
    for place in event.alternatives:
        assert 0 <= place.start_char < place.end_char <= len(texts[place.document_path])
