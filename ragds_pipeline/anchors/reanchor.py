"""From the spans of one revision to anchor events: where each stands in the next one, and how sure that is.

The order of rungs (DESIGN.md 10, docs/revisions.md): unchanged document, same place, moved, reformatted, edited,
relocated, relocated and edited, lost. What is likely is weighed only after what is certain: words that stand verbatim
in another document come before similar ones in their own, unless those are very similar, and then a person sees both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ragds_pipeline.anchors.document_ladder import LIKELY, DocumentLadder, lost
from ragds_pipeline.anchors.elsewhere import Elsewhere
from ragds_pipeline.anchors.finding import AnchoredSpan, Finding
from ragds_pipeline.anchors.followed import renamed, successors
from ragds_pipeline.anchors.reasons import AMBIGUOUS, COPY, OK
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.anchors.view import TextView
from ragds_pipeline.collecting import no_collecting
from ragds_pipeline.records import AnchorEvent, Place, Rung, Span, SpanMismatch
from ragds_pipeline.spans import seeds
from ragds_pipeline.spans.match_key import encoded_keys, key_of
from ragds_pipeline.spans.occurrences import KeyShards


def reanchor(spans: Iterable[AnchoredSpan], old: Revision, new: Revision) -> list[AnchorEvent]:
    """Return what became of each span, in the order given; the same arguments give the same events.

    Only documents that changed are loaded, one after another; memory grows with the spans and the largest documents,
    not with the KB.

    Args:
        spans: spans of the old revision with all their alternatives.
        old: the revision they refer to.
        new: the revision to find them in.

    Raises:
        SpanMismatch: if a span is not what its old document holds, or that document is not in ``old``.
    """
    with no_collecting():
        return _reanchored(list(spans), old, new)


def _reanchored(given: Sequence[AnchoredSpan], old: Revision, new: Revision) -> list[AnchorEvent]:
    by_path: dict[str, list[int]] = defaultdict(list)
    for at, span in enumerate(given):
        if span.document_path not in old.documents:
            raise SpanMismatch(f"{span.document_path}: not a document of {old.source_version}")
        by_path[span.document_path].append(at)
    changed = sorted(path for path, digest in new.documents.items() if old.documents.get(path) != digest)
    shards = KeyShards(lambda: new.texts(changed))
    places = _places(dict.fromkeys(span.content for span in given), shards)
    findings = _find(given, by_path, old, new, shards, places)
    reformatted = {found.content for at, found in findings.items() if found.content != given[at].content}
    places |= _places(reformatted - places.keys(), shards)
    return [
        _event(span, findings[at], places, old, new)
        if at in findings
        else _unchanged_event(span, places.get(span.content, ()), old, new)
        for at, span in enumerate(given)
    ]


def _places(wanted: Iterable[str], shards: KeyShards) -> dict[str, list[Place]]:
    """Return, for each content that stands in a document that changed, where: one index over all their keys."""
    contents = list(wanted)
    if not contents:
        return {}
    keys = encoded_keys(contents)
    found = shards.find([key for key in keys if len(key) >= seeds.SHORTEST])
    return {content: found[key] for content, key in zip(contents, keys, strict=True) if key in found}


def _find(
    given: Sequence[AnchoredSpan],
    by_path: Mapping[str, list[int]],
    old: Revision,
    new: Revision,
    shards: KeyShards,
    places: Mapping[str, list[Place]],
) -> dict[int, Finding]:
    """Return the findings of all spans but those in unchanged documents."""
    gone = sorted(path for path in by_path if path not in new.documents)
    same_text = renamed(gone, old, new)
    followed = successors([path for path in gone if path not in same_text], old, new)
    elsewhere = Elsewhere(old, new, shards)
    findings: dict[int, Finding] = {}
    for path, indexes in by_path.items():
        if old.documents[path] == new.documents.get(path):
            continue
        if path in same_text:
            findings |= {at: _renamed(given[at], same_text[path]) for at in indexes}
            continue
        view = old.view(path)
        target = path if path in new.documents else followed.get(path)
        ladder = DocumentLadder(view, new.view(target)) if target is not None else None
        for at in indexes:
            span = given[at]
            Span(span.document_path, span.start_char, span.end_char, span.content).verify(view.text)
            findings[at] = _climb(span, view, ladder, elsewhere, _places_of(span, ladder, places))
    weak = {at: given[at] for at, found in findings.items() if _is_weak(found)}
    for at, found in elsewhere.similar(weak).items() if weak else ():
        if found.score > findings[at].score:
            findings[at] = found
    return findings


def _places_of(span: AnchoredSpan, ladder: DocumentLadder | None, places: Mapping[str, list[Place]]) -> Sequence[Place]:
    """Where a span's words stand now; words too short for the index are looked up in their own document."""
    found = places.get(span.content, ())
    if found or ladder is None:
        return found
    key = key_of(span.content)
    if not key or len(key.encode("utf-8", "surrogatepass")) >= seeds.SHORTEST:
        return ()
    return [Place(ladder.new.path, *place) for place in ladder.new.strict.find(key)]


def _is_weak(found: Finding) -> bool:
    return found.rung == Rung.LOST or (found.rung in (Rung.EDITED, Rung.RELOCATED_EDITED) and found.score < LIKELY)


