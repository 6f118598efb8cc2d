"""The rungs across documents: the same words, or similar ones, in a document that changed or is new.

A document that did not change cannot have received anything, so only those that changed are searched, by one index over
their match keys; copies in unchanged documents are the span's recorded alternatives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from ragds_pipeline.anchors.document_ladder import (
    CERTAIN_CHARS,
    CERTAIN_CONTEXT,
    DocumentLadder,
)
from ragds_pipeline.anchors.edited import CONTEXT
from ragds_pipeline.anchors.finding import AnchoredSpan, Finding
from ragds_pipeline.anchors.reasons import AMBIGUOUS, COPY, SHORT
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.anchors.told_apart import MOST_COPIES, Copy, best_side, owners, told_apart
from ragds_pipeline.anchors.view import TextView
from ragds_pipeline.records import Place
from ragds_pipeline.spans.match_key import STRICT, key_of
from ragds_pipeline.spans.occurrences import KeyShards

_PIECE_BYTES = 16
_PIECE_EVERY = 6
_MOST_PIECES = 40
_MOST_HITS = 50
"""A piece that stands in more places tells nothing."""
_FEWEST_VOTES = 2
_MOST_DOCUMENTS = 3


class Elsewhere:
    """Looks for spans in other documents of the new revision, loading each only when a span may be in it."""

    def __init__(self, old: Revision, new: Revision, shards: KeyShards) -> None:
        self._old = old
        self._new = new
        self._shards = shards
        self._views: dict[tuple[bool, str], TextView] = {}
        self._ladders: dict[tuple[str, str], DocumentLadder] = {}

    def verbatim(self, span: AnchoredSpan, view: TextView, places: Iterable[Place], not_in: str) -> Finding | None:
        """Return where the same words stand in another document, or None.

        Args:
            span: the span.
            view: its old document.
            places: where its key stands in documents that changed.
            not_in: path of the document that was searched already.
        """
        news = [self._copy(place) for place in places if place.document_path != not_in]
        stayed = [place for place in span.alternatives if self._unchanged(place.document_path)]
        if len(news) > MOST_COPIES:
            return self._shown(span, view, news, AMBIGUOUS)
        olds = self._old_copies(span, view, {copy.path for copy in news})
        choice = told_apart(0, olds, news, owners(olds, news)) if news else None
        if choice is not None and choice.place is not None:
            found = self._at(span, view, news[choice.place])
            short = len(span.content) < CERTAIN_CHARS
            if short and found.carries and best_side(olds[0], news[choice.place]) < CERTAIN_CONTEXT:
                return replace(found, reason=SHORT)
            return found
        if choice is not None and not choice.gone:
            return self._shown(span, view, news, AMBIGUOUS)
        copies = news + [self._copy(place) for place in stayed]
        return self._shown(span, view, copies, COPY) if copies else None

    def _unchanged(self, path: str) -> bool:
        return path in self._old.documents and self._old.documents[path] == self._new.documents.get(path)

    def _old_copies(self, span: AnchoredSpan, view: TextView, paths: set[str]) -> list[Copy]:
        """The quoted copy first, then the others that stood in documents that have changed since or are gone."""
        olds = [Copy(view.path, view.text, span.start_char, span.end_char)]
        key = key_of(span.content, STRICT)
        known = {place.document_path for place in span.alternatives if not self._unchanged(place.document_path)}
        for path in sorted({*known, *paths, view.path}):
            if path in self._old.documents and path != view.path:
                other = self.old_view(path)
            elif path == view.path:
                other = view
            else:
                continue
            for start, end in other.strict.find(key):
                overlaps = path == view.path and start < span.end_char and span.start_char < end
                if not overlaps:
                    olds.append(Copy(path, other.text, start, end))
        return olds

    def _at(self, span: AnchoredSpan, view: TextView, copy: Copy) -> Finding:
        return self._ladder(view, copy.path).judge(span, copy)

    def _ladder(self, view: TextView, path: str) -> DocumentLadder:
        if (view.path, path) not in self._ladders:
            if len(self._ladders) >= _MOST_VIEWS:
                self._ladders.pop(next(iter(self._ladders)))
            self._ladders[view.path, path] = DocumentLadder(view, self.new_view(path))
        return self._ladders[view.path, path]

    def _shown(self, span: AnchoredSpan, view: TextView, copies: Sequence[Copy], reason: str) -> Finding:
        others = tuple(Place(copy.path, copy.start, copy.end) for copy in copies[1:])
        return replace(self._at(span, view, copies[0]), reason=reason, doubtful=others)

    def _copy(self, place: Place) -> Copy:
        return Copy(place.document_path, self.new_view(place.document_path).text, place.start_char, place.end_char)

    def old_view(self, path: str) -> TextView:
        """Return a document of the old revision."""
        return self._view(self._old, path, new=False)

    def new_view(self, path: str) -> TextView:
        """Return a document of the new revision."""
        return self._view(self._new, path, new=True)

    def _view(self, revision: Revision, path: str, *, new: bool) -> TextView:
        if (new, path) not in self._views:
            if len(self._views) >= _MOST_VIEWS:
                self._views.pop(next(iter(self._views)))
            self._views[new, path] = revision.view(path)
        return self._views[new, path]

    def similar(self, spans: Mapping[int, AnchoredSpan]) -> dict[int, Finding]:
        """Return, for the spans that have one, the most similar place in any document that changed.

        Documents are proposed by pieces of the span's key that stand in them and in few others.
        """
        pieces = {at: _pieces(span.content) for at, span in spans.items()}
        distinct = list({piece for each in pieces.values() for piece in each})
        encoded = [piece.encode("utf-8", "surrogatepass") for piece in distinct]
        found = self._shards.find(encoded, at_most=_MOST_HITS)
        found_at = {piece: found.get(key, []) for piece, key in zip(distinct, encoded, strict=True)}
        similar: dict[int, Finding] = {}
        for at, span in spans.items():
            candidates = [
                self._ladder(self.old_view(span.document_path), path).edited(span, within)
                for path, within in _likely(span, [found_at[piece] for piece in pieces[at]])
            ]
            best = max((each for each in candidates if each is not None), key=attrgetter("score"), default=None)
            if best is not None:
                similar[at] = best
        return similar


def _likely(span: AnchoredSpan, hits_of_pieces: Sequence[Sequence[Place]]) -> list[tuple[str, tuple[int, int]]]:
    """Return the documents in which most pieces of a span stand close together, with where that is."""
    votes: dict[str, list[int]] = defaultdict(list)
    for hits in hits_of_pieces:
        for place in hits:
            votes[place.document_path].append(place.start_char)
    room = 2 * (span.end_char - span.start_char) + 2 * CONTEXT
    ranked = []
    for path, starts in votes.items():
        starts.sort()
        most, first = max((bisect_right(starts, start + room) - at, -start) for at, start in enumerate(starts))
        if most >= _FEWEST_VOTES:
            ranked.append((-most, path, (max(0, -first - room), -first + 2 * room)))
    return [(path, within) for _, path, within in sorted(ranked)[:_MOST_DOCUMENTS]]


_MOST_VIEWS = 64
"""Documents kept at hand; the texts of 64 documents are little, and most look-ups go to the same few."""


def _pieces(content: str) -> list[str]:
    """Stretches of a quote's strict key, spread over it."""
    key = key_of(content, STRICT)
    size = _PIECE_BYTES if key.isascii() else _PIECE_BYTES // 2
    starts = range(0, len(key) - size + 1, _PIECE_EVERY)
    step = max(1, len(starts) // _MOST_PIECES)
    return [key[at : at + size] for at in starts[::step]]
