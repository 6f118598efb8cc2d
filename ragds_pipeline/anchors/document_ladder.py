"""The rungs within one document: same place, moved, reformatted, edited (DESIGN.md 10).

The cheap and certain rungs come first: a span whose words stand somewhere verbatim is never searched for by likeness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rapidfuzz.distance import Indel

from ragds_pipeline.anchors.blocks_around import whole_sentences
from ragds_pipeline.anchors.edited import exactly_between, find_edited
from ragds_pipeline.anchors.finding import AnchoredSpan, Finding
from ragds_pipeline.anchors.markup import KEPT
from ragds_pipeline.anchors.meaning import meaning_changes
from ragds_pipeline.anchors.reasons import AMBIGUOUS, COPY, EDITED, LOST, MEANING, OK, SHORT
from ragds_pipeline.anchors.reformatted import says_the_same
from ragds_pipeline.anchors.surroundings import Surroundings
from ragds_pipeline.anchors.told_apart import Copy, best_side, context_score, owners, told_apart
from ragds_pipeline.anchors.view import TextView, caseless_words, key_slice
from ragds_pipeline.anchors.word_diff import word_diff
from ragds_pipeline.records import Place, Rung
from ragds_pipeline.spans.locate import MIN_KEY_CHARS
from ragds_pipeline.spans.match_key import is_dropped, key_of

Range = tuple[int, int]
_Copies = tuple[list[Copy], list[Copy], list[int | None]]
"""Old places of some words, new ones, and which old one each new one belongs to."""

CERTAIN_CHARS = 40
"""A shorter quote that moved must have some of its old surroundings: 26 % of quotes of 20 characters stand more
than once in their own document, so that one hit may be chance (reference, section 2)."""
CERTAIN_CONTEXT = 0.5
LIKELY = 0.75
"""From this likeness on, an edited place in the same document is preferred to a search elsewhere."""
_TELLING_WORD = 5
LEAST_LIKELY = 0.5
"""Below this likeness no place is proposed."""


class DocumentLadder:
    """Finds the spans of one old document in its successor, usually the document of the same path."""

    def __init__(self, old: TextView, new: TextView) -> None:
        self.old = old
        self.new = new
        self.surroundings = Surroundings(old, new)
        self._copies: dict[str, _Copies] = {}
        self._loose: dict[str, _Copies] = {}

    def verbatim(self, span: AnchoredSpan, places: Sequence[Place]) -> Finding | None:
        """Return the place with the same words, white space apart; None if they stand nowhere in the document.

        ``places`` are those of the span's strict key in the new document. The reason is ``copy_gone`` where the
        words stand only where other copies of them stood before.
        """
        if not places:
            return None
        known = self._copies.get(span.content)
        if known is None:
            news = [Copy(self.new.path, self.new.text, place.start_char, place.end_char) for place in places]
            known = self._copies[span.content] = self._with_owners(self._old_copies(span), news)
        return self._chosen(span, *known)

    def _old_copies(self, span: AnchoredSpan) -> list[Copy]:
        """All places of the span's words in the old document: itself, its alternatives, and any not on record."""
        text, content = self.old.text, span.content
        found = {(span.start_char, span.end_char)}
        at = text.find(content)
        while at >= 0:
            found.add((at, at + len(content)))
            at = text.find(content, at + 1)
        for each in span.alternatives:
            if each.document_path == self.old.path and all(
                each.end_char <= start or end <= each.start_char for start, end in found
            ):
                found.add((each.start_char, each.end_char))
        return [Copy(self.old.path, text, *place) for place in sorted(found)]

    def reformatted(self, span: AnchoredSpan) -> Finding | None:
        """Return the place that reads the same; None if there is none."""
        was = span.start_char, span.end_char
        between = exactly_between(self.old.text, *was, self.new.text)
        if between is not None:
            if self.new.reading(*between) == self.old.reading(*was):
                return self.judge(span, Copy(self.new.path, self.new.text, *between))
            if Indel.normalized_similarity(span.content, self.new.text[slice(*between)]) >= LIKELY:
                return None  # it was edited where it stands
        if not self._may_read_the_same(was):
            return None
        key = key_slice(self.old.loose, *was)
        if len(key) < MIN_KEY_CHARS:
            return None
        known = self._loose.get(key)
        if known is None:
            olds = [Copy(self.old.path, self.old.text, *place) for place in self.old.loose.find(key)]
            news = [Copy(self.new.path, self.new.text, *place) for place in self.new.loose.find(key)]
            known = self._loose[key] = self._with_owners(olds, news)
        return self._chosen(span, *known)

    def _may_read_the_same(self, was: Range) -> bool:
        """Whether every longer ASCII word of a span stands in the new text: else its key cannot, and need not be made.

        Words at the ends are left out, as the span may begin or end inside of one.
        """
        words = self.old.plain(*was).split()[1:-1]
        return all(
            self.new.has_word(word)
            for each in words
            if each.isascii()
            for word in caseless_words(each)
            if len(word) >= _TELLING_WORD
        )

    @staticmethod
    def _with_owners(olds: list[Copy], news: list[Copy]) -> _Copies:
        return olds, news, [0] if len(olds) == len(news) == 1 else owners(olds, news)

    def _chosen(
        self, span: AnchoredSpan, olds: Sequence[Copy], news: Sequence[Copy], owned_by: Sequence[int | None]
    ) -> Finding | None:
        own = next((at for at, copy in enumerate(olds) if _overlap(copy, span)), None)
        if own is None or not news:  # the span may begin or end inside a visible character
            return None
        if len(olds) == len(news) == 1:
            return self._only(span, news[0])
        # Among copies that differ in white space, the very same characters, if they stood once and stand once.
        exact = [copy for copy in news if self._is_exact(copy, span.content)]
        if len(exact) == 1 and sum(self._is_exact(copy, span.content) for copy in olds) == 1:
            return self.judge(span, exact[0])
        choice = told_apart(own, olds, news, owned_by)
        if choice.place is not None:
            return self.judge(span, news[choice.place])
        return self._undecided(span, news, COPY if choice.gone else AMBIGUOUS)

    def _only(self, span: AnchoredSpan, copy: Copy) -> Finding:
        found = self.judge(span, copy)
        if len(span.content) < CERTAIN_CHARS and found.carries and not self._stayed(span, copy):
            here = Copy(self.old.path, self.old.text, span.start_char, span.end_char)
            if best_side(here, copy) < CERTAIN_CONTEXT:
                return replace(found, reason=SHORT)
        return found

    @staticmethod
    def _is_exact(copy: Copy, content: str) -> bool:
        return copy.text[copy.start : copy.end] == content.strip()

    def _stayed(self, span: AnchoredSpan, copy: Copy) -> bool:
        return self.old.path == self.new.path and copy.start <= span.start_char < copy.end

    def _undecided(self, span: AnchoredSpan, news: Sequence[Copy], reason: str) -> Finding:
        """The same words stand in several places, or only where others stood: all places are shown."""
        best = min(news, key=lambda copy: (copy.start != span.start_char, abs(copy.start - span.start_char)))
        others = tuple(Place(copy.path, copy.start, copy.end) for copy in news if copy is not best)
        return replace(self.judge(span, best), reason=reason, doubtful=others)

    def judge(self, span: AnchoredSpan, copy: Copy) -> Finding:
        """Judge one place that matches by its key."""
        was = span.start_char, span.end_char
        now = self._whole(was, (copy.start, copy.end), span.content)
        content = self.new.text[slice(*now)]
        reason, detail = OK, ""
        changes: tuple[str, ...] = ()
        exact = content == span.content
        if not exact:
            reason, detail, changes = says_the_same(self.old, was, self.new, now)
        around = self.surroundings.compare(was, now)
        if reason == OK:
            reason, detail = around.reason, around.detail
        return Finding(
            rung=self._rung(exact, was[0] == now[0]),
            reason=reason,
            place=Place(self.new.path, *now),
            content=content,
            score=1.0 if exact else Indel.normalized_similarity(span.content, content),
            context_score=self._context(was, now),
            meaning_changes=changes,
            word_diff="" if exact else word_diff(span.content, content),
            section_changed=around.section_changed,
            detail=detail,
        )

    def _rung(self, exact: bool, same_offset: bool) -> str:
        if self.old.path != self.new.path:
            return Rung.RELOCATED
        if not exact:
            return Rung.REFORMATTED
        return Rung.SAME_PLACE if same_offset else Rung.MOVED

    def _context(self, was: Range, now: Range) -> float:
        return context_score(Copy("", self.old.text, *was), Copy("", self.new.text, *now))

    def _whole(self, was: Range, now: Range, content: str) -> Range:
        """Take in what a key leaves out at the ends: white space and marks that the old span had there."""
        text = self.new.text
        lead = next((at for at, char in enumerate(content) if not is_dropped(char)), 0)
        trail = next((at for at, char in enumerate(reversed(content)) if not is_dropped(char)), 0)
        start, end = now[0] - lead, now[1] + trail
        if start >= 0 and text[start:end] == content:
            return start, end
        if text[slice(*now)] == content.strip():
            return now
        return self._with_marks(self._with_leading_marks(was, now))

    def _with_leading_marks(self, was: Range, now: Range) -> Range:
        """Take in the layout in front of the place (a bullet, an anchor), if the old span began with some."""
        at, layout = self.old.layout(*was)
        if layout.kinds[was[0] - at] == KEPT:
            return now
        at, layout = self.new.layout(*now)
        start = first = now[0]
        while start > at and (layout.kinds[start - 1 - at] != KEPT or self.new.text[start - 1] in " \t"):
            start -= 1
            if layout.kinds[start - at] != KEPT and not self.new.text[start].isspace():
                first = start
        return first, now[1]

    def _with_marks(self, now: Range) -> Range:
        """Take in the partner of each pair of marks that lies half in the place."""
        at, layout = self.new.layout(*now)
        start, end = now[0] - at, now[1] - at
        moved = True
        while moved:
            moved = False
            for (open_start, open_end), (close_start, close_end) in layout.pairs:
                opens = start <= open_start and open_end <= end
                closes = start <= close_start and close_end <= end
                if opens and not closes and close_start == end:
                    end, moved = close_end, True
                elif closes and not opens and open_end == start:
                    start, moved = open_start, True
                elif not opens and not closes and open_end == start and close_start == end:
                    start, end, moved = open_start, close_end, True
        return start + at, end + at

    def edited(self, span: AnchoredSpan, within: Range | None = None) -> Finding | None:
        """Return the place with the most similar words in a similar context; None below ``LEAST_LIKELY``.

        ``within`` is a range of the new text in which alone to look.
        """
        if len(key_of(span.content)) < MIN_KEY_CHARS:
            return None
        was = span.start_char, span.end_char
        expected = round(span.start_char * len(self.new.text) / max(1, len(self.old.text)))
        found = find_edited(self.old.text, *was, self.new.text, expected, within)
        if found is None or found.score < LEAST_LIKELY:
            return None
        now = whole_sentences(self.old, was, self.new, (found.start, found.end))
        now = self._with_marks(now) if self.new.is_markdown else now
        content = self.new.text[slice(*now)]
        score, context = Indel.normalized_similarity(span.content, content), self._context(was, now)
        if not _is_likely(score, context, same_document=self.old.path == self.new.path):
            return None
        changes = meaning_changes(self.old.plain(*was), self.new.plain(*now))
        same_document = self.old.path == self.new.path
        return Finding(
            rung=Rung.EDITED if same_document else Rung.RELOCATED_EDITED,
            reason=MEANING if changes else EDITED,
            place=Place(self.new.path, *now),
            content=content,
            score=score,
            context_score=context,
            meaning_changes=changes,
            word_diff=word_diff(span.content, content),
            section_changed=True,
        )


def _is_likely(score: float, context: float, *, same_document: bool) -> bool:
    """Whether a similar place is worth a person's look: of those refused, nine of ten judged by hand were wrong."""
    alone, with_context = (0.7, LEAST_LIKELY) if same_document else (0.8, 0.65)
    return score >= alone or (score >= with_context and context >= CERTAIN_CONTEXT)


def _overlap(copy: Copy, span: AnchoredSpan) -> bool:
    return copy.start < span.end_char and span.start_char < copy.end


def lost(detail: str = "") -> Finding:
    """Nothing like the span stands anywhere."""
    return Finding(Rung.LOST, LOST, score=0.0, context_score=0.0, section_changed=True, detail=detail)