def _renamed(span: AnchoredSpan, paths: Sequence[str]) -> Finding:
    """The document has a new name and the very same text."""
    here, *others = (Place(path, span.start_char, span.end_char) for path in paths)
    if others:
        return Finding(Rung.RELOCATED, AMBIGUOUS, here, span.content, tuple(others), detail="the document was copied")
    return Finding(Rung.RELOCATED, place=here, content=span.content, detail="the document was renamed")


def _climb(
    span: AnchoredSpan,
    view: TextView,
    ladder: DocumentLadder | None,
    elsewhere: Elsewhere,
    places: Sequence[Place],
) -> Finding:
    """Go down the ladder for one span until a rung holds."""
    target = ladder.new.path if ladder is not None else ""
    verbatim = ladder.verbatim(span, [each for each in places if each.document_path == target]) if ladder else None
    if verbatim is not None and verbatim.reason != COPY:
        return verbatim
    away = elsewhere.verbatim(span, view, places, target) if places or span.alternatives else None
    reads_same = ladder.reformatted(span) if ladder is not None and verbatim is None else None
    if reads_same is not None and reads_same.reason != COPY:
        # The very words in another document are more certain than others that may not even read the same.
        return away if away is not None and away.carries and not reads_same.carries else reads_same
    copy_gone = verbatim or reads_same
    similar = ladder.edited(span) if ladder is not None else None
    if similar is not None and copy_gone is not None and _same_place(similar, copy_gone):
        similar = None
    return _weighed(similar, copy_gone, away)


def _same_place(similar: Finding, copy: Finding) -> bool:
    """Whether the most similar place is just one of the other copies."""
    if similar.place is None:
        return True
    copies = [place for place in (copy.place, *copy.doubtful) if place is not None]
    return any(
        similar.place.start_char < other.end_char and other.start_char < similar.place.end_char for other in copies
    )


def _weighed(similar: Finding | None, copy_gone: Finding | None, away: Finding | None) -> Finding:
    """Choose between similar words in the document, other copies in it, and the same words in another document."""
    moved = away is not None and away.reason != COPY
    likely = similar is not None and similar.score >= LIKELY
    if away is not None and moved:
        if not likely or similar is None or similar.place is None:
            return away
        if similar.context_score < away.context_score:
            return replace(away, reason=AMBIGUOUS, doubtful=(*away.doubtful, similar.place))
    if similar is not None and (likely or (copy_gone is None and away is None)):
        others = [each for each in (copy_gone, away) if each is not None]
        shown = tuple(place for each in others for place in (each.place, *each.doubtful) if place is not None)
        return replace(similar, doubtful=shown)
    if copy_gone is not None:
        return copy_gone
    return away or similar or lost()


def _event(
    span: AnchoredSpan, found: Finding, places: Mapping[str, list[Place]], old: Revision, new: Revision
) -> AnchorEvent:
    """Put a finding on record, with every other place of the same words."""
    place = found.place or Place("", -1, -1)
    equal = places.get(span.content, ())
    if found.content != span.content:
        equal = (*equal, *places.get(found.content, ()))
    return AnchorEvent(
        item_id=span.item_id,
        span_index=span.span_index,
        required=span.required,
        rung=found.rung,
        carries=found.carries,
        reason=found.reason,
        from_version=old.source_version,
        to_version=new.source_version,
        document_path=span.document_path,
        start_char=span.start_char,
        end_char=span.end_char,
        content=span.content,
        new_document_path=place.document_path,
        new_start_char=place.start_char,
        new_end_char=place.end_char,
        new_content=found.content,
        alternatives=_alternatives(span, place, found.doubtful, equal, old, new),
        score=found.score,
        context_score=found.context_score,
        meaning_changes=found.meaning_changes,
        word_diff=found.word_diff,
        section_changed=found.section_changed,
        detail=found.detail,
    )


def _unchanged_event(span: AnchoredSpan, places: Sequence[Place], old: Revision, new: Revision) -> AnchorEvent:
    """Put on record that a document did not change.

    Nine spans of ten are of this kind: by position and without a finding, which takes a third of the time.
    """
    path, start, end, content = span.document_path, span.start_char, span.end_char, span.content
    others: tuple[Place, ...] = ()
    if places or span.alternatives:
        others = _alternatives(span, Place(path, start, end), (), places, old, new)
    return AnchorEvent(
        span.item_id, span.span_index, span.required, Rung.UNCHANGED, True, OK, old.source_version, new.source_version,
        path, start, end, content, path, start, end, content, others, 1.0, 1.0, (), "", False, "",
    )  # fmt: skip


def _alternatives(
    span: AnchoredSpan,
    place: Place,
    doubtful: Sequence[Place],
    places: Sequence[Place],
    old: Revision,
    new: Revision,
) -> tuple[Place, ...]:
    """All other places of the same words: old ones in documents that stayed as they were, all in those that did not."""
    stayed = [each for each in span.alternatives if _unchanged(each.document_path, old, new)]
    if not stayed and not doubtful and not places:
        return ()
    others = {each for found in (stayed, places, doubtful) for each in found if not _overlap(each, place)}
    return tuple(sorted(others, key=_in_order)) if len(others) > 1 else tuple(others)


def _in_order(place: Place) -> tuple[str, int, int]:
    return place.document_path, place.start_char, place.end_char


def _unchanged(path: str, old: Revision, new: Revision) -> bool:
    return path in old.documents and old.documents[path] == new.documents.get(path)


def _overlap(one: Place, other: Place) -> bool:
    return (
        one.document_path == other.document_path and one.start_char < other.end_char and other.start_char < one.end_char
    )
