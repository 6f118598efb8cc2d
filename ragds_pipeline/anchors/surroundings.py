"""What changed around a span whose own words did not: does it still say the same where it stands now?

A ``not`` put in front of a quoted clause leaves every quoted character as it was. So the sentence that holds the
span, the line that leads in to it, its headings and its state (commented out, struck out ...) are compared too, as they
read; a change there sends the span to a person. Other edits in its section, or within 200 characters, only mark it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ragds_pipeline.anchors.blocks_around import lead_in, own_text, section_path, sentence, states
from ragds_pipeline.anchors.markup import markup
from ragds_pipeline.anchors.meaning import changed_kinds, meaning_changes
from ragds_pipeline.anchors.reading import plain, tokens
from ragds_pipeline.anchors.reasons import HEADING, LEAD_IN, OK, SENTENCE, STATE
from ragds_pipeline.anchors.view import TextView
from ragds_pipeline.anchors.word_diff import word_diff
from ragds_pipeline.anchors.word_lists import NAME, VALIDITY

NEARBY = 200
"""Characters before and after a span in which an edit marks it for a look."""

Range = tuple[int, int]


class Around(NamedTuple):
    """What the text around a span says about it."""

    reason: str
    """``ok``, or why a person must look."""
    detail: str
    section_changed: bool


class Surroundings:
    """Compares what surrounds spans in an old and a new document; the sections of a pair are compared once."""

    def __init__(self, old: TextView, new: TextView) -> None:
        self._old = old
        self._new = new
        self._sections: dict[tuple[int, int], bool] = {}

    def compare(self, was: Range, now: Range) -> Around:
        """Compare the surroundings of the place ``was`` in the old text with those of ``now`` in the new one."""
        reason, detail = self._decisive(was, now)
        return Around(reason, detail, bool(reason != OK or self._edited_nearby(was, now)))

    def _decisive(self, was: Range, now: Range) -> tuple[str, str]:
        before, after = states(self._old, *was), states(self._new, *now)
        if before != after:
            gone = [f"no longer {state}" for state in sorted(before - after)]
            return STATE, ", ".join([*gone, *(f"now {state}" for state in sorted(after - before))])
        changed = self._sentence(was, now)
        if changed:
            return SENTENCE, changed
        changed = self._lead_in(was, now)
        if changed:
            return LEAD_IN, changed
        changed = self._headings(was, now)
        return (HEADING, changed) if changed else (OK, "")

    def _sentence(self, was: Range, now: Range) -> str:
        old, new = self._old.text, self._new.text
        first, last = sentence(self._old, *was)
        new_first, new_last = sentence(self._new, *now)
        for one, other in (
            ((first, was[0]), (new_first, now[0])),
            ((was[1], last), (now[1], new_last)),
        ):
            if old[slice(*one)].strip() != new[slice(*other)].strip():
                read, reads = self._old.plain(*one), self._new.plain(*other)
                if tokens(read) != tokens(reads):
                    return word_diff(read.strip(), reads.strip(), shorten=True)
        return ""

    def _lead_in(self, was: Range, now: Range) -> str:
        old, new = self._old.text, self._new.text
        before, after = lead_in(old, was[0]), lead_in(new, now[0])
        if [old[slice(*each)].strip() for each in before] == [new[slice(*each)].strip() for each in after]:
            return ""
        read = " / ".join(self._old.plain(*each).strip() for each in before)
        reads = " / ".join(self._new.plain(*each).strip() for each in after)
        return word_diff(read, reads, shorten=True) if tokens(read) != tokens(reads) else ""

    def _headings(self, was: Range, now: Range) -> str:
        before, after = _heading_texts(self._old, was), _heading_texts(self._new, now)
        if before == after:
            return ""
        (front, path), (new_front, new_path) = before, after
        if VALIDITY in changed_kinds(meaning_changes(front, new_front)):
            return word_diff(front, new_front, shorten=True)
        # Names change whenever a span moves to another section; that is marked, and no more.
        kinds = changed_kinds(meaning_changes(path, new_path)) - {NAME}
        return word_diff(path, new_path) if kinds else ""

    def _edited_nearby(self, was: Range, now: Range) -> bool:
        old, new = self._old.text, self._new.text
        for one, other in (
            (old[max(0, was[0] - NEARBY) : was[0]], new[max(0, now[0] - NEARBY) : now[0]]),
            (old[was[1] : was[1] + NEARBY], new[now[1] : now[1] + NEARBY]),
        ):
            if one != other and _bare(one) != _bare(other):
                return True
        before, after = section_path(self._old, *was), section_path(self._new, *now)
        if _heading_texts(self._old, was)[1] != _heading_texts(self._new, now)[1]:
            return True
        return bool(before and after) and self._section_differs(before[0], after[0])

    def _section_differs(self, before: int, after: int) -> bool:
        if (before, after) not in self._sections:
            one = self._old.text[slice(*own_text(self._old, before))]
            other = self._new.text[slice(*own_text(self._new, after))]
            self._sections[before, after] = one.strip() != other.strip() and _as_read(one) != _as_read(other)
        return self._sections[before, after]



def _heading_texts(view: TextView, place: Range) -> tuple[str, str]:
    """The front matter, and the headings above a place, outermost first, without their numbers."""
    front, headings = "", []
    for index in reversed(section_path(view, *place)):
        start, body, _ = view.sections[index]
        text = view.text[start:body]
        if index == 0 and start == 0 and not text.lstrip().startswith("#"):
            front = text
        elif place[0] >= body:
            headings.append(_numbered(text))
    return front, " > ".join(headings)


def _numbered(heading: str) -> str:
    """A heading without marks and its number: ``## 3.2 Leave`` as ``Leave``; a year (``2026 rates``) stays."""
    text = " ".join(plain(heading, 0, len(heading), markup(heading).kinds).split())
    number = re.match(r"(?:\d+\.)+\d*\s+|\d{1,2}[.)]?\s+", text)
    return text[number.end() :] if number and number.end() < len(text) else text


def _bare(text: str) -> str:
    return "".join(text.split())


def _as_read(text: str) -> list[str]:
    return tokens(plain(text, 0, len(text), markup(text).kinds))
